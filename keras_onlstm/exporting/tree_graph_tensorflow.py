"""TreeLSTM graph that reads only ids and heads: it computes paths and order itself.

An exported file would be hard to use if its inputs were the grids that training uses. So it reads
one word of each sentence per step, every word after its source, and keeps the states of all words.
Four products, one per edge type, become one: the four kernels are concatenated along rows, and each
state is put into the columns that belong to its edge type, with 0 in the others.

Axes, in addition to those of `tree_lstm.step`:

- B: sentences
- T: words of a sentence; their positions count from 1, as in `DependencyTree`
- P: positions, T + 1 of them: 0 is ROOT
- W: states of all layers, h and c of the first, h and c of the second, ...: 2 U L
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree, random_tree
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.tree_lstm.schedule import RowCapacity, schedule_batch, schedule_tree
from keras_onlstm.tree_lstm.step import INITIAL, Layer, update
from keras_onlstm.utils import Tensor

__all__ = ["draw_heads", "of_keras", "tree_language_model"]

_NONE = 2**30  # larger than any position


def _rows(x, places):
    """Gathers rows of x (N, ...). `keras.ops.take` would check for negative indices every step."""
    import tensorflow as tf

    return tf.gather(x, places)


class _Paths(NamedTuple):
    """The last edge of every word's path, and some siblings: integers (B, T)."""

    source: Tensor  # position of the source
    edge: Tensor  # `Edge`
    before: Tensor  # the previous sibling on the same side of the head; 0: none
    left: Tensor  # the left dependent nearest to its head; 0: none


def _paths(heads):
    """`_Paths` from heads (B, T)."""
    places = ops.cumsum(ops.ones_like(heads), axis=1)
    right = places > heads
    there = ops.expand_dims(places, 1)  # axes (B, T, T): word, other word
    here, head = ops.expand_dims(places, 2), ops.expand_dims(heads, 2)
    sisters = ops.equal(head, ops.expand_dims(heads, 1))
    side, other_side = ops.expand_dims(right, 2), ops.expand_dims(right, 1)
    alike = ops.logical_and(sisters, ops.equal(side, other_side))
    before = ops.max(ops.where(ops.logical_and(alike, there < here), there, 0), 2)
    after = ops.min(ops.where(ops.logical_and(alike, there > here), there, _NONE), 2)
    left = ops.max(ops.where(ops.logical_and(sisters, ops.logical_not(other_side)), there, 0), 2)
    first = ops.where(right, ops.equal(before, 0), ops.equal(after, _NONE))
    source = ops.where(first, heads, ops.where(right, before, after))
    edge = ops.cast(right, "int32") + ops.where(first, 0, 2)
    return _Paths(source, edge, before, left)


def _at(x, places):
    """Gathers from x (B, P, ...) at positions (B, ...) of axis 1."""
    shape = ops.shape(x)
    flat = ops.reshape(x, (-1, *shape[2:]))
    firsts = ops.expand_dims(ops.arange(shape[0], dtype="int32") * shape[1], 1)
    return _rows(flat, places + firsts)


def _from_root(x, value):
    """Prepends a value for ROOT to x (B, T): (B, P)."""
    return ops.concatenate([ops.full_like(x[:, :1], value), x], 1)


def _levels(source):
    """Number of edges in the path to every position, (B, P), from sources (B, P)."""
    count = ops.shape(source)[1]

    def double(reach, level, jump):
        """Doubles the number of edges that `jump` follows."""
        return 2 * reach, level + _at(level, jump), _at(jump, jump)

    level = _from_root(ops.ones_like(source[:, 1:]), 0)
    first = ops.convert_to_tensor(1, "int32"), level, source
    return ops.while_loop(lambda reach, *_: reach < count, double, first)[1]


class _Stack(NamedTuple):
    """The weights of one layer for all M edge types, concatenated along rows."""

    kernel: Tensor  # (M K, 4 U)
    recurrent_kernel: Tensor  # (M U, 4 U)
    bias: Tensor  # (M, 4 U)


def _stacks(edges: Sequence[Sequence[Layer]]) -> list[_Stack]:
    return [
        _Stack(
            ops.concatenate([layer.kernel for layer in layers], 0),
            ops.concatenate([layer.recurrent_kernel for layer in layers], 0),
            ops.concatenate([ops.expand_dims(layer.bias, 0) for layer in layers], 0),
        )
        for layers in zip(*edges, strict=True)
    ]


def _spread(x, kinds):
    """Rows (..., M K) of zeros, with x (..., K) in the part where `kinds` (..., M) is 1."""
    if kinds.shape[-1] == 1:
        return x
    spread = ops.expand_dims(kinds, -1) * ops.expand_dims(x, -2)
    return ops.reshape(spread, (*ops.shape(x)[:-2], -1, kinds.shape[-1] * x.shape[-1]))


