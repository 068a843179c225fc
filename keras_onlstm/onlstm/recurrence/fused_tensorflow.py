"""The fast recurrence in TensorFlow.

The loops over time are `tf.while_loop`s, so that any length runs without compiling anew; what is
done in one step is compiled with XLA, once for each size of the batch. Where the whole model is
compiled with XLA, so are the loops.

On processors XLA widens halves before it multiplies them, which TensorFlow does not, so products of
bfloat16 are left to TensorFlow, and what is compiled is the rest of the step.
"""

import functools
from collections.abc import Sequence

from keras import ops

from keras_onlstm.onlstm.recurrence.fused_groups import (
    after_steps,
    backward_step,
    backward_step_of,
    column_groups,
    forward_step,
    group_slopes,
    grouped,
    joined,
    recurrent_products,
    slopes_and_back,
    step_after_product,
    through_product,
)
from keras_onlstm.onlstm.recurrence.fused_step import (
    NOT_FUSED,
    Given,
    Sizes,
    Slopes,
    constants,
    distances,
    is_small,
    large_products,
    through_distances,
)
from keras_onlstm.onlstm.step import MASTER_GATES
from keras_onlstm.utils.backend_tensorflow import compiled, has_gpu, refusing, values
from keras_onlstm.utils.types import Tensor

__all__ = ["run"]

_DERIVED = ("inputs", "h", "c", "kernel", "recurrent_kernel", "bias")  # of `Given`


def _products_apart(sizes):
    """Whether the recurrent products are better outside of what is compiled."""
    return sizes.dtype == "bfloat16" and not is_small(sizes) and not has_gpu()


def _xla_multiplies(sizes):
    """Whether XLA makes the recurrent products, for a processor."""
    return not (is_small(sizes) or has_gpu() or _products_apart(sizes))


def _column_groups(batch, sizes):
    return column_groups(batch) if _xla_multiplies(sizes) else [slice(None)]


def _widened(kernel, sizes):
    """The kernel as XLA wants it in each step: for a processor it widens halves before products."""
    return ops.cast(kernel, sizes.wide) if _xla_multiplies(sizes) else kernel


def _step(step, sizes, **options):
    """A step, compiled or not: compiling a small one takes longer than it saves."""
    if is_small(sizes):
        return functools.partial(step, sizes=sizes, **options)
    return compiled(step, sizes=sizes, **options)


def _forward_step(sizes, save):
    """`forward_step`, as fast as it can be had."""
    if not _products_apart(sizes):
        return _step(forward_step, sizes, save=save)
    rest = _step(step_after_product, sizes, save=save)

    def step(turned_kernel, bias, row, h, c, keep, recurrent_mask, fixed):
        products = recurrent_products(turned_kernel, h, recurrent_mask)
        return rest(products, bias, row, h, c, keep, fixed)

    return step


def _backward_step_of(sizes):
    """`backward_step_of`, as fast as it can be had."""
    if not _products_apart(sizes):
        return _step(backward_step_of, sizes)
    first = _step(slopes_and_back, sizes)

    def step(kernel, dh, dc, saved, c_tm1, c, keep, d_row, d_rises, recurrent_mask, fixed):
        dz, passed, dc, row = first(dh, dc, saved, c_tm1, c, keep, d_row, d_rises, fixed)
        return through_product(kernel, dz, passed, recurrent_mask, sizes), dc, row

    return step


def _array(length, shape, dtype):
    """One row a step."""
    import tensorflow as tf

    # The backward pass reads these arrays too, and may run twice, on a persistent tape.
    return tf.TensorArray(dtype, size=length, element_shape=shape, clear_after_read=False)


def _rows(x):
    """The rows of an array, each of which is read once: a function from the place to the row."""
    if x is None:
        return lambda t: None
    return _array(_length(x), x.shape[1:], x.dtype).unstack(x).read


def _loop(body, start, length):
    import tensorflow as tf

    def counted(t, *carry):
        return t + 1, *body(t, *carry)

    def more(t, *_):
        return t < length

    return tf.while_loop(more, counted, (0, *start), maximum_iterations=length)[1:]


def _length(x):
    import tensorflow as tf

    return tf.shape(x)[0] if x.shape[0] is None else x.shape[0]


def _group_shapes(batch, groups):
    """The sizes of the groups, as far as they are known."""
    return [None if batch is None else len(range(*group.indices(batch))) for group in groups]


def _turned(x):
    import tensorflow as tf

    return None if x is None else tf.transpose(x)


