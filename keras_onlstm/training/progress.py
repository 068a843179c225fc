"""The state of a training run that is not in variables, for checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_onlstm.utils.reading import Integer, check_kind

__all__ = ["BESIDE", "Progress"]

BESIDE = ("epoch", "learning_rate", "seconds")  # in a row of the history that are not metrics


@dataclass
class Progress:
    """The state of the training that is not in variables."""

    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0  # spent in the current epoch so far
    samples: float = 0  # in the current epoch so far; tokens if batches count them
    sums: dict = field(default_factory=dict)  # of loss and metrics over these samples
    best: float | None = None
    history: list = field(default_factory=list)
    callbacks: list = field(default_factory=list)  # states of callbacks and schedules
    record: dict = field(default_factory=dict)
    stopped: bool = False  # by a callback or a schedule, before the last epoch

    def add(self, metrics: Mapping[str, Any], count: float) -> None:
        """Adds the metrics of a batch of `count` samples."""
        for name, value in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value) * count
        self.samples += count
        self.batch += 1

    def means(self) -> dict[str, float]:
        """The metrics over the samples of the epoch so far."""
        return {name: total / self.samples for name, total in self.sums.items()}

    def last_metrics(self) -> dict[str, float]:
        """The metrics of the last complete epoch."""
        row = self.history[-1] if self.history else {}
        return {name: value for name, value in row.items() if name not in BESIDE}

    def end_epoch(self, row: dict[str, float], stopped: bool) -> None:
        """Goes to the next epoch."""
        self.history.append(row)
        self.stopped = stopped
        self.epoch, self.batch, self.seconds = self.epoch + 1, 0, 0.0
        self.samples, self.sums = 0, {}

    @classmethod
    def of_state(cls, path: Path, state: Any, record: dict[str, Any]) -> "Progress":
        """The progress stored in a checkpoint, with the record of the run."""
        try:
            check_kind(state, _PROGRESS, "the state")
        except ValueError as error:
            raise ValueError(
                f"{path}: not a checkpoint of a Trainer ({error}). Restore it from a copy."
            ) from error
        return cls(**{n: state[n] for n in _PROGRESS if n in state} | {"record": record})


_PROGRESS = {  # of Progress, as JSON
    "epoch": Integer(),
    "batch": Integer(),
    "seconds": float,
    "samples": float,
    "sums": {str: float},
    "best": (float, None),
    "history": [{str: float}],
    "callbacks": [{str: (float, bool, None, [(float, bool)])}],
    "record": (dict, ...),
    "stopped": (bool, ...),
}
