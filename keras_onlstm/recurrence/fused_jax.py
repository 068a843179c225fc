"""The fast recurrence in JAX: two `jax.lax.scan`s behind one `jax.custom_vjp`.

Everything is compiled together with what surrounds it.
"""

import functools

from keras_onlstm.recurrence import fused
from keras_onlstm.recurrence.grouped import backward_step, forward_step, grouped, joined

__all__ = ["run"]


def _column_groups(batch):
    import jax

    return fused.column_groups(batch) if jax.default_backend() == "cpu" else [slice(None)]


def _forward(inputs, h, c, kernel, recurrent_kernel, bias, keep, recurrent_mask, sizes, save):
    import jax

    groups = _column_groups(inputs.shape[0])
    x = inputs.transpose(1, 0, 2)  # (T, B, D)
    # The rows of time stay rows, for one product: (T B, D) @ (D, K).
    width = kernel.shape[1]
    projected = (x.reshape(-1, x.shape[-1]) @ kernel).reshape(*x.shape[:2], width)  # (T, B, K)
    # Kept apart, or XLA multiplies with the kernel as it was, which takes twice as long.
    turned_kernel = jax.lax.optimization_barrier(recurrent_kernel.T)  # (K, U)
    turned_mask = None if recurrent_mask is None else recurrent_mask.T
    turned_bias = None if bias is None else bias[:, None]  # (K, 1)

    def body(carry, row):
        projected_t, keep_t = row
        given = (turned_kernel, turned_bias, projected_t, *carry, keep_t, turned_mask)
        new, rows = forward_step(*given, sizes=sizes)
        saved = ([step.saved for step in new], carry[1]) if save else ()
        return ([step.h for step in new], [step.c for step in new]), (*rows, *saved)

    turned_keep = None if keep is None else keep.T > 0  # (T, B)
    start = (grouped(h, groups), grouped(c, groups, sizes))
    (h_t, c_t), (rows, *others) = jax.lax.scan(body, start, (projected, turned_keep))
    results = (
        rows.transpose(1, 0, 2),  # (B, T, U)
        joined(h_t, sizes),
        joined(c_t, sizes),
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
        dh, dc, c = carry
        d_row, gates, cells, d_distances, keep_t = row
        given = (recurrent_kernel, dh, dc, gates, cells, c, [d_row, *d_distances])
        dh, dc, dz = backward_step(*given, keep_t, turned_mask, sizes=sizes)
        return (dh, dc, cells), dz

    d_rows = d_rows.transpose(1, 0, 2)  # (T, B, U)
    d_distances = [d.T for d in d_distances]  # (T, B)
    start = ([d.astype(sizes.wide) for d in grouped(d_h, groups)], grouped(d_c, groups, sizes))
    upstream = (d_rows, gates, cells, d_distances, turned_keep)
    (dh, dc, _), dz = jax.lax.scan(body, (*start, c_t), upstream, reverse=True)
    x = inputs.transpose(1, 0, 2)  # (T, B, D)
    d_x, d_kernel, d_recurrent_kernel, d_bias = fused.large_products(
        dz, x, rows, h, recurrent_mask, kernel
    )
    return (
        d_x.transpose(1, 0, 2),  # (B, T, D)
        joined(dh, sizes).astype(sizes.dtype),
        joined(dc, sizes),
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
    # Called outside of any compilation, a loop would be compiled anew every time; so it is once for
    # every shape. Inside of one, `inline` leaves no trace of it.
    return jax.jit(recurrence, static_argnums=(8,), inline=True)


@functools.cache
def _derived_backwards():
    """The identity, whose tangents can be turned back but never be computed."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    tangent = Primitive("fused_recurrence_tangent")

    def refuse(*_, **__):
        raise NotImplementedError(fused.NOT_FUSED)

    tangent.def_impl(refuse)
    tangent.def_abstract_eval(lambda x: x)
    mlir.register_lowering(tangent, refuse)
    batching.defvectorized(tangent)
    ad.deflinear2(tangent, lambda cotangent, _: [cotangent])

    @jax.custom_jvp
    def identity(x):
        return x

    @identity.defjvp
    def _(primals, tangents):
        return primals[0], tangent.bind(tangents[0])

    return identity


def run(inputs, h, c, kernel, recurrent_kernel, bias, mask, recurrent_mask, sizes, training):
    """See `keras_onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    # Of a number, unlike of a truth value, there are gradients to return: none.
    keep = None if mask is None else mask.astype("float32")
    given = (inputs, h, c, kernel, recurrent_kernel, bias)
    given = (None if x is None else _derived_backwards()(x) for x in given)
    return _differentiable()(*given, keep, recurrent_mask, sizes)
