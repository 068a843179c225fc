"""The weights of one of TreeLSTM's LSTMs."""

from typing import Any

import keras
from keras import ops

from keras_onlstm.tree_lstm.step import Layer
from keras_onlstm.utils.numerics import derived
from keras_onlstm.utils.types import Shape

__all__ = ["GeneratorLSTM", "start"]


def start(seed: int | None, *places: str | int) -> keras.initializers.Initializer:
    """The initializer of every weight: within 0.1, as published."""
    return keras.initializers.RandomUniform(-0.1, 0.1, seed=derived(seed, *places))


class GeneratorLSTM(keras.layers.Layer):
    """The weights of a deep LSTM, without the loop.

    Args:
        input_dim: integer, size of the first layer's input.
        units: integer, U.
        num_layers: integer, L.
        seed: integer, or `None`.
        **kwargs: `name`, `dtype` of `keras.layers.Layer`.
    """

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
                    initializer=start(self.seed, self.name, name, index),
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
