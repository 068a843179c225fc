"""The normalization layers of PRPN, which differ from those of Keras in the divisor."""

from typing import Any

import keras
from keras import ops

from keras_onlstm.prpn.step import features_of
from keras_onlstm.utils.numerics import mean
from keras_onlstm.utils.types import Shape, Tensor

__all__ = [
    "BatchNormalization",
    "UnbiasedLayerNormalization",
    "normalized",
    "standardized",
    "standardized_grad",
]

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
    """`gamma * (x - mean) / (std + 1e-6) + beta`, with the unbiased deviation, over the last axis.

    Args:
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        x: (..., features), with at least two features.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_onlstm.prpn.normalization import UnbiasedLayerNormalization
    >>> normalized = UnbiasedLayerNormalization()(np.array([[1.0, 2.0, 3.0]]))
    >>> keras.ops.convert_to_numpy(normalized).round(3)
    array([[-1.,  0.,  1.]], dtype=float32)
    """

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

    Training uses the mean and the biased variance of the batch, and updates moving averages of the
    mean and the unbiased variance.

    Args:
        momentum: weight of the batch in the moving averages.
        epsilon: number added to the variance.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        x: (..., features).
        training: whether to use the batch's statistics.
        counts: booleans (...), the rows to take statistics of. Default: all.
    """

    def __init__(self, momentum: float = 0.1, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum, self.epsilon = momentum, epsilon

    def build(self, input_shape: Shape) -> None:
        shape = (features_of(input_shape),)
        for name, start, trainable in (
            ("gamma", "ones", True),
            ("beta", "zeros", True),
            ("moving_mean", "zeros", False),
            ("moving_variance", "ones", False),
        ):
            weight = self.add_weight(
                shape=shape,
                initializer=start,
                trainable=trainable,
                autocast=False,
                aggregation="mean",  # each of several devices has a part of the batch
                name=name,
            )
            setattr(self, name, weight)
        self.built = True

    def call(self, x: Tensor, training: bool = False, counts: Tensor | None = None) -> Tensor:
        dtype = self.variable_dtype
        wide = ops.cast(x, dtype)
        if training:
            rows = ops.reshape(wide, (-1, x.shape[-1]))
            if counts is None:
                counts = ops.ones(ops.shape(rows)[:1], dtype)
            share = ops.expand_dims(ops.cast(ops.reshape(counts, (-1,)), dtype), -1)
            count = ops.maximum(ops.sum(share), 1.0)
            average = ops.sum(rows * share, 0) / count
            variance = ops.sum((rows - average) ** 2 * share, 0) / count
            unbiased = variance * count / ops.maximum(count - 1.0, 1.0)
            for stored, now in ((self.moving_mean, average), (self.moving_variance, unbiased)):
                now = ops.stop_gradient(now)
                stored.assign(stored + self.momentum * (now - stored))
        else:
            average, variance = self.moving_mean, self.moving_variance
        scale = self.gamma / (variance + self.epsilon) ** 0.5
        return ops.cast((wide - average) * scale + self.beta, x.dtype)

    def get_config(self) -> dict[str, Any]:
        own = {"momentum": self.momentum, "epsilon": self.epsilon}
        return {**super().get_config(), **own}
