"""One step of the fused recurrence, forward and back, on states in groups of columns.

For XLA, which compiles it on TensorFlow and JAX.

States lie features first, (U, B) and (N, C, B), so that the recurrent product is (K, U) @ (U, B).
Where that is fastest with a few columns at a time, a state is a list, with one entry for each group
of columns.
"""

import itertools

from keras import ops

from keras_onlstm.onlstm.recurrence.fused_step import (
    Constants,
    Sizes,
    Slopes,
    Step,
    advance,
    retreat,
    slopes,
)
from keras_onlstm.utils.types import Tensor

__all__ = [
    "after_steps",
    "back_to_product",
    "backward_step",
    "backward_step_of",
    "column_groups",
    "forward_step",
    "group_slopes",
    "grouped",
    "joined",
    "recurrent_products",
    "slopes_and_back",
    "step_after_product",
    "through_product",
]


def column_groups(batch: int | None) -> list[slice]:
    """How to cut the columns of a batch for XLA's products on processors: list of slices.

    They take columns by eights. What is over costs as much as a whole eight more, unless it comes
    by itself: 70 products of (4830, 1150) and (1150, 20) took 141 ms on two cores, and cut in 16
    and 4 columns 125 ms. Sequences of a batch have nothing to do with each other, so the groups run
    side by side and only their results meet.

    Args:
        batch: integer, B, or `None` where it is not known.

    Returns:
        List of slices that cover the columns.
    """
    if batch is None or batch < 8 or batch % 8 == 0:
        return [slice(None)]
    over = batch % 8
    return [slice(0, batch - over), slice(batch - over, batch)]


def grouped(state: Tensor, groups: list[slice], sizes: Sizes | None = None) -> list[Tensor]:
    """(B, U) -> list of (U, B), or of (N, C, B) with sizes."""
    parts = [ops.transpose(state[group]) for group in groups]
    if sizes is None:
        return parts
    return [ops.reshape(part, (sizes.chunks, sizes.chunk_size, -1)) for part in parts]


def joined(parts: list[Tensor], sizes: Sizes) -> Tensor:
    """The inverse of `grouped`."""
    return ops.concatenate(
        [ops.transpose(ops.reshape(part, (sizes.units, -1))) for part in parts], 0
    )


def _groups_of(parts):
    """The column groups that a state is in, whatever else knows of the size of the batch."""
    if len(parts) == 1:
        return [slice(None)]
    stops = list(itertools.accumulate(part.shape[-1] for part in parts))
    return [slice(*ends) for ends in itertools.pairwise([0, *stops])]


def _part(x, group):
    """The columns of a group, in the last axis."""
    return None if x is None else x[..., group]


def _product(kernel, x):
    """In the dtype of x; the kernel may be wider."""
    return ops.cast(kernel @ ops.cast(x, kernel.dtype), x.dtype)


def recurrent_products(
    turned_kernel: Tensor, h: list[Tensor], recurrent_mask: Tensor | None
) -> list[Tensor]:
    """What the hidden states add to the pre-activations: (K, B) a group."""
    masks = [_part(recurrent_mask, group) for group in _groups_of(h)]
    read = [part if mask is None else part * mask for part, mask in zip(h, masks, strict=True)]
    return [_product(turned_kernel, part) for part in read]


def forward_step(
    turned_kernel: Tensor,
    bias: Tensor | None,
    row: Tensor,
    h: list[Tensor],
    c: list[Tensor],
    keep: Tensor | None,
    recurrent_mask: Tensor | None,
    fixed: Constants,
    *,
    sizes: Sizes,
    save: bool,
) -> tuple[list[Step], Tensor, Tensor]:
    """One step of all groups; h and c are lists, one (U, B) and one (N, C, B) a group.

    Returns the steps, and of all groups h (B, U) and the rises (2, N, B).
    """
    products = recurrent_products(turned_kernel, h, recurrent_mask)
    return step_after_product(products, bias, row, h, c, keep, fixed, sizes=sizes, save=save)


def step_after_product(
    products: list[Tensor],
    bias: Tensor | None,
    row: Tensor,
    h: list[Tensor],
    c: list[Tensor],
    keep: Tensor | None,
    fixed: Constants,
    *,
    sizes: Sizes,
    save: bool,
) -> tuple[list[Step], Tensor, Tensor]:
    """`forward_step`, once there are the `recurrent_products`."""
    new = []
    for group, z, h_tm1, c_tm1 in zip(_groups_of(h), products, h, c, strict=True):
        z = z + ops.transpose(row[group] if bias is None else row[group] + bias)  # (K, B)
        new.append(advance(z, h_tm1, c_tm1, _part(keep, group), fixed, sizes=sizes, save=save))
    if len(new) == 1:
        return new, ops.transpose(new[0].h), new[0].rises
    rows = ops.concatenate([ops.transpose(step.h) for step in new], 0)
    return new, rows, ops.concatenate([step.rises for step in new], -1)


