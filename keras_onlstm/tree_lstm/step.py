"""What TreeLSTM computes at each word: the equations of its LSTMs, and what they are given.

Equations 1 to 7 of Zhang, Lu, Lapata 2016, as the published code has them.

Axes, for the whole of TreeLSTM:

- K: steps of a grid; a word stands in a later step than its source
- R: rows of a step, of all trees of a batch, one edge type after the other
- N: words of a batch that are predicted
- E: size of a word vector
- U: units
- L: layers
- V: vocabulary
"""

from collections.abc import Sequence
from typing import NamedTuple

from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.utils.numerics import tanh
from keras_onlstm.utils.types import Tensor

__all__ = [
    "INITIAL",
    "LSTM_GATES",
    "Layer",
    "Weights",
    "advance",
    "deep_advance",
    "readable",
    "retreat",
]

LSTM_GATES = ("input", "forget", "output", "candidate")  # their order in every kernel
INITIAL = 0.01  # every hidden and cell state of ROOT, and before the first left dependent


class Layer(NamedTuple):
    """The weights of a layer of an LSTM."""

    kernel: Tensor  # (size of its input, 4 U)
    recurrent_kernel: Tensor  # (U, 4 U)
    bias: Tensor  # (4 U,)


class Weights(NamedTuple):
    """The weights of a TreeLSTM below its softmax.

    Attributes:
        embeddings: (V, E).
        generators: four tuples of L `Layer`, in the order of `Edge`; a sequential model has that
            of `RIGHT` alone, the others are empty. The first kernel of `RIGHT` is (E + U, 4 U)
            where there are left dependents.
        left: tuple of `Layer` that read left dependents, empty where nothing does.
    """

    embeddings: Tensor
    generators: tuple[tuple[Layer, ...], ...]
    left: tuple[Layer, ...]


def advance(z: Tensor, c_tm1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden and cell state (..., U) and gates (..., 4 U) of a step, from its sums (..., 4 U)."""
    i, f, output, candidate = ops.split(z, 4, axis=-1)
    i, f, output, candidate = ops.sigmoid(i), ops.sigmoid(f), ops.sigmoid(output), tanh(candidate)
    c = f * c_tm1 + i * candidate
    return output * tanh(c), c, ops.concatenate([i, f, output, candidate], -1)


def deep_advance(
    x: Tensor, layers: Sequence[Layer], states: Sequence[tuple[Tensor, Tensor]]
) -> list[tuple[Tensor, Tensor]]:
    """A step of a deep LSTM, one edge type in all rows.

    `x` is (R, input size); states are L pairs (R, U) of the sources, and then of the words.
    """
    new = []
    for layer, (h, c) in zip(layers, states, strict=True):
        x, c, _ = advance(x @ layer.kernel + h @ layer.recurrent_kernel + layer.bias, c)
        new.append((x, c))
    return new


def retreat(
    dh: Tensor, dc: Tensor, c: Tensor, c_tm1: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `advance` by z and by the cell state before, from those of its states."""
    i, f, output, candidate = ops.split(gates, 4, axis=-1)
    squashed = tanh(c)
    dc = dc + dh * output * (1.0 - squashed * squashed)
    dz = [
        dc * candidate * i * (1.0 - i),
        dc * c_tm1 * f * (1.0 - f),
        dh * squashed * output * (1.0 - output),
        dc * i * (1.0 - candidate * candidate),
    ]
    return ops.concatenate(dz, -1), dc * f


def _initial(layers: Sequence[Layer]) -> list[tuple[Tensor, Tensor]]:
    return [
        (INITIAL * ops.ones_like(row), INITIAL * ops.ones_like(row))
        for row in (
            layer.recurrent_kernel[:1, : layer.recurrent_kernel.shape[0]] for layer in layers
        )
    ]


def readable(weights: Weights, tree: DependencyTree, ids: Sequence[int], root: int) -> Tensor:
    """The hidden states (n, U) from which the words of a tree are predicted, equations 1 to 7.

    `ids` are those of the n words, `root` the id of ROOT.
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
