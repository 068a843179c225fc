"""Learning-rate schedules.

Each has `step(score)`, called after every epoch, `get_state()` and `set_state(state)`. One that
also has `rate(done)` sets the learning rate of every batch.
"""

import math
from typing import Any

import keras

from keras_onlstm.utils.arguments import integer

__all__ = ["PlateauSchedule", "Stateful", "WarmupSchedule"]


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
        """Restores what `get_state` returned."""
        vars(self).update(state)


class WarmupSchedule(Stateful):
    """A constant learning rate (`warmup=None`), or linear warmup followed by cosine decay.

    `Trainer` multiplies it by the `share` of a batch: relative window length, for `Windows`.

    Args:
        learning_rate: number, the constant rate or the peak of the cosine.
        warmup: share of the training in which the rate rises, or `None` for a constant rate.

    Example:

    >>> from keras_onlstm.training import WarmupSchedule
    >>> schedule = WarmupSchedule(0.1, warmup=0.5)
    >>> [round(schedule.rate(done / 10), 3) for done in range(10)]
    [0.0, 0.02, 0.04, 0.06, 0.065, 0.05, 0.035, 0.021, 0.01, 0.002]
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

    Equivalent to `keras.callbacks.ReduceLROnPlateau` with `min_delta=0`. The rate does not depend
    on the lengths of windows.

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
        self.patience = integer("patience", patience)
        self.sign = {"min": -1, "max": 1}[mode]
        self.best, self.wait = -self.sign * math.inf, 0

    def step(self, score: float) -> None:
        if self.sign * (score - self.best) > 0:
            self.best, self.wait = score, 0
            return
        self.wait += 1
        if self.wait >= self.patience:
            multiply_learning_rate(self.optimizer, self.factor)
            self.wait = 0


def multiply_learning_rate(optimizer: keras.optimizers.Optimizer, factor: float) -> None:
    """Multiplies the learning rate of an optimizer by a number."""
    rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
    optimizer.learning_rate = rate * factor
