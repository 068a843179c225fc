"""What PRPN computes at each word: gates from distances, and attention.

Equations 4 to 13 of Shen et al. 2018, as the published code has them.

Axes, for the whole of PRPN:

- B: batch
- T: time
- E: size of a word vector
- U: units
- L: look-back, how many words before its own a distance is measured from
- S: slots, how many steps back may be remembered; slot 0 is the newest
"""

import itertools
import operator

from keras import ops

from keras_onlstm.utils.numerics import largest
from keras_onlstm.utils.types import Shape, Tensor

__all__ = [
    "EPSILON",
    "WALL",
    "alphas",
    "attention",
    "banded",
    "banded_attention",
    "features_of",
    "last_rows",
    "spread",
    "structural_gates",
]

# A distance that nothing reaches beyond: it stands before the text, where the paper has infinity.
WALL = 1e9
EPSILON = 1e-8  # added to the sum of an attention's weights, which may all be 0


def features_of(shape: Shape) -> int:
    """The size of the last axis, which a layer has to know when it is built."""
    size = shape[-1]
    if size is None:
        raise ValueError(f"the size of the last axis of {shape} must be known.")
    return size


def banded(history: Tensor, series: Tensor) -> Tensor:
    """What is remembered at every step, (B, S + T, ...), oldest first.

    It is made of the history (B, S, ...), newest first, and the series (B, T, ...). Slot k of step
    t, which counts its own row, is row S + t - k.
    """
    return ops.concatenate([ops.flip(history, 1), series], 1)


def last_rows(series: Tensor, count: int, counts: Tensor | None) -> Tensor:
    """The rows (B, count, ...) remembered after the last step that counts, oldest first.

    `series` is (B, count + T, ...), as of `banded`. `counts`, (B, T), is `False` only at the end.
    """
    steps = ops.shape(series)[1] - count
    if counts is None:
        return series[:, steps:]
    done = ops.sum(ops.cast(counts, "int32"), 1)[:, None]  # (B, 1)
    places = done + ops.arange(count, dtype="int32")[None, :]  # (B, count)
    batch, _, *features = ops.shape(series)
    places = ops.reshape(places, (batch, count, *[1 for _ in features]))
    shape = (batch, count, *features)
    return ops.take_along_axis(series, ops.broadcast_to(places, shape), axis=1)


def alphas(distance: Tensor, before: Tensor, resolution: float, hard: bool) -> Tensor:
    """How open the way is past a word: 1 if its distance is the smaller one, 0 if it is a wall."""
    difference = (distance - before) / resolution
    if not hard:
        return ops.sigmoid(10.0 * difference + 5.0)
    return ops.relu(1.0 - ops.relu(-difference))


def structural_gates(
    distances: Tensor, series: Tensor, slots: int, resolution: float, hard: bool
) -> Tensor:
    """How far back each step may look, (B, T, S): the product of all alphas on the way.

    `distances`, (B, T), are of each step, or estimates of the next ones; `series` is (B, S + T).
    """
    length = ops.shape(distances)[1]
    starts = range(slots, 0, -1)
    before = ops.stack([series[:, start : start + length] for start in starts], -1)  # (B, T, S)
    opened = alphas(ops.expand_dims(distances, -1), before, resolution, hard)
    gates = itertools.accumulate(ops.unstack(opened, slots, -1), operator.mul)
    return ops.stack(list(gates), -1)


def attention(logits: Tensor, gates: Tensor) -> Tensor:
    """Softmax over slots (..., S), some closed by gates in [0, 1]. All closed, all shares are 0."""
    weights = ops.exp(logits - largest(logits, -1)) * gates
    return weights / (ops.sum(weights, -1, keepdims=True) + EPSILON)


def spread(gates: Tensor) -> tuple[Tensor, Tensor]:
    """Gates (B, T, S) over the rows of `banded` without the last one, (B, T, S + T - 1).

    Also booleans (T, S + T - 1): which rows are among the slots of each step.
    """
    batch, length = ops.shape(gates)[0], ops.shape(gates)[1]
    slots = gates.shape[-1]
    # Slot k of step t is row S - 1 + t - k.
    rows = ops.arange(length)[:, None] + slots - 1  # (T, 1)
    slot = rows - ops.arange(slots + length - 1)[None, :]  # (T, S + T - 1)
    inside = ops.logical_and(slot >= 0, slot < slots)
    shape = (batch, length, slots + length - 1)
    places = ops.broadcast_to(ops.clip(slot, 0, slots - 1)[None], shape)
    return ops.where(inside, ops.take_along_axis(gates, places, axis=-1), 0.0), inside


def banded_attention(keys: Tensor, series: Tensor, gates: Tensor) -> Tensor:
    """`attention` of all steps at once to what is remembered before each: (B, T, S + T - 1).

    Keys are (B, T, U), the series (B, S + T - 1, U), gates (B, T, S), whose dtype the result has.
    """
    logits = ops.cast(keys @ ops.transpose(series, (0, 2, 1)) / keys.shape[-1] ** 0.5, gates.dtype)
    opened, inside = spread(gates)
    top = ops.max(ops.where(inside, logits, -1e30), -1, keepdims=True)
    weights = ops.exp(ops.where(inside, logits - top, 0.0)) * opened
    return weights / (ops.sum(weights, -1, keepdims=True) + EPSILON)
