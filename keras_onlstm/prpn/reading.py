"""The loop over time of a reading layer: what it is given, and the readable version of it.

Axes as in `keras_onlstm.prpn.step`; here time is first, and slots are oldest first, so that each
step's memory is the one before without its first row and with one more at the end.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_onlstm.prpn.normalization import standardized
from keras_onlstm.prpn.step import attention, lstm, tanh
from keras_onlstm.utils.loops import scan
from keras_onlstm.utils.types import Tensor

__all__ = ["Reading", "attended", "normalized", "readable", "rows"]


class Reading(NamedTuple):
    """What a reading layer computes in its loop. Without attention the middle part is `None`."""

    x: Tensor  # (T, B, 4 U) products of the inputs, normalized
    h: Tensor  # (S, B, U) hidden states before the first step; one of them without attention
    c: Tensor  # (S, B, U) cell states
    kernel: Tensor  # (U, 4 U), of hidden states
    bias: Tensor  # (4 U,)
    gamma: Tensor  # (4 U,), of the layer normalization of the product with the kernel
    beta: Tensor  # (4 U,)
    cell_gamma: Tensor  # (U,), of that of the cell state
    cell_beta: Tensor  # (U,)
    keys: Tensor | None  # (T, B, U) what the inputs add to the keys
    gates: Tensor | None  # (T, B, S)
    key_kernel: Tensor | None  # (U, U), of hidden states
    recurrent_mask: Tensor | None  # (1, U) that hidden states are multiplied with
    read_mask: Tensor | None  # (T, B, U), the same for the keys
    key_mask: Tensor | None  # (T, B, U) that keys are multiplied with

    @property
    def attends(self) -> bool:
        return self.keys is not None


def rows(problem: Reading) -> dict[str, Tensor]:
    """What has a row for every step, by name."""
    names = ("x", "keys", "gates", "read_mask", "key_mask")
    parts = {name: getattr(problem, name) for name in names}
    return {name: x for name, x in parts.items() if x is not None}


def normalized(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """`UnbiasedLayerNormalization`."""
    return gamma * standardized(x)[0] + beta


def attended(logits: Tensor, gates: Tensor, dtype: Any) -> Tensor:
    """The share of every slot, (S, B), from logits (S, B) and gates (B, S)."""
    share = attention(ops.cast(ops.transpose(logits), gates.dtype), gates)
    return ops.transpose(ops.cast(share, dtype))


def logits_of(hs: Tensor, key: Tensor) -> Tensor:
    """How well every slot, of (S, B, U), fits a key (B, U): (S, B)."""
    return ops.sum(hs * key, -1) / key.shape[-1] ** 0.5


def readable(problem: Reading) -> Tensor:
    """The loop step by step, as the equations have it.

    Args:
        problem: `Reading`.

    Returns:
        Hidden and cell states after every step, (2, T, B, U).
    """
    names, dtype = tuple(rows(problem)), problem.h.dtype

    def body(carry, row):
        hs, cs = carry  # (S, B, U)
        row = dict(zip(names, row, strict=True))
        h, c = hs[-1], cs[-1]
        if problem.attends:
            read = h * row["read_mask"] if "read_mask" in row else h
            key = row["keys"] + read @ problem.key_kernel
            key = key * row["key_mask"] if "key_mask" in row else key
            share = ops.expand_dims(attended(logits_of(hs, key), row["gates"], dtype), -1)
            h, c = ops.sum(share * hs, 0), ops.sum(share * cs, 0)
        if problem.recurrent_mask is not None:
            h = h * problem.recurrent_mask
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
