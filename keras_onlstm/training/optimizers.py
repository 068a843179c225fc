"""Optimizers and learning-rate schedules."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
from keras import backend, ops

from keras_onlstm.utils import Tensor
from keras_onlstm.utils.validation import check_integer


class Stateful:
    """Base class whose state is the attributes named in `stored`."""

    monitor: str | None = None  # the metric for `step`; None: that of the Trainer
    stored: tuple[str, ...] = ()

    def step(self, score: float) -> None:
        """Takes the validation score after every epoch."""

    def get_state(self) -> dict[str, Any]:
        """The state for a checkpoint: a dictionary of numbers and lists of numbers or arrays."""
        return {name: getattr(self, name) for name in self.stored}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the result of `get_state`."""
        vars(self).update(state)


class WarmupSchedule(Stateful):
    """A constant learning rate, or the smaller of a linear warmup and a cosine decay.

    `Trainer` multiplies it by the `share` of a batch: relative window length, for `Windows`.

    Args:
        learning_rate: number, the constant rate, or that from which the cosine decays.
        warmup: share of the training in which the rate rises, or `None` for a constant rate.

    Example:

    >>> from keras_onlstm.training import WarmupSchedule
    >>> [round(WarmupSchedule(0.1, warmup=0.5).rate(done / 4), 3) for done in range(4)]
    [0.0, 0.05, 0.05, 0.015]
    """

    def __init__(self, learning_rate: float, warmup: float | None = None) -> None:
        self.learning_rate, self.warmup = learning_rate, warmup

    def rate(self, done: float) -> float:
        """The learning rate after this share of the training, from 0 to 1."""
        if self.warmup is None:
            return self.learning_rate
        cosine = 0.5 + 0.5 * math.cos(math.pi * done)
        return self.learning_rate * min(done / (self.warmup or 1e-9), cosine)


class PlateauSchedule(Stateful):
    """Lowers the learning rate of an optimizer after epochs without a better score.

    Equivalent to `keras.callbacks.ReduceLROnPlateau` with `min_delta=0`.

    Args:
        optimizer: Keras optimizer.
        factor: number below 1 by which the rate is multiplied.
        patience: positive integer, number of epochs without a better score before that.
        mode: `"min"` if a lower score is better, `"max"` if a higher one is.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import PlateauSchedule
    >>> optimizer = keras.optimizers.SGD(0.5)
    >>> schedule = PlateauSchedule(optimizer, factor=0.5, patience=1)
    >>> for score in (3.0, 2.0, 4.0):
    ...     schedule.step(score)
    >>> float(optimizer.learning_rate)
    0.25
    """

    stored = ("best", "wait")

    def __init__(
        self, optimizer: keras.optimizers.Optimizer, factor: float, patience: int, mode: str = "min"
    ) -> None:
        self.optimizer, self.factor = optimizer, factor
        self.patience = check_integer("patience", patience)
        self.sign = {"min": -1, "max": 1}[mode]
        self.best, self.wait = -self.sign * math.inf, 0

    def step(self, score: float) -> None:
        self.wait += 1
        if self.sign * (score - self.best) > 0:
            self.best, self.wait = score, 0
        elif self.wait >= self.patience:
            multiply_learning_rate(self.optimizer, self.factor)
            self.wait = 0


def multiply_learning_rate(optimizer: keras.optimizers.Optimizer, factor: float) -> None:
    """Multiplies the learning rate of an optimizer by a number."""
    optimizer.learning_rate = float(ops.convert_to_numpy(optimizer.learning_rate)) * factor


