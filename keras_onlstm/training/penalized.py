"""Adam with the weights' penalty in the gradient, as PyTorch's `Adam(weight_decay=...)` has it."""

from typing import Any

import keras
from keras import ops

from keras_onlstm.training.adam import FusedAdam
from keras_onlstm.utils.types import Tensor

__all__ = ["PenalizedAdam"]


@keras.saving.register_keras_serializable(package="keras_onlstm")
class PenalizedAdam(FusedAdam):
    """`keras.optimizers.Adam` whose gradients are those of an L2 penalty too, after the clipping.

    Keras's `weight_decay` takes the decay past the adaptive step instead.

    Args:
        learning_rate: number.
        penalty: number, times which the weights are added to their gradients.
        **kwargs: of `keras.optimizers.Adam`.

    Example:

    >>> import keras
    >>> from keras_onlstm.training.penalized import PenalizedAdam
    >>> weight = keras.Variable([2.0])
    >>> optimizer = PenalizedAdam(0.5, penalty=0.1)
    >>> optimizer.build([weight])
    >>> optimizer.apply([keras.ops.zeros(1)], [weight])  # a step of the rate, down the penalty
    >>> print(keras.ops.convert_to_numpy(weight).round(4))
    [1.5]
    """

    def __init__(self, learning_rate: float = 1e-3, penalty: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.penalty = penalty

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        now = ops.cast(variable, gradient.dtype)
        super().update_step(gradient + self.penalty * now, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "penalty": self.penalty}
