"""The recurrence over one row of time, without a loop: what streaming needs."""

from keras import ops

from keras_onlstm.onlstm.recurrence.problem import Problem, Recurrence
from keras_onlstm.onlstm.step import project, step
from keras_onlstm.utils.numerics import matmul, mean

__all__ = ["run"]


def run(problem: Problem) -> Recurrence:
    """As `keras_onlstm.onlstm.recurrence.reference.run`, for inputs (B, 1, D)."""
    h, c, mask = problem.h, problem.c, problem.mask
    seen = h if problem.recurrent_mask is None else h * problem.recurrent_mask
    projected = project(problem.inputs[:, 0], problem.kernel, problem.bias)
    new = step(
        projected + matmul(seen, problem.recurrent_kernel),  # (B, K)
        c,
        chunk_size=problem.chunk_size,
        activation=problem.activation,
        recurrent_activation=problem.recurrent_activation,
    )
    h_t, c_t = ops.cast(new.h, h.dtype), new.c
    distances = [1.0 - mean(new.master_forget), mean(new.master_input)]  # (B,)
    distances = [ops.expand_dims(distance, 1) for distance in distances]  # (B, 1)
    if mask is not None:
        h_t, c_t = ops.where(mask, h_t, h), ops.where(mask, c_t, ops.cast(c, c_t.dtype))
        distances = [ops.where(mask, distance, 0.0) for distance in distances]
    return Recurrence(ops.expand_dims(h_t, 1), h_t, c_t, *distances)
