"""The fast recurrence in JAX: two `jax.lax.scan`s behind one `jax.custom_vjp`.

Everything is compiled together with what surrounds it.
"""

import functools

from keras import ops

from keras_onlstm.recurrence import fused

__all__ = ["run"]


def _product(kernel, x):
    """kernel (M, L) times x (L, B), both sides as stored."""
    import jax

    whole = x.shape[1] - x.shape[1] % 8
    # As in TensorFlow, XLA takes columns by eights, and the rest is cheaper by itself.
    if not whole or whole == x.shape[1] or jax.default_backend() != "cpu":
        return kernel @ x
    return ops.concatenate([kernel @ x[:, :whole], kernel @ x[:, whole:]], 1)


def _turned(state, sizes):
    """(B, U) -> (N, C, B)."""
    return ops.reshape(state.T, (sizes.chunks, sizes.chunk_size, -1))


def _forward(inputs, h, c, kernel, recurrent_kernel, bias, keep, recurrent_mask, sizes, save):
    import jax

    x = inputs.transpose(1, 0, 2)  # (T, B, D)
    # The rows of time stay rows, for one product: (T B, D) @ (D, K).
    projected = (x.reshape(-1, x.shape[-1]) @ kernel).reshape(*x.shape[:2], -1)  # (T, B, K)
    # Kept apart, or XLA multiplies with the kernel as it was, which takes twice as long.
    turned_kernel = jax.lax.optimization_barrier(recurrent_kernel.T)  # (K, U)
    turned_mask = None if recurrent_mask is None else recurrent_mask.T

    def body(carry, row):
        h_tm1, c_tm1 = carry
        read = h_tm1 if turned_mask is None else h_tm1 * turned_mask
        z = _product(turned_kernel, read) + row[0].T  # (K, B)
        if bias is not None:
            z = z + bias[:, None]
        new = fused.advance(z, h_tm1, c_tm1, row[1], sizes)
        rows = (new.h.T, new.forget_distance, new.input_distance)
        return (new.h, new.c), rows + ((new.saved, c_tm1) if save else ())

    turned_keep = None if keep is None else keep.T > 0  # (T, B)
    start = (h.T, _turned(c, sizes))
    (h_t, c_t), (rows, *distances) = jax.lax.scan(body, start, (projected, turned_keep))
    results = (
        rows.transpose(1, 0, 2),  # (B, T, U)
        h_t.T,
        c_t.reshape(sizes.units, -1).T,
        distances[0].T,  # (B, T)
        distances[1].T,
    )
    return results, (rows, c_t, *distances[2:])


def _backward(sizes, residuals, upstream):
    import jax

    given, saved = residuals
    inputs, h, c, kernel, recurrent_kernel, bias, keep, recurrent_mask = given
    rows, c_t, gates, cells = saved
    d_rows, d_h, d_c, *d_distances = upstream
    turned_mask = None if recurrent_mask is None else recurrent_mask.T
    turned_keep = None if keep is None else keep.T > 0  # (T, B)

    def body(carry, row):
        dh, dc, c_t = carry
        d_row, saved, c_tm1, d_forget_distance, d_input_distance, keep_t = row
        dh = dh + d_row.T.astype(sizes.wide)
        dz, passed_h, dc = fused.retreat(
            dh, dc, saved, c_tm1, c_t, d_forget_distance, d_input_distance, keep_t, sizes
        )
        dz = dz.astype(sizes.dtype)
        dh = _product(recurrent_kernel, dz)  # (U, B)
        if turned_mask is not None:
            dh = dh * turned_mask
        dh = dh.astype(sizes.wide)
        return (dh if passed_h is None else dh + passed_h, dc, c_tm1), dz.T

    start = (d_h.T.astype(sizes.wide), _turned(d_c, sizes), c_t)
    rows_back = (
        d_rows.transpose(1, 0, 2),  # (T, B, U)
        gates,
        cells,
        d_distances[0].T,  # (T, B)
        d_distances[1].T,
        turned_keep,
    )
    (dh, dc, _), dz = jax.lax.scan(body, start, rows_back, reverse=True)
    x = inputs.transpose(1, 0, 2)  # (T, B, D)
    d_x, d_kernel, d_recurrent_kernel, d_bias = fused.large_products(
        dz, x, rows, h, recurrent_mask, kernel
    )
    return (
        d_x.transpose(1, 0, 2),  # (B, T, D)
        dh.T.astype(sizes.dtype),
        dc.reshape(sizes.units, -1).T,
        d_kernel,
        d_recurrent_kernel,
        None if bias is None else d_bias,
        None,
        None,
    )


@functools.cache
def _differentiable():
    import jax

    @functools.partial(jax.custom_vjp, nondiff_argnums=(8,))
    def recurrence(*given):
        return _forward(*given, save=False)[0]

    def forward(*given):
        results, saved = _forward(*given, save=True)
        return results, (given[:-1], saved)

    recurrence.defvjp(forward, _backward)
    return recurrence


def run(inputs, h, c, kernel, recurrent_kernel, bias, mask, recurrent_mask, sizes, training):
    """See `keras_onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    # Of a number, unlike of a truth value, there are gradients to return: none.
    keep = None if mask is None else mask.astype("float32")
    return _differentiable()(
        inputs, h, c, kernel, recurrent_kernel, bias, keep, recurrent_mask, sizes
    )