@keras.saving.register_keras_serializable(package="keras_onlstm")
class PenalizedAdam(keras.optimizers.Adam):
    """`keras.optimizers.Adam` with an L2 penalty instead of decoupled weight decay.

    Args:
        learning_rate: number.
        penalty: number; `penalty * weights` is added to the gradients after clipping.
        **kwargs: arguments of `keras.optimizers.Adam`.
    """

    def __init__(self, learning_rate: float = 1e-3, penalty: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.penalty = penalty

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        weights = ops.cast(variable, gradient.dtype)
        super().update_step(gradient + self.penalty * weights, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "penalty": self.penalty}


class _Averaging(keras.optimizers.Optimizer):
    """An optimizer that can keep the mean of the weights after every step.

    Its state is in variables, so a checkpoint of the optimizer's variables includes it.
    """

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self.averaging = self.add_variable((), "zeros", "int32", name="averaging")  # 0 or 1
        self.counted = self.add_variable((), "zeros", "int32", name="counted")  # steps in the mean
        pairs = [(v, self.add_variable_from_reference(v, name="average")) for v in variables]
        # A function, because Keras would track variables in a list as the optimizer's own.
        self._pairs = lambda: pairs

    @property
    def is_averaging(self) -> bool:
        """Whether averaging has started."""
        return self.built and bool(ops.convert_to_numpy(self.averaging))

    def start_averaging(self) -> None:
        """Starts averaging the weights after every step. The optimizer must be built."""
        self.averaging.assign(1)

    def apply(
        self, grads: Sequence[Tensor], trainable_variables: Sequence[keras.Variable] | None = None
    ) -> None:
        super().apply(grads, trainable_variables)
        if backend.backend() == "torch" and not self.is_averaging:
            return
        self.counted.assign(self.counted + self.averaging)
        has_started, count = ops.cast(self.averaging, "bool"), ops.maximum(self.counted, 1)
        for variable, average in self._pairs():
            value, mean = ops.convert_to_tensor(variable), ops.convert_to_tensor(average)
            average.assign(_updated_mean(has_started, mean, value, ops.cast(count, mean.dtype)))

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """A context in which the model has the mean weights, if averaging has started."""
        if not self.is_averaging or not ops.convert_to_numpy(self.counted):
            yield
            return
        # Through NumPy, because on JAX both variables would share a buffer, which is then donated.
        weights = [np.array(ops.convert_to_numpy(variable)) for variable, _ in self._pairs()]
        try:
            for variable, average in self._pairs():
                variable.assign(np.array(ops.convert_to_numpy(average)))
            yield
        finally:
            for (variable, _), value in zip(self._pairs(), weights, strict=True):
                variable.assign(value)


def _updated_mean(has_started, mean, value, count):
    return ops.cond(has_started, lambda: mean + (value - mean) / count, lambda: mean)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class AveragedSGD(_Averaging, keras.optimizers.SGD):
    """`keras.optimizers.SGD` that can average the weights.

    After `start_averaging()` it keeps the mean of the weights over all later steps. Within
    `averaged_weights()` the model has these mean weights.

    Source: Polyak and Juditsky 1992, "Acceleration of stochastic approximation by averaging".

    Args:
        *args: arguments of `keras.optimizers.SGD`.
        **kwargs: arguments of `keras.optimizers.SGD`.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import AveragedSGD
    >>> weight, optimizer = keras.Variable([0.0]), AveragedSGD(learning_rate=1.0)
    >>> optimizer.build([weight])
    >>> optimizer.start_averaging()
    >>> for _ in range(3):
    ...     optimizer.apply([-keras.ops.ones(1)], [weight])
    >>> with optimizer.averaged_weights():
    ...     print(keras.ops.convert_to_numpy(weight))  # of 1, 2 and 3
    [2.]
    """


@keras.saving.register_keras_serializable(package="keras_onlstm")
class AveragedAdam(_Averaging, keras.optimizers.Adam):
    """`keras.optimizers.Adam` that can average the weights, see `AveragedSGD`.

    Args:
        *args: arguments of `keras.optimizers.Adam`.
        **kwargs: arguments of `keras.optimizers.Adam`.
    """


class NonMonotonicTrigger(Stateful):
    """Averages weights once a score is worse than the best before the last `patience` epochs.

    Source: Merity et al. 2018, algorithm 1, https://arxiv.org/abs/1708.02182.

    Args:
        optimizer: `AveragedSGD` or `AveragedAdam`, built.
        patience: integer, 0 or above; 5 in the published recipe.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import AveragedSGD, NonMonotonicTrigger
    >>> optimizer = AveragedSGD(0.1)
    >>> optimizer.build([keras.Variable([0.0])])
    >>> trigger = NonMonotonicTrigger(optimizer, patience=1)
    >>> for score in (3.0, 2.0, 4.0):
    ...     trigger.step(score)
    >>> optimizer.is_averaging
    True
    """

    stored = ("scores",)

    def __init__(self, optimizer: keras.optimizers.Optimizer, patience: int = 5) -> None:
        if not hasattr(optimizer, "start_averaging"):
            kind = type(optimizer).__name__
            raise ValueError(f"NonMonotonicTrigger needs AveragedSGD or AveragedAdam, not {kind}.")
        self.start_averaging: Callable[[], None] = optimizer.start_averaging
        self.patience = check_integer("patience", patience, 0)
        self.scores: list[float] = []

    def step(self, score: float) -> None:
        earlier = self.scores[: len(self.scores) - self.patience]
        if len(self.scores) > self.patience and not score <= min(earlier):
            self.start_averaging()
        self.scores.append(score)
