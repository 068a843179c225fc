"""The fast recurrence in TensorFlow.

The loops over time are `tf.while_loop`s, so that any length runs without compiling anew; what is
done in one step is compiled with XLA, once for each size of the batch. Where the whole model is
compiled with XLA, so are the loops.
"""

import functools
from collections.abc import Sequence

from keras import ops

from keras_onlstm.onlstm.recurrence.fused_groups import (
    backward_step,
    column_groups,
    forward_step,
    grouped,
    joined,
)
from keras_onlstm.onlstm.recurrence.fused_step import NOT_FUSED, Given, Sizes, large_products
from keras_onlstm.utils.types import Tensor

__all__ = ["run"]

_DERIVED = ("inputs", "h", "c", "kernel", "recurrent_kernel", "bias")  # of `Given`

# Below this many entries of the recurrent kernel, compiling takes longer than it saves.
_WORTH_COMPILING = 2**17


def _column_groups(batch):
    import tensorflow as tf

    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return [slice(None)] if on_gpu else column_groups(batch)


@functools.lru_cache(maxsize=64)
def _compiled(step, sizes):
    import tensorflow as tf

    return tf.function(functools.partial(step, sizes=sizes), jit_compile=True)


def _steps(recurrent_kernel, sizes):
    """The two steps, compiled or not."""
    steps = (forward_step, backward_step)
    if recurrent_kernel.shape.num_elements() < _WORTH_COMPILING:
        return [functools.partial(step, sizes=sizes) for step in steps]
    return [_compiled(step, sizes) for step in steps]


def _array(length, shape, dtype):
    """One row a step."""
    import tensorflow as tf

    # The backward pass reads these arrays too, and may run twice, on a persistent tape.
    return tf.TensorArray(dtype, size=length, element_shape=shape, clear_after_read=False)


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

    step = _steps(tensors.recurrent_kernel, sizes)[0]
    x = tf.transpose(tensors.inputs, (1, 0, 2))  # (T, B, D)
    batch, width, groups = x.shape[1], tensors.kernel.shape[1], _column_groups(x.shape[1])
    flat = tf.reshape(x, (-1, x.shape[-1])) @ tensors.kernel
    projected = tf.reshape(flat, (*ops.shape(x)[:2], width))  # (T, B, K)
    turned_kernel = tf.transpose(tensors.recurrent_kernel)  # (K, U)
    bias = None if tensors.bias is None else tensors.bias[:, None]
    keep, recurrent_mask = _turned(tensors.mask), _turned(tensors.recurrent_mask)
    length = _length(x)
    array = functools.partial(_array, length)
    rows = [array((batch, sizes.units), sizes.dtype)]
    rows += [array((batch,), sizes.wide) for _ in range(2)]
    columns = _group_shapes(batch, groups) if save else []
    gates = [array((width, size), sizes.dtype) for size in columns]
    cells = [array((sizes.chunks, sizes.chunk_size, size), sizes.wide) for size in columns]

    def body(t, h, c, rows, gates, cells):
        keep_t = None if keep is None else keep[t]
        new, new_rows = step(turned_kernel, bias, projected[t], h, c, keep_t, recurrent_mask)
        rows = [a.write(t, row) for a, row in zip(rows, new_rows, strict=True)]
        if save:
            gates = [a.write(t, s.saved) for a, s in zip(gates, new, strict=True)]
            cells = [a.write(t, c_t) for a, c_t in zip(cells, c, strict=True)]
        return [s.h for s in new], [s.c for s in new], rows, gates, cells

    start = (grouped(tensors.h, groups), grouped(tensors.c, groups, sizes), rows, gates, cells)
    h, c, rows, gates, cells = _loop(body, start, length)
    rows, *distances = [a.stack() for a in rows]
    results = (
        tf.transpose(rows, (1, 0, 2)),  # (B, T, U)
        joined(h, sizes),
        joined(c, sizes),
        *map(tf.transpose, distances),  # (B, T)
    )
    return results, (x, rows, c, gates, cells)


def _backward(tensors, saved, sizes, d_rows, d_h, d_c, *d_distances):
    import tensorflow as tf

    x, rows, c, gates, cells = saved
    step = _steps(tensors.recurrent_kernel, sizes)[1]
    batch, groups, length = x.shape[1], _column_groups(x.shape[1]), _length(x)
    by_step = [tf.transpose(d) for d in d_distances]  # (T, B)
    keep, recurrent_mask = _turned(tensors.mask), _turned(tensors.recurrent_mask)

    def body(steps, dh, dc, c, dz):
        t = length - 1 - steps
        c_tm1 = [a.read(t) for a in cells]
        upstream = [d_rows[:, t], *(d[t] for d in by_step)]
        keep_t = None if keep is None else keep[t]
        kept = [a.read(t) for a in gates]
        read = (tensors.recurrent_kernel, dh, dc, kept, c_tm1, c, upstream, keep_t, recurrent_mask)
        dh, dc, row = step(*read)
        return dh, dc, c_tm1, dz.write(t, row)

    dh = [ops.cast(part, sizes.wide) for part in grouped(d_h, groups)]
    dz = _array(length, (batch, tensors.kernel.shape[1]), sizes.dtype)
    dh, dc, _, dz = _loop(body, (dh, grouped(d_c, groups, sizes), c, dz), length)
    d_inputs, *d_weights = large_products(dz.stack(), x, rows, tensors)
    return d_inputs, tf.cast(joined(dh, sizes), sizes.dtype), joined(dc, sizes), *d_weights


def _derived_once(gradients):
    """The gradients as they are; what was kept for them does not know where it came from."""
    import tensorflow as tf

    @tf.custom_gradient
    def identity(*gradients):
        def refuse(*_):
            raise NotImplementedError(NOT_FUSED)

        return [tf.identity(x) for x in gradients], refuse

    return identity(*gradients)


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
            return _derived_once(_backward(whole, kept, sizes, *upstream)[: len(names)])

        return results, gradient

    # A variable would be read again on the way back, after whatever was assigned to it meanwhile.
    return differentiable(*(tf.convert_to_tensor(getattr(tensors, name)) for name in names))
