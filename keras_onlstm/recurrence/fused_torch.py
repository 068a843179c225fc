"""The fast recurrence in PyTorch: one `torch.autograd.Function` around loops over time."""

import functools

from keras_onlstm.recurrence import fused

__all__ = ["run"]


def _turned(state, sizes):
    """(B, U) -> (N, C, B)."""
    return state.t().reshape(sizes.chunks, sizes.chunk_size, -1)


def _forward(inputs, h, c, kernel, recurrent_kernel, bias, keep, recurrent_mask, sizes, save):
    import torch

    length, batch = inputs.shape[1], inputs.shape[0]
    projected = torch.einsum("btd,dk->tkb", inputs, kernel)  # (T, K, B)
    if bias is not None:
        projected += bias[:, None]
    turned_kernel = recurrent_kernel.t().contiguous()  # (K, U)
    turned_mask = None if recurrent_mask is None else recurrent_mask.t()
    rows = inputs.new_empty((batch, length, sizes.units))
    distances = c.new_empty((2, batch, length))
    gates, cells = [], []
    h_t, c_t = h.t().contiguous(), _turned(c, sizes)
    for t in range(length):
        read = h_t if turned_mask is None else h_t * turned_mask
        z = torch.addmm(projected[t], turned_kernel, read)  # (K, B)
        new = fused.advance(z, h_t, c_t, None if keep is None else keep[:, t], sizes)
        if save:
            gates.append(new.saved)
            cells.append(c_t)
        h_t, c_t = new.h, new.c
        rows[:, t] = h_t.t()
        distances[0, :, t] = new.forget_distance
        distances[1, :, t] = new.input_distance
    last_c = c_t.reshape(sizes.units, -1).t().contiguous()
    results = (rows, h_t.t().contiguous(), last_c, distances[0], distances[1])
    return results, (c_t, gates, cells)


def _backward(given, rows, saved, sizes, d_rows, d_h, d_c, *d_distances):
    inputs, h, kernel, recurrent_kernel, bias, keep, recurrent_mask = given
    c_t, gates, cells = saved
    length, batch = inputs.shape[1], inputs.shape[0]
    turned_mask = None if recurrent_mask is None else recurrent_mask.t()
    dz = inputs.new_empty((length, batch, kernel.shape[1]))  # (T, B, K)
    dh, dc = d_h.t().to(c_t.dtype), _turned(d_c, sizes)
    for t in reversed(range(length)):
        dh = dh + d_rows[:, t].t()
        z_t, passed_h, dc = fused.retreat(
            dh,
            dc,
            gates[t],
            cells[t],
            c_t,
            *(d[:, t] for d in d_distances),
            None if keep is None else keep[:, t],
            sizes,
        )
        c_t = cells[t]
        z_t = z_t.to(inputs.dtype)
        dz[t] = z_t.t()
        dh = recurrent_kernel @ z_t  # (U, B)
        if turned_mask is not None:
            dh = dh * turned_mask
        dh = dh.to(c_t.dtype)
        if passed_h is not None:
            dh = dh + passed_h
    x = inputs.transpose(0, 1)  # (T, B, D)
    d_x, d_kernel, d_recurrent_kernel, d_bias = fused.large_products(
        dz, x, rows.transpose(0, 1), h, recurrent_mask, kernel
    )
    d_c = dc.reshape(sizes.units, -1).t()
    d_bias = None if bias is None else d_bias
    d_h = dh.t().to(inputs.dtype)
    return d_x.transpose(0, 1), d_h, d_c, d_kernel, d_recurrent_kernel, d_bias


@functools.cache
def _function():
    import torch

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx, sizes, save, *given):
            results, saved = _forward(*given, sizes, save)
            if save:
                inputs, h, _, *rest = given
                ctx.save_for_backward(inputs, h, *rest, results[0])
                ctx.saved, ctx.sizes = saved, sizes
            return results

        @staticmethod
        def backward(ctx, *upstream):
            if torch.is_grad_enabled():  # asked to create a graph of the gradients
                raise RuntimeError(fused.FIRST_DERIVATIVES_ALONE)
            *given, rows = ctx.saved_tensors
            found = _backward(given, rows, ctx.saved, ctx.sizes, *upstream)
            return None, None, *found, None, None

    return Fused


def run(inputs, h, c, kernel, recurrent_kernel, bias, mask, recurrent_mask, sizes, training):
    """See `keras_onlstm.recurrence.fused.run`; returns the fields of `Recurrence`."""
    import torch

    given = (inputs, h, c, kernel, recurrent_kernel, bias, mask, recurrent_mask)
    save = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given)
    return _function().apply(sizes, save, *given)
