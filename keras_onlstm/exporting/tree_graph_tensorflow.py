"""TreeLSTM graph that reads only ids and heads: it computes paths and order itself.

Each step reads one word of each sentence, every word after its source, and the states of all words
are kept. Four products, one per edge type, become one: the four kernels are concatenated along
rows, and each state is put into the columns of its edge type, with 0 in the others.

Axes, in addition to those of `tree_lstm.step`:

- B: sentences
- T: words of a sentence; their positions count from 1, as in `DependencyTree`
- P: positions, T + 1 of them: 0 is ROOT
- W: states of all layers, h and c of the first, h and c of the second, ...: 2 U L
"""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree, random_tree
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.tree_lstm.schedule import RowCapacity, schedule_batch, schedule_tree
from keras_onlstm.tree_lstm.step import INITIAL, Layer, update
from keras_onlstm.utils import Tensor

_NONE = 2**30  # larger than any position


def _rows(x, indices):
    """Gathers rows of x (N, ...). `keras.ops.take` would check for negative indices every step."""
    import tensorflow as tf

    return tf.gather(x, indices)


class _Paths(NamedTuple):
    """The last edge of every word's path, and some siblings: integers (B, T)."""

    source: Tensor  # position of the source
    edge: Tensor  # `Edge`
    previous: Tensor  # the previous sibling on the same side of the head; 0: none
    left: Tensor  # the left dependent nearest to its head; 0: none


def _paths(heads):
    """`_Paths` from heads (B, T)."""
    positions = ops.cumsum(ops.ones_like(heads), axis=1)
    is_right = positions > heads
    other = ops.expand_dims(positions, 1)  # axes (B, T, T): word, other word
    word, head = ops.expand_dims(positions, 2), ops.expand_dims(heads, 2)
    siblings = ops.equal(head, ops.expand_dims(heads, 1))
    side, other_side = ops.expand_dims(is_right, 2), ops.expand_dims(is_right, 1)
    same_side = ops.logical_and(siblings, ops.equal(side, other_side))
    previous = ops.max(ops.where(ops.logical_and(same_side, other < word), other, 0), 2)
    following = ops.min(ops.where(ops.logical_and(same_side, other > word), other, _NONE), 2)
    left = ops.max(ops.where(ops.logical_and(siblings, ops.logical_not(other_side)), other, 0), 2)
    # The source of the dependent nearest to its head is the head. Others have the next sibling.
    is_nearest = ops.where(is_right, ops.equal(previous, 0), ops.equal(following, _NONE))
    source = ops.where(is_nearest, heads, ops.where(is_right, previous, following))
    edge = ops.cast(is_right, "int32") + ops.where(is_nearest, 0, 2)
    return _Paths(source, edge, previous, left)


def _gather_positions(x, positions):
    """Gathers from x (B, P, ...) at positions (B, ...) of axis 1."""
    shape = ops.shape(x)
    flat = ops.reshape(x, (-1, *shape[2:]))  # (B P, ...)
    offsets = ops.expand_dims(ops.arange(shape[0], dtype="int32") * shape[1], 1)
    return _rows(flat, positions + offsets)


def _with_root(x, value):
    """Prepends a value for ROOT to x (B, T): (B, P)."""
    return ops.concatenate([ops.full_like(x[:, :1], value), x], 1)


def _levels(source):
    """Number of edges in the path to every position, (B, P), from sources (B, P)."""
    count = ops.shape(source)[1]

    def double(reach, level, jump):
        """Doubles the number of edges that `jump` follows."""
        return 2 * reach, level + _gather_positions(level, jump), _gather_positions(jump, jump)

    level = _with_root(ops.ones_like(source[:, 1:]), 0)
    first = ops.convert_to_tensor(1, "int32"), level, source
    return ops.while_loop(lambda reach, *_: reach < count, double, first)[1]


def _stack_layers(edges):
    """The layers of all M edge types, concatenated along rows."""
    return [
        Layer(
            ops.concatenate([layer.kernel for layer in layers], 0),  # (M K, 4 U)
            ops.concatenate([layer.recurrent_kernel for layer in layers], 0),  # (M U, 4 U)
            ops.concatenate([ops.expand_dims(layer.bias, 0) for layer in layers], 0),  # (M, 4 U)
        )
        for layers in zip(*edges, strict=True)
    ]


def _expand_by_edge(x, edges):
    """Rows (..., M K) of zeros, with x (..., K) in the part where one-hot `edges` (..., M) is 1."""
    if edges.shape[-1] == 1:
        return x
    expanded = ops.expand_dims(edges, -1) * ops.expand_dims(x, -2)  # (..., M, K)
    return ops.reshape(expanded, (*ops.shape(x)[:-2], -1, edges.shape[-1] * x.shape[-1]))


def _run(x, edges, source, layers):
    """The states of ROOT and of all words in the order of the steps, (P, B, W).

    `x` (T, B, 4 U) are projected inputs of the first layer, `edges` (T, B, M) one-hot edge types,
    `source` (T, B) the index of each word's source along the first axis of the result, and `layers`
    the result of `_stack_layers`.
    """
    units, (steps, rows) = x.shape[-1] // 4, ops.shape(source)
    width = 2 * units * len(layers)
    source = source * rows + ops.arange(rows, dtype="int32")  # row of `states` (P B, W)

    def body(step, states):
        previous = ops.split(_rows(states, _rows(source, step)), 2 * len(layers), axis=-1)
        edge, z = _rows(edges, step), _rows(x, step)
        new: list[Tensor] = []
        for index, layer in enumerate(layers):
            h, c = previous[2 * index : 2 * index + 2]  # (B, U)
            if index:
                z = _expand_by_edge(new[-2], edge) @ layer.kernel + edge @ layer.bias
            new += update(z + _expand_by_edge(h, edge) @ layer.recurrent_kernel, c)[:2]
        step += 1
        end = step * rows
        parts = states[:end], ops.concatenate(new, -1), states[end + rows :]
        return step, ops.concatenate(parts, 0)

    first = ops.convert_to_tensor(0, "int32"), ops.full(((steps + 1) * rows, width), INITIAL)
    states = ops.while_loop(lambda step, _: step < steps, body, first)[1]
    return ops.reshape(states, (steps + 1, rows, width))