def _forward(tensors, sizes, save):
    """The results, batch first, and what the way back needs beside `tensors`."""
    import tensorflow as tf

    step, fixed = _forward_step(sizes, save), constants(sizes)
    x = tf.transpose(tensors.inputs, (1, 0, 2))  # (T, B, D)
    batch, width, groups = x.shape[1], tensors.kernel.shape[1], _column_groups(x.shape[1], sizes)
    flat = tf.reshape(x, (-1, x.shape[-1])) @ tensors.kernel
    bias = tensors.bias
    if bias is not None and is_small(sizes):  # else part of what is compiled, where it is free
        flat, bias = flat + bias, None
    projected = tf.reshape(flat, (*ops.shape(x)[:2], width))  # (T, B, K)
    turned_kernel = _widened(tf.transpose(tensors.recurrent_kernel), sizes)  # (K, U)
    keep, recurrent_mask = _turned(tensors.mask), _turned(tensors.recurrent_mask)
    row, keep_of, length = _rows(projected), _rows(keep), _length(x)
    array = functools.partial(_array, length)
    results = [array((batch, sizes.units), sizes.dtype)]
    results += [array((len(MASTER_GATES), sizes.chunks, batch), sizes.wide)]
    columns = _group_shapes(batch, groups) if save else []
    steps = [array((width, size), sizes.dtype) for size in columns]
    cells = [array((sizes.chunks, sizes.chunk_size, size), sizes.wide) for size in columns]

    def body(t, h, c, results, steps, cells):
        new, *rows = step(turned_kernel, bias, row(t), h, c, keep_of(t), recurrent_mask, fixed)
        results = [a.write(t, row) for a, row in zip(results, rows, strict=True)]
        if save:
            steps = [a.write(t, s.saved) for a, s in zip(steps, new, strict=True)]
            cells = [a.write(t, c_t) for a, c_t in zip(cells, c, strict=True)]
        return [s.h for s in new], [s.c for s in new], results, steps, cells

    start = (grouped(tensors.h, groups), grouped(tensors.c, groups, sizes), results, steps, cells)
    h, c, results, steps, cells = _loop(body, start, length)
    rows, rises = (a.stack() for a in results)
    returned = (
        tf.transpose(rows, (1, 0, 2)),  # (B, T, U)
        joined(h, sizes),
        joined(c, sizes),
        *map(tf.transpose, distances(rises, keep)),  # (B, T)
    )
    return returned, (x, rows, c, steps, cells)


def _backward(tensors, saved, sizes, d_rows, d_h, d_c, d_forget, d_input):
    import tensorflow as tf

    x, rows, c, steps, cells = saved
    batch, groups, length = x.shape[1], _column_groups(x.shape[1], sizes), _length(x)
    fixed, keep = constants(sizes), _turned(tensors.mask)
    kernel = _widened(tensors.recurrent_kernel, sizes)
    recurrent_mask = _turned(tensors.recurrent_mask)
    d_row = _rows(tf.transpose(d_rows, (1, 0, 2)))  # of (T, B, U)
    d_rise = _rows(through_distances(_turned(d_forget), _turned(d_input), keep, sizes))
    if is_small(sizes):
        before = [a.stack() for a in cells]
        saved, after = [a.stack() for a in steps], after_steps(before, c)
        every = group_slopes(saved, before, after, keep, fixed, sizes)
        slopes_of = [[_rows(a) for a in group] for group in every]
        one, c = _step(backward_step, sizes), []

        def step(t, dh, dc, c):
            slope = [Slopes(*(of(t) for of in group)) for group in slopes_of]
            read = (dh, dc, slope, d_row(t), d_rise(t), recurrent_mask, fixed)
            return *one(kernel, *read), c

    else:
        one, keep_of = _backward_step_of(sizes), _rows(keep)

        def step(t, dh, dc, c):
            before = [a.read(t) for a in cells]
            kept = ([a.read(t) for a in steps], before, c, keep_of(t))
            read = (dh, dc, *kept, d_row(t), d_rise(t), recurrent_mask, fixed)
            return *one(kernel, *read), before

    def body(steps, dh, dc, c, dz):
        t = length - 1 - steps
        dh, dc, row, c = step(t, dh, dc, c)
        return dh, dc, c, dz.write(t, row)

    dh = [ops.cast(part, sizes.wide) for part in grouped(d_h, groups)]
    dz = _array(length, (batch, tensors.kernel.shape[1]), sizes.dtype)
    dh, dc, _, dz = _loop(body, (dh, grouped(d_c, groups, sizes), c, dz), length)
    d_inputs, *d_weights = large_products(dz.stack(), x, rows, tensors)
    return d_inputs, tf.cast(joined(dh, sizes), sizes.dtype), joined(dc, sizes), *d_weights


def run(tensors: Given, sizes: Sizes, training: bool) -> Sequence[Tensor]:
    """See `keras_onlstm.onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    import tensorflow as tf

    names = [name for name in _DERIVED if getattr(tensors, name) is not None]
    eager = tf.executing_eagerly()

    @tf.custom_gradient
    def differentiable(*derived):
        whole = tensors._replace(**dict(zip(names, derived, strict=True)))
        results, saved = _forward(whole, sizes, save=training)

        def gradient(*upstream):
            kept = saved
            # A graph, in which Jacobians are computed, cannot read the arrays of eager execution.
            if not training or eager is not tf.executing_eagerly():
                kept = _forward(whole, sizes, save=True)[1]
            gradients = _backward(whole, kept, sizes, *upstream)[: len(names)]
            # What was kept for them does not know where it came from.
            return refusing(gradients, NOT_FUSED)

        return results, gradient

    return differentiable(*values([getattr(tensors, name) for name in names]))
