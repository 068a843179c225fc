"""Loops over time on JAX: `jax.lax.scan` behind one `jax.custom_vjp`."""

import functools
from typing import Any

from keras import distribution

from keras_onlstm.utils import Tensor, Tensors


def packed(matrix: Tensor, columns: int) -> Tensor:
    """A matrix (M, K) in the form in which `product` multiplies it fastest."""
    import jax

    # Without the barrier XLA undoes a transposition, and the product takes twice as long.
    return jax.lax.optimization_barrier(matrix)


def product(matrix: Tensor, x: Tensor) -> Tensor:
    """The product of a `packed` matrix with (K, columns)."""
    return matrix @ x


def rows_product(x: Tensor, matrix: Tensor) -> Tensor:
    """The product of the rows (T, B, K) with a matrix (K, N)."""
    return x @ matrix  # without a reshape, which would gather a batch that devices share


def summed_product(x: Tensor, y: Tensor) -> Tensor:
    """The product (M, N) of the transpose of (T, B, M) and (T, B, N)."""
    import jax.numpy as jnp

    if distribution.distribution() is None:
        return x.reshape(-1, x.shape[-1]).T @ y.reshape(-1, y.shape[-1])
    return jnp.einsum("tbm,tbn->mn", x, y)  # a reshape would gather a batch that devices share


def stacked(series: Tensor) -> Tensor:
    """All rows (T, ...) that a loop saved."""
    return series


def scan(
    function: Any, carry: Tensors, xs: Any, ys_specs: Any, saved_specs: Any, reverse: bool
) -> Tensors:
    """See `keras_onlstm.recurrence.engine.scan`."""
    import jax

    def body(carry, row):
        carry, ys, saved = function(carry, row)
        return tuple(carry), (tuple(ys), tuple(saved))

    carry, (ys, saved) = jax.lax.scan(body, tuple(carry), tuple(xs), reverse=reverse)
    return carry, ys, saved


@functools.cache
def _differentiable(forward, backward):
    import jax

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def recurrence(step, arguments):
        return forward(step, arguments, False)[0]

    def recurrence_forward(step, arguments):
        results, saved = forward(step, arguments, True)
        return results, (arguments, results, saved)

    def recurrence_backward(step, residuals, upstream):
        return (backward(step, *residuals, upstream),)

    recurrence.defvjp(recurrence_forward, recurrence_backward)
    # Without `jit`, each call in eager mode would compile its loop again. Inside another compiled
    # function, `inline` makes it part of that one.
    return jax.jit(recurrence, static_argnums=(0,), inline=True)


@functools.cache
def _identity(unsupported):
    """The identity with a gradient, but without a forward-mode derivative."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    tangent = Primitive("recurrence_tangent")

    def fail(*_, **__):
        raise NotImplementedError(unsupported)

    tangent.def_impl(fail)
    tangent.def_abstract_eval(lambda x: x)
    mlir.register_lowering(tangent, fail)
    batching.defvectorized(tangent)
    ad.deflinear2(tangent, lambda cotangent, _: [cotangent])

    @jax.custom_jvp
    def identity(x):
        return x

    @identity.defjvp
    def _(primals, tangents):
        return primals[0], tangent.bind(tangents[0])

    return identity


def run(
    forward: Any, backward: Any, step: Any, arguments: Any, training: bool, unsupported: str
) -> Any:
    """See `keras_onlstm.recurrence.engine.run`."""
    import jax
    import jax.numpy as jnp

    def reverse_mode_only(x):
        return _identity(unsupported)(x) if jnp.issubdtype(x.dtype, jnp.floating) else x

    return _differentiable(forward, backward)(step, jax.tree.map(reverse_mode_only, arguments))
