"""The readable recurrence: `step`, once for every row of time.

It is what every faster one is compared with, and what runs where no faster one can.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_onlstm.numerics import matmul, mean, wide_dtype
from keras_onlstm.recurrence.scan import scan
from keras_onlstm.step import project, step

__all__ = ["Recurrence", "run"]


class Recurrence(NamedTuple):
    """What a recurrence returns."""

    h: Any  # (B, T, U) hidden state after every step, carried where masked
    last_h: Any  # (B, U)
    last_c: Any  # (B, U), float32 or wider
    forget_distance: Any  # (B, T), float32 or wider, 0 where masked
    input_distance: Any  # (B, T), float32 or wider, 0 where masked


def run(
    inputs,
    h,
    c,
    kernel,
    recurrent_kernel,
    bias=None,
    *,
    mask=None,
    recurrent_mask=None,
    chunk_size,
    activation,
    recurrent_activation,
):
    """Runs the recurrence over a whole sequence.

    Args:
        inputs: (B, T, D).
        h: (B, U) initial hidden state.
        c: (B, U) initial cell state.
        kernel: (D, K).
        recurrent_kernel: (U, K).
        bias: (K,) or `None`.
        mask: (B, T) boolean, `False` where the step is to be skipped, or `None`.
        recurrent_mask: (B, U) factors of the hidden state wherever the gates read it, or `None`.
        chunk_size: integer, C.
        activation: as in `step`.
        recurrent_activation: as in `step`.

    Returns:
        `Recurrence`.
    """
    dtype, wide = h.dtype, wide_dtype(h.dtype)
    batch, units = h.shape

    def body(carry, row):
        h_tm1, c_tm1 = carry
        seen = h_tm1 if recurrent_mask is None else h_tm1 * recurrent_mask
        z = row[0] + matmul(seen, recurrent_kernel)  # (B, K)
        new = step(
            z,
            c_tm1,
            chunk_size=chunk_size,
            activation=activation,
            recurrent_activation=recurrent_activation,
        )
        h_t, c_t = ops.cast(new.h, dtype), new.c
        if mask is not None:
            keep = ops.expand_dims(row[1], -1)  # (B, 1)
            h_t, c_t = ops.where(keep, h_t, h_tm1), ops.where(keep, c_t, c_tm1)
        forget_distance = 1.0 - mean(new.master_forget)  # (B,)
        input_distance = mean(new.master_input)  # (B,)
        return (h_t, c_t), (h_t, forget_distance, input_distance)

    projected = project(ops.transpose(inputs, (1, 0, 2)), kernel, bias)  # (T, B, K)
    rows = (projected,) if mask is None else (projected, ops.transpose(mask))
    specs = (((batch, units), dtype), ((batch,), wide), ((batch,), wide))
    (last_h, last_c), (h, forget_distance, input_distance) = scan(
        body, (h, ops.cast(c, wide)), rows, specs
    )
    forget_distance, input_distance = ops.transpose(forget_distance), ops.transpose(input_distance)
    if mask is not None:
        forget_distance = ops.where(mask, forget_distance, 0.0)
        input_distance = ops.where(mask, input_distance, 0.0)
    return Recurrence(ops.transpose(h, (1, 0, 2)), last_h, last_c, forget_distance, input_distance)