def _run(x, kinds, source, stacks):
    """The states of ROOT and of all words in the given order, (P, B, W).

    Args:
        x: (T, B, 4 U), the projected inputs of the first layer.
        kinds: (T, B, M), one-hot edge types.
        source: (T, B), the index of each word's source along the first axis of the result.
        stacks: list of `_Stack`.
    """
    units, (steps, rows) = x.shape[-1] // 4, ops.shape(source)
    width = 2 * units * len(stacks)
    source = source * rows + ops.arange(rows, dtype="int32")

    def body(step, states):
        taken = ops.split(_rows(states, _rows(source, step)), 2 * len(stacks), axis=-1)
        kind, z = _rows(kinds, step), _rows(x, step)
        new: list[Tensor] = []
        for place, stack in enumerate(stacks):
            h, c = taken[2 * place : 2 * place + 2]  # (B, U)
            if place:
                z = _spread(new[-2], kind) @ stack.kernel + kind @ stack.bias
            new += update(z + _spread(h, kind) @ stack.recurrent_kernel, c)[:2]
        step += 1
        end = step * rows
        parts = states[:end], ops.concatenate(new, -1), states[end + rows :]
        return step, ops.concatenate(parts, 0)

    first = ops.convert_to_tensor(0, "int32"), ops.full(((steps + 1) * rows, width), INITIAL)
    states = ops.while_loop(lambda step, _: step < steps, body, first)[1]
    return ops.reshape(states, (steps + 1, rows, width))


def _hidden(states, units):
    """The last layer's h (..., U) of states (..., W)."""
    return states[..., -2 * units : -units]


def _turned(x):
    """Swaps the first two axes."""
    return ops.swapaxes(x, 0, 1)


def _left(layers, vectors, paths):
    """Encoding of the left dependents of every word's head, (B, T, U).

    It is computed for every word, but used only for the first right dependent of a head.
    """
    stacks, units = _stacks([layers]), layers[0].recurrent_kernel.shape[0]
    x = _turned(vectors) @ stacks[0].kernel + stacks[0].bias[0]
    read = _hidden(_run(x, ops.ones_like(x[..., :1]), _turned(paths.before), stacks), units)
    return _at(_turned(read), paths.left)


def tree_language_model(
    model: keras.Model, root: int
) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    """A TreeLSTM as a function of `ids` and `heads` (B, T). Heads are -1 in the padding.

    It returns `log_probabilities` (B, T), which are 0 there.
    """

    def function(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        weights = model.recurrent_weights()
        heads = ops.maximum(tensors["heads"], 0)  # padding: last dependents of ROOT
        paths = _paths(heads)
        source = _from_root(paths.source, 0)  # (B, P)
        order = ops.argsort(_levels(source), 1)  # (B, P) positions, ROOT first
        rank = ops.argsort(order, 1)  # (B, P), the inverse of `order`

        def ordered(x: Tensor) -> Tensor:
            """x (B, P, ...) in the order of the steps, without ROOT: (T, B, ...)."""
            return _turned(_at(x, order[:, 1:]))

        words = _from_root(tensors["ids"], root)  # (B, P)
        given = _rows(weights.embeddings, ordered(_at(words, source)))  # (T, B, E)
        kinds = ops.one_hot(ordered(_from_root(paths.edge, 0)), len(Edge), dtype=given.dtype)
        units = weights.generators[0][0].recurrent_kernel.shape[0]
        stacks = _stacks(_without_left(weights))
        x = _spread(given, kinds) @ stacks[0].kernel + kinds @ stacks[0].bias
        if weights.left:
            vectors = _rows(weights.embeddings, tensors["ids"])
            read = ordered(_from_root(_left(weights.left, vectors, paths), 0))
            kernel = weights.generators[Edge.RIGHT][0].kernel[given.shape[-1] :]
            x += (kinds[..., Edge.RIGHT : Edge.RIGHT + 1] * read) @ kernel
        states = _run(x, kinds, ordered(_at(rank, source)), stacks)[1:]
        log_probabilities = ops.log_softmax(model.logits(_hidden(states, units)))  # (T, B, V)
        found = _chosen(log_probabilities, ordered(words))
        found = _at(_from_root(_turned(found), 0), rank[:, 1:])
        valid = ops.cast(tensors["heads"] >= 0, found.dtype)
        return {"log_probabilities": found * valid}

    return function


def _without_left(weights):
    """The layers of every edge type, without the kernel rows for left dependents."""
    size = weights.embeddings.shape[-1]
    return [
        [layers[0]._replace(kernel=layers[0].kernel[:size]), *layers[1:]]
        for layers in weights.generators
    ]


def _chosen(rows, places):
    """The entries of rows (T, B, V) at indices (T, B)."""
    flat, size = ops.reshape(rows, (-1,)), rows.shape[-1]
    shape = ops.shape(places)
    firsts = size * ops.arange(shape[0] * shape[1], dtype="int32")
    return _rows(flat, ops.reshape(firsts, shape) + places)


def of_keras(
    model: keras.Model, root: int, ids: np.ndarray, heads: np.ndarray
) -> dict[str, np.ndarray]:
    """The results of Keras for the inputs of `tree_language_model`, with the grids of training."""
    rows = heads >= 0
    schedules = []
    for valid, words, above in zip(rows, ids, heads, strict=True):
        tree = DependencyTree(["_"] * valid.sum(), above[valid].tolist())
        schedules.append(schedule_tree(tree, words[valid].tolist(), root))
    scheduled = schedule_batch(schedules, RowCapacity(), bool(model.left))
    found = np.zeros(ids.shape, "float32")
    scores = model.log_probabilities(scheduled.grids, scheduled.targets)
    found[rows] = ops.convert_to_numpy(scores)[: scheduled.words]
    return {"log_probabilities": found}


def draw_heads(rng: np.random.Generator, sizes: tuple[int, ...], time: int) -> np.ndarray:
    """Heads (B, T) of random trees. The first tree has `time` words."""
    heads = np.full(sizes, -1)
    lengths = rng.integers(1, time + 1, len(heads))
    lengths[0] = time
    for row, length in zip(heads, lengths, strict=True):
        row[:length] = random_tree(["_"] * length, int(rng.integers(2**31))).heads
    return heads
