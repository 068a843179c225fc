"""TreeLSTM as the paper has it: one tree, one word after the other, with automatic gradients."""

from collections.abc import Sequence

from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.tree_lstm.step import INITIAL, Layer, Weights, deep_advance
from keras_onlstm.utils.types import Tensor

__all__ = ["readable"]


def _initial(layers: Sequence[Layer]) -> list[tuple[Tensor, Tensor]]:
    return [
        (INITIAL * ops.ones_like(row), INITIAL * ops.ones_like(row))
        for row in (
            layer.recurrent_kernel[:1, : layer.recurrent_kernel.shape[0]] for layer in layers
        )
    ]


def readable(weights: Weights, tree: DependencyTree, ids: Sequence[int], root: int) -> Tensor:
    """The hidden states from which the words of a tree are predicted, equations 1 to 7.

    Args:
        weights: `Weights`.
        tree: `DependencyTree` of n words, projective.
        ids: n integers, of its words.
        root: integer, the id of ROOT.

    Returns:
        (n, U), in the order of the sentence.
    """

    def vector(place):
        return ops.expand_dims(weights.embeddings[([root, *ids])[place]], 0)  # (1, E)

    states = {0: _initial(weights.generators[Edge.RIGHT])}
    for step in tree.steps():
        x = vector(step.source)
        if weights.left and step.edge == Edge.RIGHT:
            read = _initial(weights.left)
            for place in step.left:
                read = deep_advance(vector(place), weights.left, read)
            x = ops.concatenate([x, read[-1][0]], -1)
        states[step.place] = deep_advance(x, weights.generators[step.edge], states[step.source])
    return ops.concatenate([states[place][-1][0] for place in range(1, len(tree) + 1)], 0)
