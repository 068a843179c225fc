"""The equations of PRPN: gates from distances, and attention.

Equations 4 to 13 of Shen et al. 2018, as in the published code.

Axes, for the whole of PRPN: B batch, T time, E size of a word vector, U units, L look-back (number
of preceding words that a distance depends on), S slots (number of past steps in memory; slot 0 is
the newest).
"""

import itertools
import operator

import keras
from keras import ops

from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.numerics import fold_in, max_keepdims

# The distance before a text, at which all gates close. The paper has infinity.
WALL = 1e9
EPSILON = 1e-8  # added to the sum of an attention's weights, which may all be 0


def features_of(shape: Shape) -> int:
    """The size of the last axis, which must be known when a layer is built."""
    if shape[-1] is None:
        raise ValueError(f"the size of the last axis of {shape} must be known.")
    return shape[-1]


def uniform(bound: float, seed: int | None, name: str) -> keras.initializers.Initializer:
    """PyTorch's initializer of a linear layer, for the weight with a name."""
    return keras.initializers.RandomUniform(-bound, bound, seed=fold_in(seed, name))


def banded(history: Tensor, series: Tensor) -> Tensor:
    """The memory of all steps, (B, S + T, ...), oldest first.

    It joins the history (B, S, ...), newest first, and the series (B, T, ...). Slot k of step t is
    row S + t - k, if slot 0 is the step itself.
    """
    return ops.concatenate([ops.flip(history, 1), series], 1)


def last_rows(series: Tensor, count: int, mask: Tensor | None) -> Tensor:
    """The memory (B, count, ...) after the last unmasked step, oldest first.

    `series` is (B, count + T, ...), from `banded`. `mask`, (B, T), is `False` only at the end.
    """
    steps = ops.shape(series)[1] - count
    if mask is None:
        return series[:, steps:]
    lengths = ops.sum(ops.cast(mask, "int32"), 1)[:, None]  # (B, 1)
    indices = lengths + ops.arange(count, dtype="int32")[None, :]  # (B, count)
    batch, _, *features = ops.shape(series)
    indices = ops.reshape(indices, (batch, count, *[1 for _ in features]))
    shape = (batch, count, *features)
    return ops.take_along_axis(series, ops.broadcast_to(indices, shape), axis=1)


def alphas(distance: Tensor, before: Tensor, resolution: float, hard: bool) -> Tensor:
    """How open a gate past a word is: 1 if its distance `before` is smaller, 0 if it is `WALL`."""
    difference = (distance - before) / resolution
    if not hard:
        return ops.sigmoid(10.0 * difference + 5.0)
    return ops.relu(1.0 - ops.relu(-difference))


def structural_gates(
    distances: Tensor, series: Tensor, slots: int, resolution: float, hard: bool
) -> Tensor:
    """Gates (B, T, S) that limit how far back a step looks: cumulative products of alphas.

    `distances`, (B, T), are of each step, or estimates of the next ones; `series` is (B, S + T).
    """
    length = ops.shape(distances)[1]
    starts = range(slots, 0, -1)
    before = ops.stack([series[:, start : start + length] for start in starts], -1)  # (B, T, S)
    opened = alphas(ops.expand_dims(distances, -1), before, resolution, hard)
    gates = itertools.accumulate(ops.unstack(opened, slots, -1), operator.mul)
    return ops.stack(list(gates), -1)


def attention(logits: Tensor, gates: Tensor) -> Tensor:
    """Softmax over slots (..., S), weighted by gates in [0, 1]. All 0 if all gates are."""
    weights = ops.exp(logits - max_keepdims(logits, -1)) * gates
    return weights / (ops.sum(weights, -1, keepdims=True) + EPSILON)


def banded_gates(gates: Tensor) -> tuple[Tensor, Tensor]:
    """Arranges gates (B, T, S) by the rows of `banded` but the last, (B, T, S + T - 1).

    Also returns booleans (T, S + T - 1): which rows are slots of each step.
    """
    batch, length = ops.shape(gates)[0], ops.shape(gates)[1]
    slots = gates.shape[-1]
    # Slot k of step t is row S - 1 + t - k.
    rows = ops.arange(length)[:, None] + slots - 1  # (T, 1)
    slot = rows - ops.arange(slots + length - 1)[None, :]  # (T, S + T - 1)
    inside = ops.logical_and(slot >= 0, slot < slots)
    shape = (batch, length, slots + length - 1)
    indices = ops.broadcast_to(ops.clip(slot, 0, slots - 1)[None], shape)
    return ops.where(inside, ops.take_along_axis(gates, indices, axis=-1), 0.0), inside


def banded_attention(keys: Tensor, series: Tensor, gates: Tensor) -> Tensor:
    """`attention` of all steps at once to the memory before each: (B, T, S + T - 1).

    Keys are (B, T, U), the series (B, S + T - 1, U), gates (B, T, S). The result has their dtype.
    """
    logits = ops.cast(keys @ ops.transpose(series, (0, 2, 1)) / keys.shape[-1] ** 0.5, gates.dtype)
    opened, inside = banded_gates(gates)
    top = ops.max(ops.where(inside, logits, -1e30), -1, keepdims=True)
    weights = ops.exp(ops.where(inside, logits - top, 0.0)) * opened
    return weights / (ops.sum(weights, -1, keepdims=True) + EPSILON)
