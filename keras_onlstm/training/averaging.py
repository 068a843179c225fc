"""Averaged stochastic gradient descent, and the trigger that turns it on.

The published recipe trains with plain SGD until the validation score stops falling, and from then
on keeps the mean of the weights after every step (Polyak and Juditsky 1992), which is what it
evaluates and saves. Any Keras model can use both classes here.

Source: Merity, Keskar and Socher 2018, "Regularizing and Optimizing LSTM Language Models", section
4 and algorithm 1, https://arxiv.org/abs/1708.02182.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from keras import backend, ops

from keras_onlstm.training.adam import FusedAdam
from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.types import Tensor

__all__ = ["AveragedAdam", "AveragedSGD", "NonMonotonicTrigger"]


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


class NonMonotonicTrigger(keras.callbacks.Callback):
    """Starts the averaging when a score has been worse than it was long ago.

    At the end of an epoch it compares the score with the best of all epochs but the last
    `patience`: if it is worse, it calls `start_averaging()` of the model's optimizer.

    Args:
        monitor: key of the score, the lower the better.
        patience: integer, 0 or above: 5 in the published recipe.

    Raises:
        ValueError: at the start of training, if the optimizer cannot average.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import AveragedSGD, NonMonotonicTrigger
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile(AveragedSGD(0.1), "mse")
    >>> model.optimizer.build(model.trainable_variables)
    >>> trigger = NonMonotonicTrigger("val_loss", patience=1)
    >>> trigger.set_model(model)
    >>> for epoch, score in enumerate([3.0, 2.0, 4.0]):
    ...     trigger.on_epoch_end(epoch, {"val_loss": score})
    ...     print(model.optimizer.is_averaging)
    False
    False
    True
    """

    def __init__(self, monitor: str = "val_loss", patience: int = 5) -> None:
        super().__init__()
        self.monitor = monitor
        self.patience = integer("patience", patience, 0)
        self.scores: list[float] = []

    def get_state(self) -> dict[str, Any]:
        """The state of a checkpoint: the scores of all epochs so far."""
        return {"scores": list(self.scores)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores what `get_state` returned.

        Args:
            state: dictionary.
        """
        self.scores = list(state["scores"])

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if not hasattr(self.model.optimizer, "start_averaging"):
            raise ValueError(
                "NonMonotonicTrigger needs an optimizer that averages, such as AveragedSGD, not "
                f"{type(self.model.optimizer).__name__}."
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        score = float((logs or {})[self.monitor])
        long_ago = self.scores[: len(self.scores) - self.patience] if self.patience else self.scores
        if len(self.scores) > self.patience and not score <= min(long_ago):
            self.model.optimizer.start_averaging()
        self.scores.append(score)
