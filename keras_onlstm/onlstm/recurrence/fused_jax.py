"""The fast recurrence in JAX: two `jax.lax.scan`s behind one `jax.custom_vjp`.

Everything is compiled together with what surrounds it.
"""

import functools
from collections.abc import Sequence

import keras

from keras_onlstm.onlstm.recurrence.fused_groups import (
    after_steps,
    backward_step,
    backward_step_of,
    column_groups,
    forward_step,
    group_slopes,
    grouped,
    joined,
)
from keras_onlstm.onlstm.recurrence.fused_step import (
    NOT_FUSED,
    Given,
    Sizes,
    constants,
    distances,
    is_small,
    large_products,
    through_distances,
)
from keras_onlstm.utils.types import Tensor

__all__ = ["run"]


def _column_groups(batch):
    import jax

    return column_groups(batch) if jax.default_backend() == "cpu" else [slice(None)]


def _turned(x):
    return None if x is None else x.T


def _forward(tensors, sizes, save):
    import jax

    groups = _column_groups(tensors.inputs.shape[0])
    x = tensors.inputs.transpose(1, 0, 2)  # (T, B, D)
    # The rows of time stay rows, for one product: (T B, D) @ (D, K).
    width = tensors.kernel.shape[1]
    projected = (x.reshape(-1, x.shape[-1]) @ tensors.kernel).reshape(*x.shape[:2], width)
    # The barrier keeps XLA from undoing the transposition: the product then takes half the time.
    turned_kernel = jax.lax.optimization_barrier(tensors.recurrent_kernel.T)  # (K, U)
    turned_mask, keep, fixed = _turned(tensors.recurrent_mask), _kept(tensors), constants(sizes)

    def body(carry, row):
        (h, c), (projected_t, keep_t) = carry, row
        read = (turned_kernel, tensors.bias, projected_t, h, c, keep_t, turned_mask, fixed)
        new, *rows = forward_step(*read, sizes=sizes, save=save)
        saved = ([step.saved for step in new], c) if save else ()
        return ([step.h for step in new], [step.c for step in new]), (*rows, *saved)

    start = (grouped(tensors.h, groups), grouped(tensors.c, groups, sizes))
    (h_t, c_t), (rows, rises, *saved) = jax.lax.scan(body, start, (projected, keep))
    results = (
        rows.transpose(1, 0, 2),  # (B, T, U)
        joined(h_t, sizes),
        joined(c_t, sizes),
        *(d.T for d in distances(rises, keep)),  # (B, T)
    )
    return results, (rows, c_t, *saved)


def _kept(tensors):
    """Where a step counts, time first: (T, B) boolean, or `None`."""
    return None if tensors.mask is None else tensors.mask.T > 0


def _backward(sizes, residuals, upstream):
    import jax

    tensors, (rows, c_t, steps, cells) = residuals
    d_rows, d_h, d_c, d_forget, d_input = upstream
    groups, turned_mask = _column_groups(tensors.inputs.shape[0]), _turned(tensors.recurrent_mask)
    fixed, keep, kernel = constants(sizes), _kept(tensors), tensors.recurrent_kernel
    d_rows = d_rows.transpose(1, 0, 2)  # (T, B, U)
    d_rises = through_distances(d_forget.T, d_input.T, keep, sizes)
    start = ([d.astype(sizes.wide) for d in grouped(d_h, groups)], grouped(d_c, groups, sizes))

    if is_small(sizes):
        every = group_slopes(steps, cells, after_steps(cells, c_t), keep, fixed, sizes)

        def body(carry, row):
            (dh, dc), (slope, d_row, d_rise) = carry, row
            dh, dc, dz = backward_step(
                kernel, dh, dc, slope, d_row, d_rise, turned_mask, fixed, sizes=sizes
            )
            return (dh, dc), dz

        (dh, dc), dz = jax.lax.scan(body, start, (every, d_rows, d_rises), reverse=True)
    else:

        def body(carry, row):
            (dh, dc, c), (saved, cells, keep_t, d_row, d_rise) = carry, row
            read = (kernel, dh, dc, saved, cells, c, keep_t, d_row, d_rise, turned_mask, fixed)
            dh, dc, dz = backward_step_of(*read, sizes=sizes)
            return (dh, dc, cells), dz

        rows_of_time = (steps, cells, keep, d_rows, d_rises)
        (dh, dc, _), dz = jax.lax.scan(body, (*start, c_t), rows_of_time, reverse=True)
    x = tensors.inputs.transpose(1, 0, 2)  # (T, B, D)
    d_inputs, d_kernel, d_recurrent_kernel, d_bias = large_products(dz, x, rows, tensors)
    return (
        Given(
            d_inputs,
            joined(dh, sizes).astype(sizes.dtype),
            joined(dc, sizes),
            d_kernel,
            d_recurrent_kernel,
            None if tensors.bias is None else d_bias,
            None,
            None,
        ),
    )


@functools.cache
def _differentiable():
    import jax

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def recurrence(tensors, sizes):
        return _forward(tensors, sizes, save=False)[0]

    def forward(tensors, sizes):
        results, saved = _forward(tensors, sizes, save=True)
        return results, (tensors, saved)

    recurrence.defvjp(forward, _backward)
    # Without `jit`, a call in eager mode compiles its loop again each time. With it, once for each
    # shape. Inside another compiled function, `inline` makes it part of that one.
    return jax.jit(recurrence, static_argnums=(1,), inline=True)


@functools.cache
def _derived_backwards():
    """The identity, whose tangents can be turned back but never be computed."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    tangent = Primitive("fused_recurrence_tangent")

    def refuse(*_, **__):
        raise NotImplementedError(NOT_FUSED)

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


def run(tensors: Given, sizes: Sizes, training: bool) -> Sequence[Tensor]:
    """See `keras_onlstm.onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    # `custom_vjp` wants a gradient of every input. A float can have one, zero; a boolean cannot.
    keep = None if tensors.mask is None else tensors.mask.astype("float32")
    derived = {
        name: None if x is None else _derived_backwards()(x)
        for name, x in tensors._asdict().items()
        if name not in ("mask", "recurrent_mask")
    }
    tensors = tensors._replace(mask=keep, **derived)
    mesh = _devices_that_share(tensors.inputs)
    if mesh is not None:
        return _on_each(mesh, tensors, sizes)
    return _differentiable()(tensors, sizes)


def _devices_that_share(inputs):
    """The mesh of `keras.distribution.DataParallel`, where it has cut the batch; or `None`."""
    import jax

    distribution = keras.distribution.distribution()
    if not isinstance(distribution, keras.distribution.DataParallel):
        return None
    mesh = distribution.device_mesh.backend_mesh
    if inputs.shape[0] % mesh.size or not isinstance(inputs, jax.core.Tracer):
        return None
    return mesh


def _on_each(mesh, tensors, sizes):
    """Runs over the rows of each device there, which have nothing to do with each other.

    Left to itself, XLA lets the devices exchange activations, some of them at every step, for it
    cannot tell whose rows a cut or reshaped batch has.
    """
    import jax
    from jax.sharding import PartitionSpec

    rows, whole = PartitionSpec(mesh.axis_names[0]), PartitionSpec()
    shared = ("inputs", "h", "c", "mask", "recurrent_mask")
    given = Given(
        *(
            None if x is None else rows if name in shared else whole
            for name, x in tensors._asdict().items()
        )
    )
    run = jax.shard_map(
        lambda tensors: _differentiable()(tensors, sizes),
        mesh=mesh,
        in_specs=(given,),
        out_specs=rows,
        check_vma=False,  # gradients of what is whole are added up
    )
    return run(tensors)
