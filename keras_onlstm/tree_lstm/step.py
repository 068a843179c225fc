"""The weights and the equations of TreeLSTM, and their reference implementation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.recurrence.lstm import Gates, activated, cell_state, hidden_state
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.numerics import fold_in

INITIAL = 0.01  # all hidden and cell states of ROOT and before the first left dependent


class Layer(NamedTuple):
    """The weights of a layer of an LSTM, with the gates input, forget, output, candidate."""

    kernel: Tensor  # (size of its input, 4 U)
    recurrent_kernel: Tensor  # (U, 4 U)
    bias: Tensor  # (4 U,)


class Weights(NamedTuple):
    """The weights of a TreeLSTM below its softmax."""

    embeddings: Tensor  # (V, E)
    # Tuples of L layers for each `Edge`. In a sequential model all but that of RIGHT are empty. If
    # the model reads left dependents, the first kernel of RIGHT is (E + U, 4 U).
    generators: tuple[tuple[Layer, ...], ...]
    left: tuple[Layer, ...]  # read left dependents; empty in a model without them


def update(z: Tensor, c_tm1: Tensor) -> tuple[Tensor, Tensor, Gates]:
    """New hidden and cell states (..., U) and the gates, from pre-activations (..., 4 U)."""
    i, f, output, candidate = ops.split(z, 4, axis=-1)
    gates = activated(input=i, forget=f, candidate=candidate, output=output)
    c = cell_state(gates, c_tm1)
    return hidden_state(gates.output, c), c, gates


def deep_step(
    x: Tensor, layers: Sequence[Layer], states: Sequence[tuple[Tensor, Tensor]]
) -> list[tuple[Tensor, Tensor]]:
    """A step of a deep LSTM with one edge type, from the states of sources to those of words.

    `x` is (R, input size); states are L pairs (R, U).
    """
    new = []
    for layer, (h, c) in zip(layers, states, strict=True):
        x, c, _ = update(x @ layer.kernel + h @ layer.recurrent_kernel + layer.bias, c)
        new.append((x, c))
    return new


def _initial(layers: Sequence[Layer]) -> list[tuple[Tensor, Tensor]]:
    rows = [INITIAL * ops.ones_like(layer.recurrent_kernel[:, :1]) for layer in layers]
    return [(row, row) for row in map(ops.transpose, rows)]  # (1, U) each


def reference(weights: Weights, tree: DependencyTree, ids: Sequence[int], root: int) -> Tensor:
    """Reference implementation: the hidden states (n, U) from which a tree's words are predicted.

    `ids` are those of the n words, `root` the id of ROOT.
    """

    def vector(index):
        return ops.expand_dims(weights.embeddings[([root, *ids])[index]], 0)  # (1, E)

    states = {0: _initial(weights.generators[Edge.RIGHT])}
    for step in tree.steps():
        x = vector(step.source)
        if weights.left and step.edge == Edge.RIGHT:
            left = _initial(weights.left)
            for index in step.left:
                left = deep_step(vector(index), weights.left, left)
            x = ops.concatenate([x, left[-1][0]], -1)
        states[step.position] = deep_step(x, weights.generators[step.edge], states[step.source])
    return ops.concatenate([states[index][-1][0] for index in range(1, len(tree) + 1)], 0)


def uniform_initializer(seed: int | None, *names: str | int) -> keras.initializers.Initializer:
    """The initializer of every weight: within 0.1, as published."""
    return keras.initializers.RandomUniform(-0.1, 0.1, seed=fold_in(seed, *names))


class GeneratorLSTM(keras.layers.Layer):
    """The weights of a deep LSTM, without the loop."""

    def __init__(
        self, input_dim: int, units: int, num_layers: int, seed: int | None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.input_dim, self.units, self.num_layers, self.seed = input_dim, units, num_layers, seed
        self._layers_of_weights: list[Layer] = []

    def build(self, input_shape: Shape | None = None) -> None:
        for index in range(self.num_layers):
            shapes = {
                "kernel": (self.units if index else self.input_dim, 4 * self.units),
                "recurrent_kernel": (self.units, 4 * self.units),
                "bias": (4 * self.units,),
            }
            weights = {
                name: self.add_weight(
                    shape=shape,
                    initializer=uniform_initializer(self.seed, self.name, name, index),
                    name=f"{name}_{index}",
                )
                for name, shape in shapes.items()
            }
            self._layers_of_weights.append(Layer(**weights))
        self.built = True

    @property
    def variables_by_layer(self) -> tuple[Layer, ...]:
        """A `Layer` of variables per layer."""
        return tuple(self._layers_of_weights)

    def values(self, dtype: str) -> tuple[Layer, ...]:
        """A `Layer` of tensors per layer."""
        return tuple(
            Layer(*(ops.convert_to_tensor(weight, dtype=dtype) for weight in layer))
            for layer in self._layers_of_weights
        )