def _last_h(states, units):
    """The last layer's h (..., U) of states (..., W)."""
    return states[..., -2 * units : -units]


def _swap(x):
    """Swaps the batch and the time axis."""
    return ops.swapaxes(x, 0, 1)


def _encode_left(layers, vectors, paths):
    """Encoding of the left dependents of every word's head, (B, T, U).

    It is computed for every word, but used only for the first right dependent of a head.
    """
    stacked, units = _stack_layers([layers]), layers[0].recurrent_kernel.shape[0]
    x = _swap(vectors) @ stacked[0].kernel + stacked[0].bias[0]  # (T, B, 4 U)
    states = _run(x, ops.ones_like(x[..., :1]), _swap(paths.previous), stacked)
    return _gather_positions(_swap(_last_h(states, units)), paths.left)


def tree_language_model(
    model: keras.Model, root: int, tensors: dict[str, Tensor]
) -> dict[str, Tensor]:
    """The `log_probabilities` (B, T) of a TreeLSTM, from `ids` and `heads` (B, T).

    In the padding, heads are -1 and log-probabilities 0.
    """
    weights = model.recurrent_weights()
    heads = ops.maximum(tensors["heads"], 0)  # padding: last dependents of ROOT
    paths = _paths(heads)
    source = _with_root(paths.source, 0)  # (B, P)
    order = ops.argsort(_levels(source), 1)  # (B, P) positions, ROOT first
    rank = ops.argsort(order, 1)  # (B, P), the inverse of `order`

    def ordered(x):
        """x (B, P, ...) in the order of the steps, without ROOT: (T, B, ...)."""
        return _swap(_gather_positions(x, order[:, 1:]))

    words = _with_root(tensors["ids"], root)  # (B, P)
    sources = ordered(_gather_positions(words, source))
    inputs = _rows(weights.embeddings, sources)  # (T, B, E)
    edges = ops.one_hot(ordered(_with_root(paths.edge, 0)), len(Edge), dtype=inputs.dtype)
    units = weights.generators[0][0].recurrent_kernel.shape[0]
    layers = _stack_layers(  # without the kernel rows for left dependents
        [first._replace(kernel=first.kernel[: inputs.shape[-1]]), *others]
        for first, *others in weights.generators
    )
    x = _expand_by_edge(inputs, edges) @ layers[0].kernel + edges @ layers[0].bias
    if weights.left:
        vectors = _rows(weights.embeddings, tensors["ids"])  # (B, T, E)
        left = ordered(_with_root(_encode_left(weights.left, vectors, paths), 0))
        kernel = weights.generators[Edge.RIGHT][0].kernel[inputs.shape[-1] :]
        x += (edges[..., Edge.RIGHT : Edge.RIGHT + 1] * left) @ kernel
    states = _run(x, edges, ordered(_gather_positions(rank, source)), layers)[1:]
    log_probabilities = ops.log_softmax(model.logits(_last_h(states, units)))  # (T, B, V)
    scores = _gather_entries(log_probabilities, ordered(words))  # (T, B)
    scores = _gather_positions(_with_root(_swap(scores), 0), rank[:, 1:])  # (B, T)
    mask = ops.cast(tensors["heads"] >= 0, scores.dtype)
    return {"log_probabilities": scores * mask}


def _gather_entries(x, indices):
    """The entries of x (T, B, V) at indices (T, B)."""
    flat, size = ops.reshape(x, (-1,)), x.shape[-1]
    shape = ops.shape(indices)
    offsets = size * ops.arange(shape[0] * shape[1], dtype="int32")
    return _rows(flat, ops.reshape(offsets, shape) + indices)


def keras_outputs(
    model: keras.Model, root: int, ids: np.ndarray, heads: np.ndarray
) -> dict[str, np.ndarray]:
    """The results of Keras for the inputs of `tree_language_model`, with the grids of training."""
    mask = heads >= 0
    schedules = []
    for valid, words, tree_heads in zip(mask, ids, heads, strict=True):
        tree = DependencyTree(["_"] * valid.sum(), tree_heads[valid].tolist())
        schedules.append(schedule_tree(tree, words[valid].tolist(), root))
    scheduled = schedule_batch(schedules, RowCapacity(), bool(model.left))
    log_probabilities = np.zeros(ids.shape, "float32")
    scores = model.log_probabilities(scheduled.grids, scheduled.targets)
    log_probabilities[mask] = ops.convert_to_numpy(scores)[: scheduled.words]
    return {"log_probabilities": log_probabilities}


def draw_heads(rng: np.random.Generator, sizes: tuple[int, ...], time: int) -> np.ndarray:
    """Heads (B, T) of random trees. The first tree has `time` words."""
    heads = np.full(sizes, -1)
    lengths = rng.integers(1, time + 1, len(heads))
    lengths[0] = time
    for row, length in zip(heads, lengths, strict=True):
        row[:length] = random_tree(["_"] * length, int(rng.integers(2**31))).heads
    return heads
