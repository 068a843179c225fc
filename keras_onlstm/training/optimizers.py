"""Optimizers: Adam in few operations, Adam with an L2 penalty, and averaged SGD and Adam."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from keras import backend, ops

from keras_onlstm.utils.types import Tensor

__all__ = ["AveragedAdam", "AveragedSGD", "FusedAdam", "PenalizedAdam"]


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


def _copy(source, target):
    """Copies by way of NumPy: JAX would let both variables share one buffer, and then donate it."""
    target.assign(np.array(ops.convert_to_numpy(source)))


def _updated(begun, mean, now, count):
    """The mean with one more of the values that it is of; as it was, if it has not begun."""
    return ops.cond(begun, lambda: mean + (now - mean) / count, lambda: mean)


class _Averaging(keras.optimizers.Optimizer):
    """An optimizer that can keep the plain mean of the weights after every step.

    Two variables say where it stands, so that a checkpoint of the optimizer's variables holds all:
    `counted`, the number of steps in the mean, and `averaging`, 0 or 1.
    """

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self.averaging = self.add_variable((), "zeros", "int32", name="averaging")
        self.counted = self.add_variable((), "zeros", "int32", name="counted")
        pairs = [(v, self.add_variable_from_reference(v, name="average")) for v in variables]
        # A function: variables in a list Keras would take for the optimizer's own.
        self._pairs = lambda: pairs

    @property
    def is_averaging(self) -> bool:
        """Whether the mean is being kept."""
        return self.built and bool(ops.convert_to_numpy(self.averaging))

    def start_averaging(self) -> None:
        """Keeps the mean of the weights after every step from now on. The optimizer is built."""
        self.averaging.assign(1)

    def apply(
        self, grads: Sequence[Tensor], trainable_variables: Sequence[keras.Variable] | None = None
    ) -> None:
        super().apply(grads, trainable_variables)
        if backend.backend() == "torch" and not self.is_averaging:
            return
        self.counted.assign(self.counted + self.averaging)
        begun, count = ops.cast(self.averaging, "bool"), ops.maximum(self.counted, 1)
        for variable, average in self._pairs():
            now, mean = ops.convert_to_tensor(variable), ops.convert_to_tensor(average)
            average.assign(_updated(begun, mean, now, ops.cast(count, mean.dtype)))

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """A context in which the model's weights are the means; afterwards they are what they were.

        Before the averaging has started, nothing changes.
        """
        if not self.is_averaging or not ops.convert_to_numpy(self.counted):
            yield
            return
        kept = [np.array(ops.convert_to_numpy(variable)) for variable, _ in self._pairs()]
        try:
            for variable, average in self._pairs():
                _copy(average, variable)
            yield
        finally:
            for (variable, _), value in zip(self._pairs(), kept, strict=True):
                variable.assign(value)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class AveragedSGD(_Averaging, keras.optimizers.SGD):
    """`keras.optimizers.SGD` that can keep the plain mean of the weights after every step.

    It takes steps exactly as `SGD` does. After `start_averaging()`, it also keeps the mean of the
    weights after every step since, in which `averaged_weights()` lets a model be evaluated and
    saved. Without it, `averaged_weights()` changes nothing.

    Source: Polyak and Juditsky 1992, "Acceleration of stochastic approximation by averaging".

    Args:
        *args: of `keras.optimizers.SGD`.
        **kwargs: of `keras.optimizers.SGD`.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import AveragedSGD
    >>> weight = keras.Variable([0.0])
    >>> optimizer = AveragedSGD(learning_rate=1.0)
    >>> optimizer.build([weight])
    >>> optimizer.start_averaging()
    >>> for _ in range(3):
    ...     optimizer.apply([-keras.ops.ones(1)], [weight])
    >>> with optimizer.averaged_weights():
    ...     print(keras.ops.convert_to_numpy(weight))  # of 1, 2 and 3
    [2.]
    >>> print(keras.ops.convert_to_numpy(weight))
    [3.]
    """


@keras.saving.register_keras_serializable(package="keras_onlstm")
class AveragedAdam(_Averaging, FusedAdam):
    """`keras.optimizers.Adam` that can keep the mean of the weights, as `AveragedSGD` does.

    Args:
        *args: of `keras.optimizers.Adam`.
        **kwargs: of `keras.optimizers.Adam`.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import AveragedAdam
    >>> weight = keras.Variable([0.0])
    >>> optimizer = AveragedAdam(learning_rate=0.5)
    >>> optimizer.build([weight])
    >>> optimizer.start_averaging()
    >>> for _ in range(2):
    ...     optimizer.apply([-keras.ops.ones(1)], [weight])
    >>> with optimizer.averaged_weights():
    ...     print(keras.ops.convert_to_numpy(weight).round(4))  # of 0.5 and 1
    [0.75]
    """
