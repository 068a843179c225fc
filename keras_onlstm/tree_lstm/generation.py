"""TreeLSTM word by word: the states of words whose sources are known, in many trees at once.

A row is a word of a tree. States of a row are one array, h and c of the first layer, the second,
and so on, (R, 2 U L), as in the fast loop. Rows may have any edge type: each type is computed for
all rows, and each row takes its own. That is four times the work, yet of one shape, and the softmax
over the vocabulary takes as long.
"""

from collections.abc import Sequence

from keras import ops

from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.tree_lstm.step import Layer, Weights, deep_advance
from keras_onlstm.utils.rows import take_rows
from keras_onlstm.utils.types import Tensor

__all__ = ["grow", "read_left"]


def _advanced(x: Tensor, layers: Sequence[Layer], states: Tensor) -> Tensor:
    parts = ops.split(states, 2 * len(layers), axis=-1)
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    return ops.concatenate([part for pair in deep_advance(x, layers, pairs) for part in pair], -1)


def grow(weights: Weights, words: Tensor, edges: Tensor, states: Tensor, left: Tensor) -> Tensor:
    """The states of words.

    Args:
        weights: `Weights`.
        words: (R,) ids of the words' sources.
        edges: (R,) `Edge` from there.
        states: (R, 2 U L) of the sources.
        left: (R, U) what was read of the sources' left dependents, where the edge is `RIGHT`. Not
            used where the model reads none.

    Returns:
        (R, 2 U L).
    """
    vectors = take_rows(weights.embeddings, words)  # (R, E)
    edges = ops.expand_dims(edges, -1)
    found = states
    for edge in Edge:
        x = vectors
        if weights.left and edge == Edge.RIGHT:
            x = ops.concatenate([x, left], -1)
        new = _advanced(x, weights.generators[edge], states)
        found = ops.where(edges == int(edge), new, found)
    return found


def read_left(weights: Weights, words: Tensor, states: Tensor, is_word: Tensor) -> Tensor:
    """The states of the LSTM over left dependents after one more of them.

    Args:
        weights: `Weights`, of a model that reads them.
        words: (R,) their ids.
        states: (R, 2 U times layers of that LSTM).
        is_word: (R,) bool: where there is none, the states stay.

    Returns:
        Like `states`.
    """
    vectors = take_rows(weights.embeddings, words)
    new = _advanced(vectors, weights.left, states)
    return ops.where(ops.expand_dims(is_word, -1), new, states)
