"""The loop over time of a reading layer: what it is given, and the readable version of it.

Axes as in `keras_onlstm.prpn.step`; here time is first, and slots are oldest first, so that each
step's memory is the one before without its first row and with one more at the end.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from keras import ops

from keras_onlstm.prpn.normalization import normalized
from keras_onlstm.prpn.step import attention, lstm
from keras_onlstm.utils.differentiable import scan
from keras_onlstm.utils.numerics import tanh
from keras_onlstm.utils.types import Tensor

__all__ = ["Reading", "look", "pushed", "readable", "recalled", "rows"]


class Reading(NamedTuple):
    """What a reading layer computes in its loop. Without attention it has no keys and no gates."""

    x: Tensor  # (T, B, 4 U) products of the inputs, normalized
    h: Tensor  # (S, B, U) hidden states before the first step; one of them without attention
    c: Tensor  # (S, B, U) cell states
    kernel: Tensor  # (U, 4 U), of hidden states
    bias: Tensor  # (4 U,)
    gamma: Tensor  # (4 U,), of the layer normalization of the product with the kernel
    beta: Tensor  # (4 U,)
    cell_gamma: Tensor  # (U,), of that of the cell state
    cell_beta: Tensor  # (U,)
    keys: Tensor | None = None  # (T, B, U) what the inputs add to the keys
    gates: Tensor | None = None  # (T, B, S)
    key_kernel: Tensor | None = None  # (U, U), of hidden states
    recurrent_mask: Tensor | None = None  # (1, U) that hidden states are multiplied with
    read_mask: Tensor | None = None  # (T, B, U), the same for the keys
    key_mask: Tensor | None = None  # (T, B, U) that keys are multiplied with

    @property
    def attends(self) -> bool:
        return self.keys is not None


def rows(problem: Reading) -> dict[str, Tensor]:
    """What has a row for every step, by name."""
    names = ("x", "keys", "gates", "read_mask", "key_mask")
    parts = {name: getattr(problem, name) for name in names}
    return {name: x for name, x in parts.items() if x is not None}


def look(
    product: Tensor,
    keys: Tensor,
    gates: Tensor,
    key_mask: Tensor | None,
    hs: Tensor,
    cs: Tensor,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Attention of one step to what is remembered, hs and cs (S, B, U).

    Returns hidden and cell state (B, U), from which the step continues, its key (B, U) and logits
    (S, B).
    """
    key = keys + product if key_mask is None else (keys + product) * key_mask
    logits = ops.sum(hs * key, -1) / key.shape[-1] ** 0.5  # (S, B)
    share = attention(ops.cast(ops.transpose(logits), gates.dtype), gates)  # (B, S)
    share = ops.expand_dims(ops.cast(ops.transpose(share), key.dtype), -1)
    h, c = ops.sum(share * hs, 0), ops.sum(share * cs, 0)
    return h if mask is None else h * mask, c, key, logits


def recalled(
    problem: Reading,
    row: Mapping[str, Tensor],
    hs: Tensor,
    cs: Tensor,
    look: Callable[..., tuple[Tensor, ...]] = look,
) -> tuple[Tensor, ...]:
    """What one step continues from: what `look` returns, or the last states without attention.

    `look` may be the compiled function of that name.
    """
    h, mask = hs[-1], problem.recurrent_mask
    if not problem.attends:
        return h if mask is None else h * mask, cs[-1]
    read = h * row["read_mask"] if "read_mask" in row else h
    keyed = row["keys"], row["gates"], row.get("key_mask")
    return look(read @ problem.key_kernel, *keyed, hs, cs, mask)


def readable(problem: Reading) -> Tensor:
    """The loop step by step, as in the equations: hidden and cell states (2, T, B, U)."""
    names, dtype = tuple(rows(problem)), problem.h.dtype

    def body(carry, row):
        hs, cs = carry  # (S, B, U)
        row = dict(zip(names, row, strict=True))
        h, c, *_ = recalled(problem, row, hs, cs)
        z = normalized(h @ problem.kernel + problem.bias, problem.gamma, problem.beta)
        output, c = lstm(row["x"] + z, c)
        h = output * tanh(normalized(c, problem.cell_gamma, problem.cell_beta))
        return tuple(pushed(memory, new) for memory, new in ((hs, h), (cs, c))), (h, c)

    spec = problem.h.shape[1:], dtype
    _, states = scan(body, (problem.h, problem.c), tuple(rows(problem).values()), [spec, spec])
    return ops.stack(states)


def pushed(memory: Tensor, new: Tensor) -> Tensor:
    """A memory (S, B, U) after one more step."""
    return ops.concatenate([memory[1:], ops.expand_dims(new, 0)], 0)
