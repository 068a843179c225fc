"""The fast recurrence in JAX: two `jax.lax.scan`s behind one `jax.custom_vjp`.

Everything is compiled together with what surrounds it.
"""

import functools

from keras import ops

from keras_onlstm.recurrence import fused

__all__ = ["run"]


def _column_groups(batch):
    import jax

    return fused.column_groups(batch) if jax.default_backend() == "cpu" else [slice(None)]


def _part(x, group):
    """The columns of a group, in the last axis."""
    return None if x is None else x[..., group]


def _grouped(state, groups, sizes=None):
    """(B, U) -> list of (U, B), or of (N, C, B) with sizes."""
    parts = [state[group].T for group in groups]
    if sizes is None:
        return parts
    return [part.reshape(sizes.chunks, sizes.chunk_size, -1) for part in parts]


def _joined(parts, sizes):
    """The inverse of `_grouped`."""
    return ops.concatenate([part.reshape(sizes.units, -1).T for part in parts], 0)


def _forward(inputs, h, c, kernel, recurrent_kernel, bias, keep, recurrent_mask, sizes, save):
    import jax

    groups = _column_groups(inputs.shape[0])
    x = inputs.transpose(1, 0, 2)  # (T, B, D)
    # The rows of time stay rows, for one product: (T B, D) @ (D, K).
    projected = (x.reshape(-1, x.shape[-1]) @ kernel).reshape(*x.shape[:2], -1)  # (T, B, K)
    # Kept apart, or XLA multiplies with the kernel as it was, which takes twice as long.
    turned_kernel = jax.lax.optimization_barrier(recurrent_kernel.T)  # (K, U)
    turned_mask = None if recurrent_mask is None else recurrent_mask.T

    def body(carry, row):
        new = []
        for group, h_tm1, c_tm1 in zip(groups, *carry, strict=True):
            mask = _part(turned_mask, group)
            z = turned_kernel @ (h_tm1 if mask is None else h_tm1 * mask)
            z = z + row[0][group].T  # (K, B)
            if bias is not None:
                z = z + bias[:, None]
            new.append(fused.advance(z, h_tm1, c_tm1, _part(row[1], group), sizes))
        rows = [step.h.T for step in new]
        rows = (rows, [s.forget_distance for s in new], [s.input_distance for s in new])
        rows = tuple(ops.concatenate(parts, 0) for parts in rows)
        saved = ([step.saved for step in new], carry[1]) if save else ()
        return ([step.h for step in new], [step.c for step in new]), (*rows, *saved)

    turned_keep = None if keep is None else keep.T > 0  # (T, B)
    start = (_grouped(h, groups), _grouped(c, groups, sizes))
    (h_t, c_t), (rows, *others) = jax.lax.scan(body, start, (projected, turned_keep))
    results = (
        rows.transpose(1, 0, 2),  # (B, T, U)
        _joined(h_t, sizes),
        _joined(c_t, sizes),
        others[0].T,  # (B, T)
        others[1].T,
    )
    return results, (rows, c_t, *others[2:])


def _backward(sizes, residuals, upstream):
    import jax

    given, saved = residuals
    inputs, h, _, kernel, recurrent_kernel, bias, keep, recurrent_mask = given
    rows, c_t, gates, cells = saved
    d_rows, d_h, d_c, *d_distances = upstream
    groups = _column_groups(inputs.shape[0])
    turned_mask = None if recurrent_mask is None else recurrent_mask.T
    turned_keep = None if keep is None else keep.T > 0  # (T, B)

    def body(carry, row):
        d_row, gates, cells, d_distances, keep_t = row
        new_dh, new_dc, dz_rows = [], [], []
        for group, dh, dc, c, saved, c_tm1 in zip(groups, *carry, gates, cells, strict=True):
            dh = dh + d_row[group].T.astype(sizes.wide)
            from_distances = [d[group] for d in d_distances]
            dz, passed, dc = fused.retreat(
                dh, dc, saved, c_tm1, c, *from_distances, _part(keep_t, group), sizes
            )
            dz = dz.astype(sizes.dtype)
            dh = recurrent_kernel @ dz  # (U, B)
            if turned_mask is not None:
                dh = dh * _part(turned_mask, group)
            dh = dh.astype(sizes.wide)
            new_dh.append(dh if passed is None else dh + passed)
            new_dc.append(dc)
            dz_rows.append(dz.T)
        return (new_dh, new_dc, cells), ops.concatenate(dz_rows, 0)

    d_rows = d_rows.transpose(1, 0, 2)  # (T, B, U)
    d_distances = [d.T for d in d_distances]  # (T, B)
    start = ([d.astype(sizes.wide) for d in _grouped(d_h, groups)], _grouped(d_c, groups, sizes))
    upstream = (d_rows, gates, cells, d_distances, turned_keep)
    (dh, dc, _), dz = jax.lax.scan(body, (*start, c_t), upstream, reverse=True)
    x = inputs.transpose(1, 0, 2)  # (T, B, D)
    d_x, d_kernel, d_recurrent_kernel, d_bias = fused.large_products(
        dz, x, rows, h, recurrent_mask, kernel
    )
    return (
        d_x.transpose(1, 0, 2),  # (B, T, D)
        _joined(dh, sizes).astype(sizes.dtype),
        _joined(dc, sizes),
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
