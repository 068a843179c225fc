"""The readable recurrence: `step`, once for every row of time.

It is what every faster one is compared with, and what runs where no faster one can.
"""

from keras import ops

from keras_onlstm.onlstm.recurrence.problem import Problem, Recurrence
from keras_onlstm.onlstm.step import project, step
from keras_onlstm.utils.differentiable import scan
from keras_onlstm.utils.numerics import matmul, mean, wide_dtype

__all__ = ["run", "run_single"]


def run(problem: Problem) -> Recurrence:
    """Runs the recurrence over a whole sequence."""
    h, c, mask = problem.h, problem.c, problem.mask
    dtype, wide = h.dtype, wide_dtype(h.dtype)
    batch, units = h.shape

    def body(carry, row):
        h_tm1, c_tm1 = carry
        seen = h_tm1 if problem.recurrent_mask is None else h_tm1 * problem.recurrent_mask
        z = row[0] + matmul(seen, problem.recurrent_kernel)  # (B, K)
        new = step(
            z,
            c_tm1,
            chunk_size=problem.chunk_size,
            activation=problem.activation,
            recurrent_activation=problem.recurrent_activation,
        )
        h_t, c_t = ops.cast(new.h, dtype), new.c
        if mask is not None:
            keep = ops.expand_dims(row[1], -1)  # (B, 1)
            h_t, c_t = ops.where(keep, h_t, h_tm1), ops.where(keep, c_t, c_tm1)
        forget_distance = 1.0 - mean(new.master_forget)  # (B,)
        input_distance = mean(new.master_input)  # (B,)
        return (h_t, c_t), (h_t, forget_distance, input_distance)

    x = ops.transpose(problem.inputs, (1, 0, 2))  # (T, B, D)
    projected = project(x, problem.kernel, problem.bias)  # (T, B, K)
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


def run_single(problem: Problem) -> Recurrence:
    """`run` without a loop, for inputs (B, 1, D), as in streaming."""
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
