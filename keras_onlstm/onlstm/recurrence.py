"""The recurrence of ON-LSTM: its inputs and outputs, the reference implementation, the fast one.

Axes as in `keras_onlstm.onlstm.gates`.
"""

from typing import NamedTuple

from keras import activations, backend, ops

from keras_onlstm.onlstm.fused_step import ONLSTMStep
from keras_onlstm.onlstm.step import project, step
from keras_onlstm.recurrence import engine
from keras_onlstm.recurrence.gated_step import GatedWeights, run_gated
from keras_onlstm.utils import Activation, Tensor
from keras_onlstm.utils.numerics import matmul, mean, wide_dtype


class RecurrenceInputs(NamedTuple):
    """The inputs of a recurrence over a sequence."""

    inputs: Tensor  # (B, T, D)
    h: Tensor  # (B, U) initial hidden state
    c: Tensor  # (B, U) initial cell state
    kernel: Tensor  # (D, K)
    recurrent_kernel: Tensor  # (U, K)
    bias: Tensor | None  # (K,)
    chunk_size: int  # C
    activation: Activation  # as in `keras_onlstm.onlstm.step.step`
    recurrent_activation: Activation
    mask: Tensor | None = None  # (B, T) boolean, False where the step is skipped
    recurrent_mask: Tensor | None = None  # (B, U) factors of h wherever the gates read it
    training: bool = False  # whether gradients will probably be needed


class RecurrenceOutputs(NamedTuple):
    """The results of a recurrence over a sequence."""

    h: Tensor  # (B, T, U) hidden state after every step
    last_h: Tensor  # (B, U)
    last_c: Tensor  # (B, U), float32 or wider
    forget_distance: Tensor  # (B, T), float32 or wider, 0 where masked
    input_distance: Tensor  # (B, T), float32 or wider, 0 where masked


# A context in which every `ONLSTM` runs another function from `RecurrenceInputs` to
# `RecurrenceOutputs`: for exports, and for comparisons with an exported model.
substituted = engine.Substitution("recurrence")


def run(inputs: RecurrenceInputs, fuse: bool) -> RecurrenceOutputs:
    """Runs the recurrence over a whole sequence, with the engine if `fuse`."""
    return (substituted.function.get() or (fused if fuse else reference))(inputs)


def unsupported_reason(activation: Activation, recurrent_activation: Activation) -> str | None:
    """Why these activations cannot be fused, or `None`. Only tanh and sigmoid have derivatives."""
    for name, function, supported in (
        ("activation", activation, activations.tanh),
        ("recurrent_activation", recurrent_activation, activations.sigmoid),
    ):
        if function is not supported:
            description = getattr(function, "__name__", None) or repr(function)
            return f"{name} is {description}, and only {supported.__name__} is fused"
    return None


def fused(inputs: RecurrenceInputs) -> RecurrenceOutputs:
    """The fast implementation, for tanh and sigmoid."""
    dtype = backend.standardize_dtype(inputs.h.dtype)
    step = ONLSTMStep(inputs.h.shape[-1], dtype, inputs.chunk_size)
    kernels = inputs.kernel, inputs.recurrent_kernel
    weights = GatedWeights(*kernels, inputs.bias, inputs.recurrent_mask)
    arguments = inputs.inputs, (inputs.h, inputs.c), inputs.mask, inputs.training
    h, last_h, last_c, (cumax,) = run_gated(step, weights, *arguments)
    means = ops.sum(cumax, 2) / step.chunks  # (T, 2, B)
    distances = 1.0 - means[:, 1], 1.0 - means[:, 0]  # forget, input
    mask = None if inputs.mask is None else ops.transpose(inputs.mask)
    return _outputs(h, last_h, last_c, distances, mask)


def _outputs(h, last_h, last_c, distances, mask):
    """`RecurrenceOutputs`, from tensors with time first."""
    if mask is not None:
        distances = [ops.where(mask, distance, 0.0) for distance in distances]
    distances = [ops.transpose(distance) for distance in distances]
    return RecurrenceOutputs(ops.transpose(h, (1, 0, 2)), last_h, last_c, *distances)


def reference(inputs: RecurrenceInputs) -> RecurrenceOutputs:
    """Reference implementation: a loop over `step`. The fast one is tested against it."""
    (batch, units), dtype, wide = inputs.h.shape, inputs.h.dtype, wide_dtype(inputs.h.dtype)

    def body(carry, row):
        (h_tm1, c_tm1), (projected, mask) = carry, row
        read = h_tm1 if inputs.recurrent_mask is None else h_tm1 * inputs.recurrent_mask
        new = step(
            projected + matmul(read, inputs.recurrent_kernel),  # (B, K)
            c_tm1,
            chunk_size=inputs.chunk_size,
            activation=inputs.activation,
            recurrent_activation=inputs.recurrent_activation,
        )
        h_t, c_t = ops.cast(new.h, dtype), new.c
        if mask is not None:
            mask = ops.expand_dims(mask, -1)  # (B, 1)
            h_t, c_t = ops.where(mask, h_t, h_tm1), ops.where(mask, c_t, c_tm1)
        return (h_t, c_t), (h_t, 1.0 - mean(new.master_forget), mean(new.master_input)), ()

    x = ops.transpose(inputs.inputs, (1, 0, 2))  # (T, B, D)
    projected = project(x, inputs.kernel, inputs.bias)  # (T, B, K)
    mask = None if inputs.mask is None else ops.transpose(inputs.mask)
    carry = inputs.h, ops.cast(inputs.c, wide)
    if x.shape[0] == 1:  # streaming needs no loop
        carry, ys, _ = body(carry, (projected[0], None if mask is None else mask[0]))
        ys = [ops.expand_dims(y, 0) for y in ys]
    else:
        specs = (((batch, units), dtype), ((batch,), wide), ((batch,), wide))
        carry, ys, _ = engine.scan(body, carry, (projected, mask), specs)
    last_h, last_c = carry
    return _outputs(ys[0], last_h, last_c, ys[1:], mask)