def after_steps(before: list[Tensor], last: list[Tensor]) -> list[Tensor]:
    """Cell states before all steps (T, N, C, B), and after the last one -> those after all."""
    return [
        ops.concatenate([states, ops.expand_dims(end, 0)], 0)[1:]
        for states, end in zip(before, last, strict=True)
    ]


def group_slopes(
    saved: list[Tensor],
    c_tm1: list[Tensor],
    c: list[Tensor],
    keep: Tensor | None,
    fixed: Constants,
    sizes: Sizes,
) -> list[Slopes]:
    """The `Slopes` of each group, of one step or of all; keep is (..., B)."""
    return [
        slopes(part, before, after, _part(keep, group), fixed, sizes)
        for group, part, before, after in zip(_groups_of(saved), saved, c_tm1, c, strict=True)
    ]


def backward_step(
    recurrent_kernel: Tensor,
    dh: list[Tensor],
    dc: list[Tensor],
    slope: list[Slopes],
    d_row: Tensor,
    d_rises: Tensor,
    recurrent_mask: Tensor | None,
    fixed: Constants,
    *,
    sizes: Sizes,
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """One step back of all groups; d_row is (B, U), d_rises (2, 1, B).

    Returns the gradients with respect to h and c, as lists, and to z (B, K).
    """
    dz, passed, new_dc, row = back_to_product(dh, dc, slope, d_row, d_rises, fixed, sizes=sizes)
    return through_product(recurrent_kernel, dz, passed, recurrent_mask, sizes), new_dc, row


def back_to_product(
    dh: list[Tensor],
    dc: list[Tensor],
    slope: list[Slopes],
    d_row: Tensor,
    d_rises: Tensor,
    fixed: Constants,
    *,
    sizes: Sizes,
) -> tuple[list[Tensor], list[Tensor | None], list[Tensor], Tensor]:
    """`backward_step` as far as there is no product.

    Returns the gradients with respect to z, (K, B) a group, what reaches h past the product, the
    gradients with respect to c, and those with respect to z again (B, K).
    """
    new_dz, new_passed, new_dc = [], [], []
    for place, group in enumerate(_groups_of(dh)):
        dh_t = dh[place] + ops.cast(ops.transpose(d_row[group]), sizes.wide)
        dz, passed, dc_tm1 = retreat(
            dh_t, dc[place], slope[place], _part(d_rises, group), fixed, sizes
        )
        new_dz.append(ops.cast(dz, sizes.dtype))
        new_passed.append(passed)
        new_dc.append(dc_tm1)
    rows = [ops.transpose(dz) for dz in new_dz]
    row = rows[0] if len(rows) == 1 else ops.concatenate(rows, 0)
    return new_dz, new_passed, new_dc, row


def through_product(
    recurrent_kernel: Tensor,
    dz: list[Tensor],
    passed: list[Tensor | None],
    recurrent_mask: Tensor | None,
    sizes: Sizes,
) -> list[Tensor]:
    """The gradients with respect to h, (U, B) a group, from what `back_to_product` returns."""
    new_dh = []
    for group, dz_t, past in zip(_groups_of(dz), dz, passed, strict=True):
        dh = _product(recurrent_kernel, dz_t)  # (U, B)
        if recurrent_mask is not None:
            dh = dh * _part(recurrent_mask, group)
        dh = ops.cast(dh, sizes.wide)
        new_dh.append(dh if past is None else dh + past)
    return new_dh


def slopes_and_back(
    dh: list[Tensor],
    dc: list[Tensor],
    saved: list[Tensor],
    c_tm1: list[Tensor],
    c: list[Tensor],
    keep: Tensor | None,
    d_row: Tensor,
    d_rises: Tensor,
    fixed: Constants,
    *,
    sizes: Sizes,
) -> tuple[list[Tensor], list[Tensor | None], list[Tensor], Tensor]:
    """`back_to_product` with the slopes of this step alone."""
    slope = group_slopes(saved, c_tm1, c, keep, fixed, sizes)
    return back_to_product(dh, dc, slope, d_row, d_rises, fixed, sizes=sizes)


def backward_step_of(
    recurrent_kernel: Tensor,
    dh: list[Tensor],
    dc: list[Tensor],
    saved: list[Tensor],
    c_tm1: list[Tensor],
    c: list[Tensor],
    keep: Tensor | None,
    d_row: Tensor,
    d_rises: Tensor,
    recurrent_mask: Tensor | None,
    fixed: Constants,
    *,
    sizes: Sizes,
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """`backward_step` with the slopes of this step alone."""
    kept = (saved, c_tm1, c, keep)
    dz, passed, new_dc, row = slopes_and_back(dh, dc, *kept, d_row, d_rises, fixed, sizes=sizes)
    return through_product(recurrent_kernel, dz, passed, recurrent_mask, sizes), new_dc, row
