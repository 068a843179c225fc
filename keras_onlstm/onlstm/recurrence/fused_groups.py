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
    "backward_step",
    "backward_step_of",
    "column_groups",
    "forward_step",
    "group_slopes",
    "grouped",
    "joined",
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
    new = []
    for group, h_tm1, c_tm1 in zip(_groups_of(h), h, c, strict=True):
        mask = _part(recurrent_mask, group)
        z = _product(turned_kernel, h_tm1 if mask is None else h_tm1 * mask)
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
    new_dh, new_dc, rows = [], [], []
    for place, group in enumerate(_groups_of(dh)):
        dh_t = dh[place] + ops.cast(ops.transpose(d_row[group]), sizes.wide)
        dz, passed, dc_tm1 = retreat(
            dh_t, dc[place], slope[place], _part(d_rises, group), fixed, sizes
        )
        dz = ops.cast(dz, sizes.dtype)
        dh_tm1 = _product(recurrent_kernel, dz)  # (U, B)
        if recurrent_mask is not None:
            dh_tm1 = dh_tm1 * _part(recurrent_mask, group)
        dh_tm1 = ops.cast(dh_tm1, sizes.wide)
        new_dh.append(dh_tm1 if passed is None else dh_tm1 + passed)
        new_dc.append(dc_tm1)
        rows.append(ops.transpose(dz))
    return new_dh, new_dc, rows[0] if len(rows) == 1 else ops.concatenate(rows, 0)


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
    slope = group_slopes(saved, c_tm1, c, keep, fixed, sizes)
    return backward_step(
        recurrent_kernel, dh, dc, slope, d_row, d_rises, recurrent_mask, fixed, sizes=sizes
    )
