"""ONLSTMCell: the weights and the configuration of ON-LSTM, for `keras.layers.RNN`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import activations, constraints, initializers, ops, regularizers

from keras_onlstm.onlstm.int8 import Int8Kernels
from keras_onlstm.onlstm.step import gate_offsets, gate_width, project, step
from keras_onlstm.utils import Identifier, Shape, Tensor
from keras_onlstm.utils.keras_private import DropoutRNNCell
from keras_onlstm.utils.numerics import matmul
from keras_onlstm.utils.validation import check_integer

__all__ = ["DropoutMasks", "ONLSTMCell"]


class DropoutMasks(NamedTuple):
    """Dropout masks of one sequence: scaled factors, or `None`."""

    inputs: Tensor | None = None  # (B, D)
    recurrent: Tensor | None = None  # (B, U)
    recurrent_kernel: Tensor | None = None  # (U, K)


def _rate(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{name} is a share to drop, in [0, 1), not {value!r}.")
    return float(value)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class ONLSTMCell(DropoutRNNCell, Int8Kernels):
    """One step of ON-LSTM, an LSTM whose neurons are ordered by two master gates.

    Use it in `keras.layers.RNN`, `keras.layers.StackedRNNCells` or `keras.layers.Bidirectional`;
    `keras_onlstm.ONLSTM` computes the same faster. `RNN` also computes masked steps, and then
    discards their states. So, as in `keras.layers.LSTM`, masked inputs must be finite for finite
    gradients; `ONLSTM` never reads them.

    The units are divided into chunks of `chunk_size` neighbours. A master forget gate and a master
    input gate, each a `cumax` over the chunks, decide how far up the order a step erases and
    writes; within that, the gates of an LSTM work as usual. Since `cumax` ends at exactly 1, the
    last chunk is never written or forgotten: from a zero initial state it stays 0, as in the paper
    and the authors' implementation.

    Weights: `kernel` (input_dim, K), `recurrent_kernel` (units, K), `bias` (K,) with
    K = 4 * units + 2 * units // chunk_size; columns in the order of
    `keras_onlstm.onlstm.step.GATES`: master input and master forget gate (units // chunk_size
    each), output gate, candidate, input gate, forget gate (units each). States: `[h, c]`, each
    (batch, units).

    Source: Shen et al. 2019, "Ordered Neurons", Eq. 6 to 15, https://arxiv.org/abs/1810.09536.

    Args:
        units: positive integer, size of the output and of both states.
        chunk_size: positive integer that divides `units`. Default 1: every unit has its own master
            gates.
        activation: activation of the candidate and of the cell state. Default `"tanh"`; `None` is
            the identity.
        recurrent_activation: activation of the output, input and forget gates. Default `"sigmoid"`;
            `None` is the identity.
        use_bias: whether there is a bias. Default `True`.
        kernel_initializer: default `"glorot_uniform"`.
        recurrent_initializer: default `"orthogonal"`.
        bias_initializer: default `"zeros"`.
        unit_forget_bias: add 1 to the initial bias of the forget gate (not of the master forget
            gate). Default `False`, as in the authors' implementation.
        kernel_regularizer: regularizer of `kernel`. Default none.
        recurrent_regularizer: regularizer of `recurrent_kernel`. Default none.
        bias_regularizer: regularizer of `bias`. Default none.
        kernel_constraint: constraint of `kernel`. Default none.
        recurrent_constraint: constraint of `recurrent_kernel`. Default none.
        bias_constraint: constraint of `bias`. Default none.
        dropout: share of the inputs to drop, one mask (batch, input_dim) per sequence. Default 0.
        recurrent_dropout: share of the hidden state to drop where the gates read it, one mask
            (batch, units) per sequence. Default 0.
        recurrent_weight_dropout: share of the entries of `recurrent_kernel` to drop, one mask per
            sequence for the whole batch (Merity et al. 2018's DropConnect). The other entries are
            scaled up, so that inference uses the stored weights. Default 0.
        seed: integer seed of dropout. Default: random.
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
        units, chunk_size = self._sizes(units, chunk_size)
        super().__init__(**kwargs)
        self.units = units
        self.chunk_size = chunk_size
        self.activation = activations.get(activation)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.unit_forget_bias = unit_forget_bias
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = regularizers.get(recurrent_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.recurrent_constraint = constraints.get(recurrent_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.dropout = _rate("dropout", dropout)
        self.recurrent_dropout = _rate("recurrent_dropout", recurrent_dropout)
        self.recurrent_weight_dropout = _rate("recurrent_weight_dropout", recurrent_weight_dropout)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size = [units, units]
        self.output_size = units
        self._sequence_masks: DropoutMasks | None = None

    @staticmethod
    def _sizes(units, chunk_size):
        units, chunk_size = check_integer("units", units), check_integer("chunk_size", chunk_size)
        if units % chunk_size:
            raise ValueError(
                f"chunk_size={chunk_size} does not divide units={units}: each value of a master "
                "gate serves one whole chunk of units."
            )
        return units, chunk_size

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
            self._kernel = self.add_weight(
                shape=shapes[0],
                name="kernel",
                initializer=self.kernel_initializer,
                regularizer=self.kernel_regularizer,
                constraint=self.kernel_constraint,
            )
            self._recurrent_kernel = self.add_weight(
                shape=shapes[1],
                name="recurrent_kernel",
                initializer=self.recurrent_initializer,
                regularizer=self.recurrent_regularizer,
                constraint=self.recurrent_constraint,
            )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(width,),
                name="bias",
                initializer=self._initial_bias,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def _initial_bias(self, shape, dtype=None):
        bias = self.bias_initializer(shape, dtype=dtype)
        if not self.unit_forget_bias:
            return bias
        forget = gate_offsets(self.units, self.chunk_size)["forget"]
        return ops.slice_update(bias, [forget.start], bias[forget] + 1.0)

    def draw_masks(self, batch_size: int | Tensor) -> DropoutMasks:
        """Draws the dropout masks of one sequence.

        Args:
            batch_size: integer or scalar tensor.

        Returns:
            `DropoutMasks`.
        """

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

    # `keras.layers.RNN` calls these four around its loop: see `utils.keras_private`.

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
        seen = h_tm1 if masks.recurrent is None else h_tm1 * masks.recurrent
        z = project(inputs, self.kernel, self.bias) + matmul(
            seen, self.dropped_recurrent_kernel(masks)
        )
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
        return {
            "units": self.units,
            "chunk_size": self.chunk_size,
            "activation": activations.serialize(self.activation),
            "recurrent_activation": activations.serialize(self.recurrent_activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": initializers.serialize(self.recurrent_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
            "unit_forget_bias": self.unit_forget_bias,
            "kernel_regularizer": regularizers.serialize(self.kernel_regularizer),
            "recurrent_regularizer": regularizers.serialize(self.recurrent_regularizer),
            "bias_regularizer": regularizers.serialize(self.bias_regularizer),
            "kernel_constraint": constraints.serialize(self.kernel_constraint),
            "recurrent_constraint": constraints.serialize(self.recurrent_constraint),
            "bias_constraint": constraints.serialize(self.bias_constraint),
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "recurrent_weight_dropout": self.recurrent_weight_dropout,
            "seed": self.seed,
        }
