"""The parsing network of PRPN: a convolution computes a syntactic distance before every word."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_onlstm.prpn.step import WALL, banded, features_of, last_rows, structural_gates, uniform
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.numerics import fold_in, mean, wide_dtype
from keras_onlstm.utils.validation import check_integer

_EPSILON = 1e-6  # added to the standard deviation, not the variance


def standardized(x: Tensor) -> tuple[Tensor, Tensor]:
    """`(x - mean) / (std + 1e-6)` over the last axis, and the unbiased std (..., 1)."""
    centred = x - ops.expand_dims(mean(x), -1)
    variance = ops.sum(centred * centred, -1, keepdims=True) / (x.shape[-1] - 1)
    # The square root has no gradient at 0, so the deviation of constant rows gets none.
    deviation = ops.where(variance > 0.0, variance, 1.0) ** 0.5
    deviation = ops.where(variance > 0.0, deviation, 0.0)
    return centred / (deviation + _EPSILON), deviation


def standardized_grad(gradient: Tensor, standard: Tensor, deviation: Tensor) -> Tensor:
    """The gradient of `standardized`, from the gradient of its first result and both results."""
    share = ops.sum(gradient * standard, -1, keepdims=True) / (standard.shape[-1] - 1)
    share = share / ops.where(deviation > 0.0, deviation, 1.0)
    gradient = gradient / (deviation + _EPSILON) - standard * share
    return gradient - ops.expand_dims(mean(gradient), -1)


def normalized(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """`UnbiasedLayerNormalization` with these weights."""
    return gamma * standardized(x)[0] + beta


@keras.saving.register_keras_serializable(package="keras_onlstm")
class UnbiasedLayerNormalization(keras.layers.Layer):
    """`gamma * (x - mean) / (std + 1e-6) + beta` over the last axis, with the unbiased std."""

    def build(self, input_shape: Shape) -> None:
        shape = (features_of(input_shape),)
        self.gamma = self.add_weight(shape=shape, initializer="ones", name="gamma")
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta")
        self.built = True

    def call(self, x: Tensor) -> Tensor:
        gamma = ops.convert_to_tensor(self.gamma, dtype=x.dtype)
        beta = ops.convert_to_tensor(self.beta, dtype=x.dtype)
        return normalized(x, gamma, beta)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class BatchNormalization(keras.layers.Layer):
    """Batch normalization over all axes but the last, as in PyTorch.

    Training uses the mean and the biased variance of the batch (of its unmasked rows), and updates
    moving averages of the mean and the unbiased variance with weight `momentum`.
    """

    def __init__(self, momentum: float = 0.1, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum, self.epsilon = momentum, epsilon

    def build(self, input_shape: Shape) -> None:
        shape = (features_of(input_shape),)
        for name, initializer, trainable in (
            ("gamma", "ones", True),
            ("beta", "zeros", True),
            ("moving_mean", "zeros", False),
            ("moving_variance", "ones", False),
        ):
            options: dict[str, Any] = {"trainable": trainable, "autocast": False, "name": name}
            # With several devices, each has a part of the batch.
            weight = self.add_weight(shape, initializer, aggregation="mean", **options)
            setattr(self, name, weight)
        self.built = True

    def call(self, x: Tensor, training: bool = False, word_mask: Tensor | None = None) -> Tensor:
        dtype = self.variable_dtype
        wide = ops.cast(x, dtype)
        if training:
            rows = ops.reshape(wide, (-1, x.shape[-1]))
            if word_mask is None:
                word_mask = ops.ones(ops.shape(rows)[:1], dtype)
            share = ops.expand_dims(ops.cast(ops.reshape(word_mask, (-1,)), dtype), -1)
            count = ops.maximum(ops.sum(share), 1.0)
            average = ops.sum(rows * share, 0) / count
            variance = ops.sum((rows - average) ** 2 * share, 0) / count
            unbiased = variance * count / ops.maximum(count - 1.0, 1.0)
            for moving, new in ((self.moving_mean, average), (self.moving_variance, unbiased)):
                moving.assign(moving + self.momentum * (ops.stop_gradient(new) - moving))
        else:
            average, variance = self.moving_mean, self.moving_variance
        scale = self.gamma / (variance + self.epsilon) ** 0.5
        return ops.cast((wide - average) * scale + self.beta, x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum, "epsilon": self.epsilon}


class Parsing(NamedTuple):
    """The output of the parsing network for a window."""

    distances: Tensor  # (B, T), in (0, 1), before every word
    gates: Tensor  # (B, T, S): how far back the reading network may look
    next_gates: Tensor  # (B, T, S): how far back the predict network may look
    words: Tensor  # (B, L, E), the last word vectors, newest last
    history: Tensor  # (B, S), the last distances, newest first


@keras.saving.register_keras_serializable(package="keras_onlstm")
class ParsingNetwork(keras.layers.Layer):
    """Computes syntactic distances, and gates that are open back to the first larger distance.

    A convolution over each word and those before it, batch normalization and ReLU. One half of the
    features gives the distance before the word, the other an estimate of the one before the next,
    both in (0, 1).

    Source: Shen et al. 2018, section 4, https://openreview.net/forum?id=rkgOLb-0W.

    Args:
        units: positive even integer, U.
        slots: positive integer, S.
        lookback: integer, 0 or above, L: preceding words that a distance depends on.
        resolution: positive number. A distance that is larger by this closes a hard gate.
        hard: whether gates are linear and clipped to [0, 1], instead of sigmoids.
        dropout: dropout rate of the word vectors and the features.
        seed: integer or `None`.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, E) word vectors.
        words: (B, L, E) word vectors before them, or `None`: zeros.
        history: (B, S) distances before them, newest first, or `None`: `WALL`.
        training: whether to apply dropout and to use batch statistics.
        word_mask: boolean (B, T), `False` for padding at the end; or `None`.

    Returns:
        `Parsing`.
    """

    def __init__(
        self,
        units: int,
        slots: int,
        lookback: int,
        resolution: float = 0.1,
        hard: bool = True,
        dropout: float = 0.0,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)  # keeps the dtype of distances and gates
        if check_integer("units", units, 2) % 2:
            raise ValueError(f"units must be even, not {units}: each half gives one distance.")
        if not resolution > 0:
            raise ValueError(f"resolution must be above 0, not {resolution!r}.")
        self.units, self.slots = units, check_integer("slots", slots, 1)
        self.lookback = check_integer("lookback", lookback, 0)
        self.resolution, self.hard, self.dropout, self.seed = resolution, hard, dropout, seed
        self.drops = [
            keras.layers.Dropout(dropout, seed=fold_in(seed, name), dtype=self.dtype_policy)
            for name in ("words", "features")
        ]
        self.norm = BatchNormalization(dtype=self.dtype_policy)

    def build(self, input_shape: Shape) -> None:
        size = features_of(input_shape)
        bound = (size * (self.lookback + 1)) ** -0.5
        half = self.units // 2
        for name, shape, scale in (
            ("kernel", (self.lookback + 1, size, self.units), bound),
            ("bias", (self.units,), bound),
            ("distance_kernel", (half, 2), half**-0.5),
            ("distance_bias", (2,), half**-0.5),
        ):
            initializer = uniform(scale, self.seed, name)
            setattr(self, name, self.add_weight(shape=shape, initializer=initializer, name=name))
        self.norm.build((None, None, self.units))
        self.built = True

    def start(self, batch: int | Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Words and history before a text: zeros (B, L, E), and `WALL` in (B, S)."""
        words = ops.zeros((batch, self.lookback, size), self.compute_dtype)
        return words, WALL * ops.ones((batch, self.slots), wide_dtype(self.compute_dtype))

    def call(
        self,
        x: Tensor,
        words: Tensor | None = None,
        history: Tensor | None = None,
        training: bool = False,
        word_mask: Tensor | None = None,
    ) -> Parsing:
        x, wide = ops.cast(x, self.compute_dtype), wide_dtype(self.compute_dtype)
        if words is None or history is None:
            words, history = self.start(ops.shape(x)[0], x.shape[-1])
        length = ops.shape(x)[1]
        window = ops.concatenate([ops.cast(words, x.dtype), x], 1)  # (B, L + T, E)
        read = self.drops[0](window, training=training)
        kernel = ops.convert_to_tensor(self.kernel, dtype=x.dtype)  # (L + 1, E, U)
        flat = [
            ops.reshape(read[:, offset : offset + length], (-1, x.shape[-1])) @ kernel[offset]
            for offset in range(self.lookback + 1)
        ]
        features = sum(flat) + ops.convert_to_tensor(self.bias, dtype=x.dtype)  # (B T, U)
        features = ops.relu(self.norm(features, training=training, word_mask=word_mask))
        features = ops.cast(self.drops[1](features, training=training), wide)
        half, kernel = self.units // 2, ops.convert_to_tensor(self.distance_kernel, dtype=wide)
        columns = [
            features[:, part * half : (part + 1) * half] @ kernel[:, part : part + 1]
            for part in range(2)
        ]
        bias = ops.convert_to_tensor(self.distance_bias, dtype=wide)
        both = ops.sigmoid(ops.concatenate(columns, 1) + bias)  # (B T, 2)
        both = ops.reshape(both, (*ops.shape(x)[:2], 2))
        distances, estimates = both[..., 0], both[..., 1]
        series = banded(ops.cast(history, both.dtype), distances)  # (B, S + T)
        options = (series, self.slots, self.resolution, self.hard)
        newest = ops.flip(last_rows(series, self.slots, word_mask), 1)  # (B, S)
        return Parsing(
            distances,
            structural_gates(distances, *options),
            structural_gates(estimates, *options),
            last_rows(window, self.lookback, word_mask),
            newest,
        )

    def get_config(self) -> dict[str, Any]:
        names = ("units", "slots", "lookback", "resolution", "hard", "dropout", "seed")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
