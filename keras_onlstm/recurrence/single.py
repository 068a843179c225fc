"""The recurrence over one row of time, without a loop: what streaming needs."""

from keras import ops

from keras_onlstm.numerics import matmul, mean
from keras_onlstm.recurrence.reference import Recurrence
from keras_onlstm.step import project, step

__all__ = ["run"]


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
    """As `keras_onlstm.recurrence.reference.run`, for inputs (B, 1, D)."""
    seen = h if recurrent_mask is None else h * recurrent_mask
    z = project(inputs[:, 0], kernel, bias) + matmul(seen, recurrent_kernel)  # (B, K)
    new = step(
        z,
        c,
        chunk_size=chunk_size,
        activation=activation,
        recurrent_activation=recurrent_activation,
    )
    h_t, c_t = ops.cast(new.h, h.dtype), new.c
    distances = [1.0 - mean(new.master_forget), mean(new.master_input)]  # (B,)
    distances = [ops.expand_dims(distance, 1) for distance in distances]  # (B, 1)
    if mask is not None:
        h_t, c_t = ops.where(mask, h_t, h), ops.where(mask, c_t, ops.cast(c, c_t.dtype))
        distances = [ops.where(mask, distance, 0.0) for distance in distances]
    return Recurrence(ops.expand_dims(h_t, 1), h_t, c_t, *distances)
