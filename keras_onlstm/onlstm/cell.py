"""ONLSTMCell: the weights and the configuration of ON-LSTM, for `keras.layers.RNN`."""

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import activations, constraints, initializers, ops, regularizers

from keras_onlstm.onlstm.gates import gate_offsets, gate_width
from keras_onlstm.onlstm.int8 import Int8Kernels
from keras_onlstm.onlstm.step import project, step
from keras_onlstm.utils import Identifier, Shape, Tensor
from keras_onlstm.utils.keras_private import DropoutRNNCell
from keras_onlstm.utils.numerics import matmul
from keras_onlstm.utils.validation import check_integer


class DropoutMasks(NamedTuple):
    """Dropout masks of one sequence: scaled factors, or `None`."""

    inputs: Tensor | None = None  # (B, D)
    recurrent: Tensor | None = None  # (B, U)
    recurrent_kernel: Tensor | None = None  # (U, K)


def _check_rate(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a rate in [0, 1), not {value!r}.")
    return float(value)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class ONLSTMCell(DropoutRNNCell, Int8Kernels):
    """One step of ON-LSTM, an LSTM whose neurons are ordered by two master gates.

    Use it in `keras.layers.RNN`, `StackedRNNCells` or `Bidirectional`; `keras_onlstm.ONLSTM`
    computes the same faster. `RNN` also computes masked steps, and then discards their states. So,
    as in `keras.layers.LSTM`, masked inputs must be finite for finite gradients; `ONLSTM` never
    reads them.

    The units are divided into chunks of `chunk_size` neighbours. A master forget gate and a master
    input gate, each a `cumax` over the chunks, decide how far up the order a step erases and
    writes; within that, the gates of an LSTM work as usual. Since `cumax` ends at exactly 1, the
    last chunk is never written or forgotten: from a zero initial state it stays 0, as in the paper
    and the authors' implementation.

    Weights: `kernel` (input_dim, K), `recurrent_kernel` (units, K), `bias` (K,) with
    K = 4 * units + 2 * units // chunk_size. Columns, in the order of
    `keras_onlstm.onlstm.gates.GATES`: master input and master forget gate (units // chunk_size
    each), output gate, candidate, input gate, forget gate (units each).

    Source: Shen et al. 2019, "Ordered Neurons", Eq. 6 to 15, https://arxiv.org/abs/1810.09536.

    Args:
        units: positive integer, size of the output and of both states.
        chunk_size: positive integer that divides `units`. 1: every unit has its own master gates.
        activation: activation of the candidate and of the cell state; `None` is the identity.
        recurrent_activation: activation of the output, input and forget gates.
        use_bias: whether there is a bias.
        kernel_initializer: initializer of `kernel`.
        recurrent_initializer: initializer of `recurrent_kernel`.
        bias_initializer: initializer of `bias`.
        unit_forget_bias: whether to add 1 to the initial bias of the forget gate (not of the master
            forget gate).
        kernel_regularizer: regularizer of `kernel`.
        recurrent_regularizer: regularizer of `recurrent_kernel`.
        bias_regularizer: regularizer of `bias`.
        kernel_constraint: constraint of `kernel`.
        recurrent_constraint: constraint of `recurrent_kernel`.
        bias_constraint: constraint of `bias`.
        dropout: dropout rate of the inputs, one mask (batch, input_dim) per sequence.
        recurrent_dropout: dropout rate of the hidden state where the gates read it, one mask
            (batch, units) per sequence.
        recurrent_weight_dropout: dropout rate of the entries of `recurrent_kernel` (DropConnect,
            Merity et al. 2018), one mask per sequence for the whole batch.
        seed: integer seed of dropout, or `None`: random.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: (batch, input_dim).
        states: `[h, c]`, each (batch, units).
        training: whether to apply dropout. Outside `keras.layers.RNN`, every call draws new masks.

    Raises:
        ValueError: if sizes are not positive integers, `chunk_size` does not divide `units`, a rate
            is outside [0, 1), or the inputs are not of rank 2.

    Example:

    >>> import keras, numpy as np
    >>> import keras_onlstm
    >>> layer = keras.layers.RNN(keras_onlstm.ONLSTMCell(6, chunk_size=2))
    >>> output = layer(np.ones((4, 5, 3), "float32"))
    >>> tuple(output.shape)
    (4, 6)
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
        **kwargs: Any,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name in ARGUMENTS}
        arguments["units"] = check_integer("units", units)
        arguments["chunk_size"] = check_integer("chunk_size", chunk_size)
        if units % chunk_size:
            raise ValueError(
                f"units must be divisible by chunk_size, got units={units} and "
                f"chunk_size={chunk_size}."
            )
        super().__init__(**kwargs)
        for name, value in arguments.items():
            kind = _KINDS.get(name.rpartition("_")[2])
            if name.endswith("dropout"):
                value = _check_rate(name, value)
            setattr(self, name, value if kind is None else kind.get(value))
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size = [self.units, self.units]
        self.output_size = self.units
        self._sequence_masks: DropoutMasks | None = None

    def build(self, input_shape: Shape) -> None:
        if len(input_shape) != 2 or not input_shape[-1]:
            raise ValueError(
                "ONLSTMCell reads one time step, (batch, input_dim) with a known input_dim, 1 or "
                f"above, not inputs of shape {tuple(input_shape)}. Whole sequences go to ONLSTM or "
                "keras.layers.RNN."
            )
        width = gate_width(self.units, self.chunk_size)
        shapes = [(input_shape[-1], width), (self.units, width)]
        if self.quantization_mode:
            self.quantized_build(shapes, self.quantization_mode)
        else:
            for prefix, shape in zip(("", "recurrent_"), shapes, strict=True):
                weight = self._add_cell_weight(shape, f"{prefix}kernel", prefix or "kernel_")
                setattr(self, f"_{prefix}kernel", weight)
        self.bias = None
        if self.use_bias:
            self.bias = self._add_cell_weight((width,), "bias", "bias_", self._initial_bias)
        self.built = True

    def _add_cell_weight(self, shape, name, prefix, initializer=None):
        return self.add_weight(
            shape=shape,
            name=name,
            initializer=initializer or getattr(self, f"{prefix}initializer"),
            regularizer=getattr(self, f"{prefix}regularizer"),
            constraint=getattr(self, f"{prefix}constraint"),
        )

    def _initial_bias(self, shape, dtype=None):
        bias = self.bias_initializer(shape, dtype=dtype)
        if not self.unit_forget_bias:
            return bias
        forget = gate_offsets(self.units, self.chunk_size)["forget"]
        return ops.slice_update(bias, [forget.start], bias[forget] + 1.0)

    def draw_masks(self, batch_size: int | Tensor) -> DropoutMasks:
        """Draws the dropout masks of one sequence."""

        def draw(rate, shape):
            if rate == 0:
                return None
            ones = ops.ones(shape, dtype=self.compute_dtype)
            return keras.random.dropout(ones, rate, seed=self.seed_generator)

        return DropoutMasks(
            draw(self.dropout, (batch_size, self.kernel.shape[0])),
            draw(self.recurrent_dropout, (batch_size, self.units)),
            draw(self.recurrent_weight_dropout, self.recurrent_kernel.shape),
        )

    def dropped_recurrent_kernel(self, masks: DropoutMasks) -> Tensor:
        """`recurrent_kernel`; with a mask, their product in the compute dtype."""
        if masks.recurrent_kernel is None:
            return self.recurrent_kernel
        return ops.cast(self.recurrent_kernel, self.compute_dtype) * masks.recurrent_kernel

    # `keras.layers.RNN` calls these four methods of `DropoutRNNCell` around its loop.

    def get_dropout_mask(self, step_input: Tensor) -> None:
        self._sequence_masks = self.draw_masks(ops.shape(step_input)[0])

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> None:
        pass  # drawn with the other masks

    def reset_dropout_mask(self) -> None:
        self._sequence_masks = None

    def reset_recurrent_dropout_mask(self) -> None:
        pass

    def call(
        self, inputs: Tensor, states: Sequence[Tensor], training: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        h_tm1, c_tm1 = states
        masks = DropoutMasks()
        if training:
            masks = self._sequence_masks or self.draw_masks(ops.shape(inputs)[0])
        if masks.inputs is not None:
            inputs = inputs * masks.inputs
        read = h_tm1 if masks.recurrent is None else h_tm1 * masks.recurrent
        recurrent_kernel = self.dropped_recurrent_kernel(masks)
        z = project(inputs, self.kernel, self.bias) + matmul(read, recurrent_kernel)  # (B, K)
        new = step(
            z,
            c_tm1,
            chunk_size=self.chunk_size,
            activation=self.activation,
            recurrent_activation=self.recurrent_activation,
        )
        h, c = ops.cast(new.h, self.compute_dtype), ops.cast(new.c, self.compute_dtype)
        return h, [h, c]

    def get_initial_state(self, batch_size: int | Tensor | None = None) -> list[Tensor]:
        """Zero states `[h, c]`, each (batch_size, units)."""
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in self.state_size]

    def compute_output_shape(
        self, inputs_shape: Shape, states_shape: Any = None
    ) -> tuple[Shape, list[Shape]]:
        state = (inputs_shape[0], self.units)
        return state, [state, state]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.own_config()}

    def own_config(self) -> dict[str, Any]:
        """The arguments of `__init__` without those of `keras.layers.Layer`."""
        config = {}
        for name in ARGUMENTS:
            value, kind = getattr(self, name), _KINDS.get(name.rpartition("_")[2])
            config[name] = value if kind is None else kind.serialize(value)
        return config


# Read from the signature, because making a cell would start the backend, after which its devices
# cannot be divided.
ARGUMENTS = tuple(inspect.signature(ONLSTMCell).parameters)[:-1]
_KINDS: dict[str, Any] = {
    "activation": activations,
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
}
