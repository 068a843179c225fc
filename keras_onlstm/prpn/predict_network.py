"""The predict network of PRPN: attention to past outputs, gated for the next word."""

from typing import Any

import keras
from keras import ops

from keras_onlstm.prpn.parsing_network import BatchNormalization
from keras_onlstm.prpn.step import banded, banded_attention, features_of, uniform
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.numerics import fold_in, matmul, tanh
from keras_onlstm.utils.validation import check_integer


@keras.saving.register_keras_serializable(package="keras_onlstm")
class _Linear(keras.layers.Layer):
    """`x W + b`, also in float64, with PyTorch's initialization."""

    def __init__(self, units: int, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units, self.seed = units, seed

    def build(self, input_shape: Shape) -> None:
        size = features_of(input_shape)
        bound = size**-0.5
        for name, shape in (("kernel", (size, self.units)), ("bias", (self.units,))):
            initializer = uniform(bound, self.seed, name)
            setattr(self, name, self.add_weight(shape=shape, initializer=initializer, name=name))
        self.built = True

    def call(self, x: Tensor) -> Tensor:
        return matmul(x, self.kernel) + ops.convert_to_tensor(self.bias, dtype=x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units, "seed": self.seed}


@keras.saving.register_keras_serializable(package="keras_onlstm")
class PredictNetwork(keras.layers.Layer):
    """Maps outputs of the reading network to vectors that are compared with word vectors.

    Every step attends to the outputs before it, as far back as the gates are open. Residual blocks,
    if any, a linear map, batch normalization and tanh follow.

    Source: Shen et al. 2018, section 5.2, https://openreview.net/forum?id=rkgOLb-0W.

    Args:
        output_dim: positive integer, E: output size.
        residual_blocks: integer, 0 or above.
        attends: whether there is attention; without it, its result is replaced by 0.
        dropout: dropout rate inside the network.
        output_dropout: dropout rate of the output.
        seed: integer or `None`.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        h: (B, T, U) outputs of the reading network.
        gates: (B, T, S), in [0, 1]; slot 0 is the step before.
        memory: (B, S, U) outputs before the window, newest first.
        training: whether to apply dropout and to normalize with batch statistics.
        word_mask: boolean (B, T), `False` for padding at the end; or `None`.

    Returns:
        (B, T, E).
    """

    def __init__(
        self,
        output_dim: int,
        residual_blocks: int = 0,
        attends: bool = True,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)  # keeps the dtype of gates
        self._config: dict[str, Any] = {
            "output_dim": check_integer("output_dim", output_dim, 1),
            "residual_blocks": check_integer("residual_blocks", residual_blocks, 0),
            "attends": attends,
            "dropout": dropout,
            "output_dropout": output_dropout,
            "seed": seed,
        }

    def _linear(self, name, inputs, units):
        layer = _Linear(
            units, fold_in(self._config["seed"], name), dtype=self.dtype_policy, name=name
        )
        layer.build((None, inputs))
        return layer

    def _norm(self, name, size):
        layer = BatchNormalization(dtype=self.dtype_policy, name=name)
        layer.build((None, size))
        return layer

    def build(self, h_shape: Shape, *_: Any) -> None:
        config, units = self._config, features_of(h_shape)
        self.key: Any = self._linear("key", units, units) if config["attends"] else None
        self.blocks = [
            [
                self._linear(f"block_{index}_first", 2 * units, 2 * units),
                self._norm(f"block_{index}_first_norm", 2 * units),
                self._linear(f"block_{index}_second", 2 * units, 2 * units),
                self._norm(f"block_{index}_second_norm", 2 * units),
            ]
            for index in range(config["residual_blocks"])
        ]
        self.last = self._linear("last", 2 * units, config["output_dim"])
        self.last_norm = self._norm("last_norm", config["output_dim"])
        self.draws = keras.random.SeedGenerator(fold_in(config["seed"], "dropout"))
        self.built = True

    def _drop(self, x, training, rate="dropout"):
        rate = self._config[rate]
        return keras.random.dropout(x, rate, seed=self.draws) if training and rate else x

    def attention(self, h: Tensor, gates: Tensor, memory: Tensor, training: bool = False) -> Tensor:
        """The attention weights of each step, from inputs as in a call.

        They are (B, T, S + T - 1), over the memory, oldest first, and all outputs but the last.
        """
        key = self._drop(self.key(self._drop(h, training)), training)  # (B, T, U)
        return banded_attention(key, self._attended(h, memory), gates)

    @staticmethod
    def _attended(h, memory):
        return banded(ops.cast(memory, h.dtype), h)[:, :-1]  # (B, S + T - 1, U)

    def call(
        self,
        h: Tensor,
        gates: Tensor,
        memory: Tensor,
        training: bool = False,
        word_mask: Tensor | None = None,
    ) -> Tensor:
        options, h = {"training": training, "word_mask": word_mask}, ops.cast(h, self.compute_dtype)
        summary = ops.zeros_like(h)
        if self._config["attends"]:
            shares = ops.cast(self.attention(h, gates, memory, training), h.dtype)
            summary = shares @ self._attended(h, memory)
        x = ops.concatenate([h, summary], -1)  # (B, T, 2 U)
        for first, first_norm, second, second_norm in self.blocks:
            inner = ops.relu(first_norm(first(x), **options))
            inner = second_norm(second(self._drop(inner, training)), **options)
            x = ops.relu(x + inner)
        x = self.last_norm(self.last(self._drop(x, training)), **options)
        return self._drop(tanh(x), training, "output_dropout")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}
