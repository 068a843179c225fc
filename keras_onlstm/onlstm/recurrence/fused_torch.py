"""The fast recurrence in PyTorch: loops over time, each way a `torch.autograd.Function`."""

import functools
from collections.abc import Sequence

from keras_onlstm.onlstm.recurrence.fused_step import (
    NOT_FUSED,
    Given,
    Sizes,
    Slopes,
    advance,
    constants,
    distances,
    is_small,
    large_products,
    retreat,
    slopes,
    through_distances,
)
from keras_onlstm.utils.backend_torch import columns_of_steps, product, repeated
from keras_onlstm.utils.types import Tensor

__all__ = ["run"]

_GIVEN = len(Given._fields)  # tensors that go into the recurrence, some of them None
_RESULTS = 5  # and that come out


def _turned(state, sizes):
    """(B, U) -> (N, C, B)."""
    return state.t().reshape(sizes.chunks, sizes.chunk_size, -1)


def _turned_back(state):
    """(U, B) -> (B, U), in memory of its own: what the caller changes is not what was kept."""
    import torch

    return torch.clone(state.t(), memory_format=torch.contiguous_format)


def _forward(tensors, sizes, save):
    """The results, batch first, and with `save` what each `Step` saved and its cell state."""

    length, batch = tensors.inputs.shape[1], tensors.inputs.shape[0]
    projected = columns_of_steps(tensors.inputs, tensors.kernel)  # (T, K, B)
    if tensors.bias is not None:
        projected += tensors.bias[:, None]
    times_kernel = repeated(tensors.recurrent_kernel.t(), batch)
    turned_mask = None if tensors.recurrent_mask is None else tensors.recurrent_mask.t()
    rows = tensors.inputs.new_empty((length, batch, sizes.units))
    rises = tensors.c.new_empty((length, 2, sizes.chunks, batch))
    steps, cells = [], []
    fixed, keep = constants(sizes), _turned_mask(tensors)
    h_t, c_t = tensors.h.t().contiguous(), _turned(tensors.c, sizes)
    before = tensors.h  # (B, U), the rows of h_t
    for t in range(length):
        read = before.t() if turned_mask is None else h_t * turned_mask
        z = times_kernel(read, projected[t])  # (K, B)
        keep_t = None if keep is None else keep[t]
        new = advance(z, h_t, c_t, keep_t, fixed, sizes=sizes, save=save)
        h_t, c_t = new.h, new.c
        if save:
            steps.append(new.saved)
            cells.append(c_t)
        before = rows[t]
        before.copy_(h_t.t())
        rises[t] = new.rises
    last_c = _turned_back(c_t.reshape(sizes.units, -1))
    results = (
        rows.transpose(0, 1),
        _turned_back(h_t),
        last_c,
        *map(_turned_back, distances(rises, keep)),
    )
    return results, steps, cells


def _turned_mask(tensors):
    """Where a step counts, time first: (T, B) boolean, or `None`."""
    return None if tensors.mask is None else tensors.mask.t()


def _slopes(steps, cells, keep, fixed, sizes):
    """The `Slopes` of a step as a function of its place."""
    import torch

    if not steps or not is_small(sizes):
        return lambda t: slopes(
            steps[t], cells[t], cells[t + 1], None if keep is None else keep[t], fixed, sizes
        )
    every = torch.stack(cells)
    whole = slopes(torch.stack(steps), every[:-1], every[1:], keep, fixed, sizes)
    return lambda t: Slopes(*(None if x is None else x[t] for x in whole))


def _backward(tensors, rows, steps, cells, sizes, d_rows, d_h, d_c, d_forget, d_input):
    cells = [_turned(tensors.c, sizes), *cells]  # one more than there are steps
    length, batch = tensors.inputs.shape[1], tensors.inputs.shape[0]
    dtype, wide = tensors.inputs.dtype, tensors.c.dtype
    turned_mask = None if tensors.recurrent_mask is None else tensors.recurrent_mask.t()
    fixed, keep = constants(sizes), _turned_mask(tensors)
    slope = _slopes(steps, cells, keep, fixed, sizes)
    d_rises = through_distances(d_forget.t(), d_input.t(), keep, sizes)
    dz = tensors.inputs.new_empty((0, batch, tensors.kernel.shape[1]))  # (T, B, K)
    times_turned = repeated(tensors.recurrent_kernel, batch)
    dh, dc = d_h.t().to(wide), _turned(d_c, sizes)
    for t in reversed(range(length)):
        dh = dh + d_rows[:, t].t()
        z_t, passed_h, dc = retreat(dh, dc, slope(t), d_rises[t], fixed, sizes)
        z_t = z_t.to(dtype)
        if not len(dz):  # of the tensors of the way back, several of which may run as one
            dz = z_t.new_empty((length, batch, tensors.kernel.shape[1]))
        dz[t] = z_t.t()
        dh = times_turned(dz[t].t())  # (U, B)
        if turned_mask is not None:
            dh = dh * turned_mask
        dh = dh.to(wide)
        if passed_h is not None:
            dh = dh + passed_h
    x = tensors.inputs.transpose(0, 1)  # (T, B, D)
    d_inputs, d_kernel, d_recurrent_kernel, d_bias = large_products(
        dz, x, rows.transpose(0, 1), tensors, product
    )
    d_c = dc.reshape(sizes.units, -1).t()
    d_bias = None if tensors.bias is None else d_bias
    return d_inputs, dh.t().to(dtype), d_c, d_kernel, d_recurrent_kernel, d_bias


def _refuse(*_):
    raise NotImplementedError(NOT_FUSED)


@functools.cache
def _function():
    import torch

    class Function(torch.autograd.Function):
        jvp = vmap = staticmethod(_refuse)

    class Backward(Function):
        @staticmethod
        def forward(sizes, *gradients_and_saved):
            upstream, saved = gradients_and_saved[:_RESULTS], gradients_and_saved[_RESULTS:]
            (*tensors, rows), kept = saved[: _GIVEN + 1], saved[_GIVEN + 1 :]
            steps = len(kept) // 2
            return _backward(Given(*tensors), rows, kept[:steps], kept[steps:], sizes, *upstream)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        backward = staticmethod(_refuse)

    class Forward(Function):
        @staticmethod
        def forward(sizes, save, *tensors):
            results, steps, cells = _forward(Given(*tensors), sizes, save)
            return (*results, *steps, *cells)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.sizes, _, *tensors = inputs
            results, kept = output[:_RESULTS], output[_RESULTS:]
            ctx.mark_non_differentiable(*kept)
            ctx.save_for_backward(*tensors, results[0], *kept)
            ctx.set_materialize_grads(False)  # not for what was kept
            ctx.like = [(y.shape, y.dtype) for y in results]

        @staticmethod
        def backward(ctx, *upstream):
            saved = ctx.saved_tensors
            gradients = [
                saved[0].new_zeros(shape, dtype=dtype) if d is None else d
                for d, (shape, dtype) in zip(upstream, ctx.like, strict=False)
            ]
            return None, None, *Backward.apply(ctx.sizes, *gradients, *saved), None, None

    return Forward


def run(tensors: Given, sizes: Sizes, training: bool) -> Sequence[Tensor]:
    """See `keras_onlstm.onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    import torch

    save = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)
    return _function().apply(sizes, save, *tensors)[:_RESULTS]
