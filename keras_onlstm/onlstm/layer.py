"""ONLSTM: the layer. Prepares inputs, states and masks, and runs the recurrence."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Self

import keras
from keras import KerasTensor, ops

from keras_onlstm.onlstm import recurrence
from keras_onlstm.onlstm.cell import ARGUMENTS, DropoutMasks, ONLSTMCell
from keras_onlstm.onlstm.int8 import check_mode
from keras_onlstm.utils import Identifier, Shape, Tensor, Tensors
from keras_onlstm.utils.keras_private import DenseInputs, assign
from keras_onlstm.utils.numerics import wide_dtype


def _is_compatible(shape, expected):
    """Whether two shapes can be equal; `None` is an unknown size."""
    return len(shape) == len(expected) and all(
        None in sizes or sizes[0] == sizes[1] for sizes in zip(shape, expected, strict=True)
    )


def _with_static_batch(*tensors):
    """The tensors, all with a static batch size if one of them has it.

    In a graph some may lack it, and a loop rejects states whose static shape changes.
    """
    known = {x.shape[0] for x in tensors} - {None}
    if not known or all(x.shape[0] is not None for x in tensors):
        return tensors
    return [ops.reshape(x, (*known, *ops.shape(x)[1:])) for x in tensors]


@keras.saving.register_keras_serializable(package="keras_onlstm")
class ONLSTM(DenseInputs, keras.layers.RNN):
    """Ordered-neurons LSTM over whole sequences.

    Takes the arguments of `keras_onlstm.ONLSTMCell` and the sequence arguments of
    `keras.layers.LSTM`. Computes the same as `keras.layers.RNN(ONLSTMCell(...))`, faster: the
    inputs of all steps are multiplied with the kernel at once. On request it also returns the split
    distances for parsing.

    Masked steps (from an `Embedding(mask_zero=True)`, a `Masking` layer or `mask=`) are skipped:
    the states are carried over, the output repeats the one before (zeros before the first unmasked
    step; zeros throughout with `zero_output_for_mask=True`), the distances are 0. Their inputs,
    even NaN, affect neither results nor gradients. For a sequence without steps, the last output is
    zeros and the states are the initial ones. The mask is passed on if the layer returns sequences
    or distances.

    Source: Shen et al. 2019, "Ordered Neurons", Eq. 6 to 15, https://arxiv.org/abs/1810.09536.

    Args:
        units: positive integer, size of the output and of both states. `ONLSTMCell` describes
            the arguments up to `seed` in full.
        chunk_size: positive integer that divides `units`.
        activation: activation of the candidate and of the cell state.
        recurrent_activation: activation of the LSTM's gates.
        use_bias: whether there is a bias.
        kernel_initializer: initializer of `kernel`.
        recurrent_initializer: initializer of `recurrent_kernel`.
        bias_initializer: initializer of `bias`.
        unit_forget_bias: whether to add 1 to the initial forget bias.
        kernel_regularizer: regularizer of `kernel`.
        recurrent_regularizer: regularizer of `recurrent_kernel`.
        bias_regularizer: regularizer of `bias`.
        kernel_constraint: constraint of `kernel`.
        recurrent_constraint: constraint of `recurrent_kernel`.
        bias_constraint: constraint of `bias`.
        dropout: dropout rate of the inputs.
        recurrent_dropout: dropout rate of the hidden state.
        recurrent_weight_dropout: dropout rate of `recurrent_kernel`.
        seed: integer seed of dropout.
        return_sequences: whether to return the output of every step, not only the last one.
        return_state: whether to return the final states `h` and `c` too.
        return_distances: whether to return the distances of every step too. Under
            `keras.layers.Bidirectional` it needs `return_state=True`.
        go_backwards: whether to read the sequence from its end. The last step then comes first in
            the sequences of outputs and distances.
        stateful: whether a batch starts from the final states of the one before, until
            `reset_state()`. Needs a fixed batch size.
        fused: `"auto"` uses the fused recurrence for `"tanh"` with `"sigmoid"` gates, else the
            reference implementation. `False` always uses the reference, `True` raises an error for
            other activations.
        **kwargs: `zero_output_for_mask` (whether outputs are 0 where masked),
            `activity_regularizer`, `name`, `dtype`, `trainable`.

    Call arguments:
        sequences: (batch, time, input_dim).
        initial_state: `[h, c]`, each (batch, units). Default: zeros, or the stored states if
            stateful.
        mask: boolean (batch, time), `False` where a step is skipped.
        training: whether to apply dropout.

    Returns:
        `output [, h, c] [, forget_distance, input_distance]`: the output is (batch, units), or
        (batch, time, units) with `return_sequences`; `h` and `c` are (batch, units); the distances
        are (batch, time) in [0, 1), float32 or wider: 1 - the mean of the master forget gate (Eq.
        15), and the mean of the master input gate.

    Raises:
        ValueError: as for `ONLSTMCell`; also for inputs that are not of rank 3, states or masks of
            a wrong shape, ragged tensors, `unroll=True`, `fused=True` with other activations, and
            under `keras.layers.Bidirectional` for distances without states.

    Example:

    >>> import numpy as np
    >>> import keras_onlstm
    >>> layer = keras_onlstm.ONLSTM(6, chunk_size=2, return_sequences=True, return_distances=True)
    >>> output, forget_distance, input_distance = layer(np.ones((4, 5, 3), "float32"))
    >>> tuple(output.shape), tuple(forget_distance.shape)
    ((4, 5, 6), (4, 5))
    """

    def __init__(
        self,
        units: int,
        chunk_size: int = 1,
        activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros",
        unit_forget_bias: bool = False,
        kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        recurrent_weight_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        return_distances: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        fused: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        cell_arguments = {name: value for name, value in locals().items() if name in ARGUMENTS}
        if kwargs.pop("unroll", False):
            raise ValueError("unroll=True is not supported.")
        if not isinstance(fused, bool) and fused != "auto":
            raise ValueError(f"fused must be 'auto', True or False, not {fused!r}.")
        cell = ONLSTMCell(
            **cell_arguments,
            name="onlstm_cell",
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            **kwargs,
        )
        self.return_distances = return_distances
        self.fused = fused
        reason = recurrence.unsupported_reason(cell.activation, cell.recurrent_activation)
        if fused is True and reason:
            message = f"fused=True: {reason}. fused='auto' uses the reference implementation."
            raise ValueError(message)
        self._runs_fused = fused is not False and reason is None
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def call(
        self,
        sequences: Tensor,
        initial_state: Sequence[Tensor] | None = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor | Tensors:
        sequences, h, c = self._initial_states(sequences, initial_state)
        masks = self.cell.draw_masks(ops.shape(sequences)[0]) if training else DropoutMasks()
        if mask is not None:
            mask = self._check_mask(mask, sequences)  # (B, T)
            # Masked steps may hold NaN, and 0 * NaN is NaN: without this it would reach gradients.
            sequences = ops.where(ops.expand_dims(mask, -1), sequences, 0.0)
        if masks.inputs is not None:
            sequences = sequences * ops.expand_dims(masks.inputs, 1)
        if self.go_backwards:
            sequences = ops.flip(sequences, 1)
            mask = None if mask is None else ops.flip(mask, 1)
        result = recurrence.run(
            recurrence.RecurrenceInputs(
                sequences,
                h,
                c,
                self.cell.kernel,
                self.cell.dropped_recurrent_kernel(masks),
                self.cell.bias,
                self.cell.chunk_size,
                self.cell.activation,
                self.cell.recurrent_activation,
                mask=mask,
                recurrent_mask=masks.recurrent,
                training=bool(training),
            ),
            fuse=self._runs_fused,
        )
        output = self._output(result, mask)
        last_c = ops.cast(result.last_c, self.compute_dtype)
        if self.stateful:
            for variable, state in zip(self.states, (result.last_h, last_c), strict=True):
                assign(variable, state)
        returned = [output]
        if self.return_state:
            returned += [result.last_h, last_c]
        if self.return_distances:
            returned += [result.forget_distance, result.input_distance]
        return tuple(returned) if len(returned) > 1 else output

    def _initial_states(self, sequences, initial_state):
        """The sequences and their initial h and c."""
        batch = sequences.shape[0]
        if self.stateful and batch not in (None, self.states[0].shape[0]):
            raise ValueError(
                f"{self.name} is stateful and needs batches of {self.states[0].shape[0]}, "
                f"got a batch of {batch}."
            )
        if initial_state is None:
            if self.stateful:
                # Copies: the backward pass needs them after the variables have changed.
                initial_state = [ops.copy(state) for state in self.states]
            else:
                initial_state = self.cell.get_initial_state(ops.shape(sequences)[0])
        states = [ops.convert_to_tensor(s, dtype=self.compute_dtype) for s in initial_state]
        shapes = [tuple(state.shape) for state in states]
        batches = [sequences.shape[0], *(size for shape in shapes for size in shape[:1])]
        expected = (next((size for size in batches if size is not None), None), self.cell.units)
        if len(states) != 2 or not all(_is_compatible(shape, expected) for shape in shapes):
            raise ValueError(
                f"initial_state must be [h, c], each (batch, {self.cell.units}), got shapes "
                f"{shapes} for sequences of shape {tuple(sequences.shape)}."
            )
        return _with_static_batch(sequences, *states)

    @staticmethod
    def _check_mask(mask, sequences):
        mask = ops.cast(mask, "bool")
        if len(mask.shape) == 3 and mask.shape[-1] == 1:
            mask = ops.squeeze(mask, -1)
        if not _is_compatible(mask.shape, sequences.shape[:2]):
            raise ValueError(
                f"mask must have the shape (batch, time), got {tuple(mask.shape)} for sequences of "
                f"shape {tuple(sequences.shape)}."
            )
        if tuple(mask.shape) != tuple(sequences.shape[:2]):
            # In a graph the mask, and so results, may lack static sizes of the sequences.
            mask = ops.reshape(mask, ops.shape(sequences)[:2])
        return mask

    def _output(self, result, mask):
        """The output of every step (B, T, U), or of the last one (B, U)."""
        # Before the first unmasked step, there is no output to repeat.
        if not self.return_sequences:
            if mask is None:
                has_output = ops.shape(result.h)[1] > 0
            else:
                last = mask[:, -1:] if self.zero_output_for_mask else mask
                has_output = ops.any(last, 1, keepdims=True)  # (B, 1)
            return ops.where(has_output, result.last_h, 0.0)
        if mask is None:
            return result.h
        has_output = mask
        if not self.zero_output_for_mask:
            has_output = ops.cumsum(ops.cast(mask, "int32"), 1) > 0
        return ops.where(ops.expand_dims(has_output, -1), result.h, 0.0)  # (B, T, U)

    def compute_output_shape(
        self, sequences_shape: Shape, initial_state_shape: Any = None
    ) -> Shape | tuple[Shape, ...]:
        batch, time, units = sequences_shape[0], sequences_shape[1], self.cell.units
        shapes = [(batch, time, units) if self.return_sequences else (batch, units)]
        if self.return_state:
            shapes += [(batch, units), (batch, units)]
        if self.return_distances:
            shapes += [(batch, time), (batch, time)]
        return tuple(shapes) if len(shapes) > 1 else shapes[0]

    def compute_output_spec(
        self, sequences: Tensor, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> KerasTensor | tuple[KerasTensor, ...]:
        shapes = self.compute_output_shape(tuple(sequences.shape))
        if not isinstance(shapes[0], tuple):
            return KerasTensor(shapes, self.compute_dtype)
        dtypes = [self.compute_dtype] * len(shapes)
        if self.return_distances:
            dtypes[-2:] = [wide_dtype(self.compute_dtype)] * 2
        return tuple(KerasTensor(s, d) for s, d in zip(shapes, dtypes, strict=True))

    def compute_mask(self, sequences: Tensor, mask: Any = None, **_: Any) -> Any:
        mask = keras.tree.flatten(mask)[0]
        masks = [mask if self.return_sequences else None]
        if self.return_state:
            masks += [None, None]
        if self.return_distances:
            masks += [self._distance_mask(mask)] * 2
        return masks if len(masks) > 1 else masks[0]

    def _distance_mask(self, mask):
        """The mask of the distances (B, T), which are in the order of reading."""
        if mask is None:
            return None
        if len(mask.shape) == 3:
            mask = ops.squeeze(mask, -1)
        return ops.flip(mask, 1) if self.go_backwards else mask

    def __setattr__(self, name: str, value: Any) -> None:
        # After construction only `keras.layers.Bidirectional` sets this, as it documents. It treats
        # all results of a layer as one output, unless the layer returns states: then it merges the
        # first result and passes on the others. A property would not work, because TensorFlow does
        # not set one to a value that it already has.
        merged = name == "zero_output_for_mask" and getattr(self, "return_distances", False)
        if merged and not self.return_state:
            raise ValueError(
                f"{self.name}: keras.layers.Bidirectional would merge distances with outputs. Set "
                "return_state=True too: then both directions' states and distances follow the "
                "output."
            )
        super().__setattr__(name, value)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Replaces the cell's kernels by 8-bit kernels, see `ONLSTMCell`."""
        check_mode(self, mode)
        self.cell.quantize(mode, config=config)
        self._is_quantized = True
        self.dtype_policy = self.cell.dtype_policy

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # it reads dequantized kernels

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["cell"], config["unroll"]
        return {
            **config,
            "dtype": keras.dtype_policies.serialize(self.cell.dtype_policy),  # may be quantized
            **self.cell.own_config(),
            "return_distances": self.return_distances,
            "fused": self.fused,
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


# As in `keras.layers.LSTM`, the layer has the attributes of its cell.
for _name in ARGUMENTS:
    setattr(ONLSTM, _name, property(attrgetter(f"cell.{_name}"), doc=f"`{_name}` of the cell."))
