"""The fast recurrence in TensorFlow.

The loops over time are `tf.while_loop`s, so that any length runs without compiling anew; what is
done in one step is compiled with XLA, once for each size of the batch. Where the whole model is
compiled with XLA, so are the loops.
"""

import functools

from keras import ops

from keras_onlstm.recurrence import fused

__all__ = ["run"]

# Below this many entries of the recurrent kernel, compiling takes longer than it saves.
_WORTH_COMPILING = 2**17


def _product(kernel, x):
    """kernel (M, L) times x (L, B), both sides as stored."""
    import tensorflow as tf

    batch = x.shape[1]
    # XLA's products for processors take columns by eights; what is over costs as much as sixteen
    # unless it comes by itself: 141 ms against 125 for 70 products of (4830, 1150) and (1150, 20).
    whole = None if batch is None else batch - batch % 8
    if not whole or whole == batch or tf.config.list_physical_devices("GPU"):
        return kernel @ x
    return tf.concat([kernel @ x[:, :whole], kernel @ x[:, whole:]], 1)


def _forward_step(turned_kernel, bias, row, h_tm1, c_tm1, keep, recurrent_mask, *, sizes):
    read = h_tm1 if recurrent_mask is None else h_tm1 * recurrent_mask
    z = _product(turned_kernel, read) + ops.transpose(row)  # (K, B)
    if bias is not None:
        z = z + bias
    new = fused.advance(z, h_tm1, c_tm1, keep, sizes)
    return new, ops.transpose(new.h)


def _backward_step(
    recurrent_kernel, dh, dc, saved, c_tm1, c, d_distances, d_row, keep, recurrent_mask, *, sizes
):
    dh = dh + ops.cast(ops.transpose(d_row), sizes.wide)
    dz, passed_h, dc = fused.retreat(dh, dc, saved, c_tm1, c, *d_distances, keep, sizes)
    dz = ops.cast(dz, sizes.dtype)
    dh = _product(recurrent_kernel, dz)  # (U, B)
    if recurrent_mask is not None:
        dh = dh * recurrent_mask
    dh = ops.cast(dh, sizes.wide)
    return dh if passed_h is None else dh + passed_h, dc, ops.transpose(dz)


@functools.lru_cache(maxsize=64)
def _compiled(step, sizes):
    import tensorflow as tf

    return tf.function(functools.partial(step, sizes=sizes), jit_compile=True)


def _steps(recurrent_kernel, sizes):
    """The two steps, compiled or not."""
    steps = (_forward_step, _backward_step)
    if recurrent_kernel.shape.num_elements() < _WORTH_COMPILING:
        return [functools.partial(step, sizes=sizes) for step in steps]
    return [_compiled(step, sizes) for step in steps]


def run(
    inputs, h, c, kernel, recurrent_kernel, bias, mask, recurrent_mask, sizes, training
):
    """See `keras_onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    import tensorflow as tf

    forward_step, backward_step = _steps(recurrent_kernel, sizes)
    static_length, batch = inputs.shape[1], inputs.shape[0]
    keep = None if mask is None else tf.transpose(mask)  # (T, B)
    turned_mask = None if recurrent_mask is None else tf.transpose(recurrent_mask)  # (U, B)
    by_unit = (sizes.chunks, sizes.chunk_size, batch)  # (N, C, B)

    def array(length, shape, dtype):
        return tf.TensorArray(dtype, size=length, element_shape=shape, clear_after_read=False)

    def forward(inputs, h, c, kernel, recurrent_kernel, bias, save):
        x = tf.transpose(inputs, (1, 0, 2))  # (T, B, D)
        length = tf.shape(x)[0] if static_length is None else static_length
        flat = tf.reshape(x, (-1, x.shape[-1])) @ kernel
        projected = tf.reshape(flat, (*ops.shape(x)[:2], kernel.shape[1]))  # (T, B, K)
        turned_kernel = tf.transpose(recurrent_kernel)  # (K, U)
        turned_bias = None if bias is None else bias[:, None]
        arrays = [
            array(length, (batch, sizes.units), sizes.dtype),
            array(length, (batch,), sizes.wide),
            array(length, (batch,), sizes.wide),
        ]
        if save:
            arrays.append(array(length, (kernel.shape[1], batch), sizes.dtype))
            arrays.append(array(length, by_unit, sizes.wide))

        def body(t, h_t, c_t, arrays):
            new, row = forward_step(
                turned_kernel,
                turned_bias,
                projected[t],
                h_t,
                c_t,
                None if keep is None else keep[t],
                turned_mask,
            )
            rows = [row, new.forget_distance, new.input_distance]
            if save:
                rows += [new.saved, c_t]
            return t + 1, new.h, new.c, [a.write(t, r) for a, r in zip(arrays, rows, strict=True)]

        start = (0, tf.transpose(h), tf.reshape(tf.transpose(c), _known(by_unit)), arrays)
        _, h_t, c_t, arrays = tf.while_loop(
            lambda t, *_: t < length, body, start, maximum_iterations=length
        )
        rows, *distances = [a.stack() for a in arrays[:3]]
        results = (
            tf.transpose(rows, (1, 0, 2)),  # (B, T, U)
            tf.transpose(h_t),
            tf.transpose(tf.reshape(c_t, (sizes.units, -1))),
            *map(tf.transpose, distances),  # (B, T)
        )
        return results, (x, rows, c_t, *arrays[3:])

    def backward(saved, h, kernel, recurrent_kernel, d_rows, d_h, d_c, *d_distances):
        x, rows, c_t, gates, cells = saved
        length = tf.shape(x)[0] if static_length is None else static_length
        width = kernel.shape[1]
        d_distances = [tf.transpose(d) for d in d_distances]  # (T, B)

        def body(t, dh, dc, c_t, dz):
            c_tm1 = cells.read(t)
            dh, dc, row = backward_step(
                recurrent_kernel,
                dh,
                dc,
                gates.read(t),
                c_tm1,
                c_t,
                [d[t] for d in d_distances],
                d_rows[:, t],
                None if keep is None else keep[t],
                turned_mask,
            )
            return t - 1, dh, dc, c_tm1, dz.write(t, row)

        start = (
            length - 1,
            tf.cast(tf.transpose(d_h), sizes.wide),
            tf.reshape(tf.transpose(d_c), _known(by_unit)),
            c_t,
            array(length, (batch, width), sizes.dtype),
        )
        _, dh, dc, _, dz = tf.while_loop(
            lambda t, *_: t >= 0, body, start, maximum_iterations=length
        )
        d_x, *d_weights = fused.large_products(
            dz.stack(), x, rows, h, recurrent_mask, kernel
        )
        d_c = tf.transpose(tf.reshape(dc, (sizes.units, -1)))
        d_h = tf.cast(tf.transpose(dh), sizes.dtype)
        return tf.transpose(d_x, (1, 0, 2)), d_h, d_c, *d_weights

    @tf.custom_gradient
    def differentiable(inputs, h, c, kernel, recurrent_kernel, *bias):
        given = (inputs, h, c, kernel, recurrent_kernel, *(bias or [None]))
        results, saved = forward(*given, save=training)

        def gradient(*upstream):
            kept = saved if training else forward(*given, save=True)[1]
            found = backward(kept, h, kernel, recurrent_kernel, *upstream)
            return found if bias else found[:-1]

        return results, gradient

    return differentiable(
        inputs, h, c, kernel, recurrent_kernel, *([] if bias is None else [bias])
    )


def _known(shape):
    """A shape to reshape to: -1 for the size that is not known."""
    return [-1 if size is None else size for size in shape]
