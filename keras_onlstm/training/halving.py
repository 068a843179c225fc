"""The learning rate of the published TreeLSTM: half of it, and back to the best weights."""

from typing import Any

import keras
import numpy as np

__all__ = ["HalvingWithRollback"]


class HalvingWithRollback(keras.callbacks.Callback):
    """Halves the learning rate once validation stops falling, and ends when it does so again.

    After the first epoch whose entropy is not below that of the epoch before, by a ten-thousandth
    at the least, the rate is halved, and after every later one too; the second such epoch is the
    last. An epoch that is worse than the best gets the weights of the best back. At the end the
    model has these.

    Source: https://github.com/XingxingZhang/td-treelstm, the published code.

    Args:
        monitor: key of the logs, an entropy.
        factor: by how much one epoch has to be better than the one before.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import HalvingWithRollback
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> halving = HalvingWithRollback("val_entropy")
    >>> halving.set_model(model)
    >>> for epoch, entropy in enumerate([5.0, 4.0, 4.5]):
    ...     halving.on_epoch_end(epoch, {"val_entropy": entropy})
    >>> round(float(model.optimizer.learning_rate), 4), halving.rises
    (0.005, 1)
    """

    def __init__(self, monitor: str = "val_entropy", factor: float = 1.0001) -> None:
        super().__init__()
        self.monitor, self.factor = monitor, factor
        self.rises = 0
        self.last: float | None = None
        self.best: float | None = None
        self.best_weights: list[np.ndarray] = []

    def get_state(self) -> dict[str, Any]:
        """The state of a checkpoint: a dictionary of numbers and of a list of arrays."""
        return {name: getattr(self, name) for name in ("rises", "last", "best", "best_weights")}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores what `get_state` returned.

        Args:
            state: dictionary.
        """
        self.__dict__.update(state)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        entropy, model = float((logs or {})[self.monitor]), self.model
        if self.last is not None and not entropy * self.factor <= self.last:
            self.rises += 1
        self.last = entropy
        if self.best is None or entropy < self.best:
            self.best = entropy
            self.best_weights = [np.array(weight) for weight in model.get_weights()]
        elif entropy > self.best:
            model.set_weights(self.best_weights)
        if self.rises:
            rate = keras.ops.convert_to_numpy(model.optimizer.learning_rate)
            model.optimizer.learning_rate = float(rate) / 2.0
        if self.rises == 2:
            model.stop_training = True
