"""A training loop that can be killed at any moment and resumed to the same bits."""

import math
import reprlib
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

import keras

from keras_onlstm.files import cannot_write, remove_left_overs, replacing, words_of
from keras_onlstm.reading import Integer, check_kind
from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
from keras_onlstm.training.records import write_history, write_tensorboard
from keras_onlstm.training.traces import traced_alike

__all__ = ["Trainer"]

CHECKPOINT = "checkpoint.npz"
BEST = "best.keras"


@dataclass
class _Progress:
    """Where training stands, beside the variables."""

    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0  # spent in the current epoch so far
    samples: float = 0  # seen in the current epoch so far; tokens, where batches weigh them
    sums: dict = field(default_factory=dict)  # of loss and metrics over these samples
    best: float | None = None
    history: list = field(default_factory=list)
    callbacks: list = field(default_factory=list)
    record: dict = field(default_factory=dict)


_NUMBER = (float, bool, None)
_KIND = {  # of _Progress, as JSON
    "epoch": Integer(),
    "batch": Integer(),
    "seconds": float,
    "samples": float,
    "sums": {str: float},
    "best": (float, None),
    "history": [{str: float}],
    "callbacks": [{str: (*_NUMBER, [(float, bool)])}],
    "record": (dict, ...),
}


def _is_numbers(value):
    return isinstance(value, list) and all(isinstance(item, (int, float)) for item in value)


def _is_kept(value):
    """Whether a checkpoint keeps an attribute of a callback."""
    return value is None or isinstance(value, (bool, int, float)) or _is_numbers(value)


def _check_history(state):
    """Refuses a history that is not of so many epochs, each with the same numbers."""
    names = [set(row) for row in state["history"]]
    if len(names) != state["epoch"] or any(row != names[0] for row in names):
        raise ValueError(f"its history is not one of {state['epoch']} epochs")


def _check_callback(callback, numbers):
    """Refuses numbers in the place of what is none."""
    for name, value in numbers.items():
        now = vars(callback).get(name)
        is_method = name not in vars(callback) and hasattr(type(callback), name)
        if is_method or not _is_kept(now):
            raise ValueError(f"{type(callback).__name__} has no number {reprlib.repr(name)}")
        if now is not None:
            check_kind(value, [(float, bool)] if _is_numbers(now) else _NUMBER, name)


class Trainer:
    """Trains a compiled model in a directory of its own.

    The directory receives `checkpoint.npz` (all that is needed to go on), `best.keras` (the model
    of the best epoch), `metrics.csv`, `metrics.json`, and event files if TensorBoard is installed.

    `keras.Model.fit` with `BackupAndRestore` keeps neither the place in the data nor the counters
    of callbacks; here a checkpoint holds both, and the order of the data follows from seed and
    epoch.

    Args:
        model: compiled and built `keras.Model`.
        batches: a data set with `len`, `[index]` and `set_epoch(epoch)`, such as `PairBatches` or
            `Windows`: inputs, targets and, if not every target counts, their weights. An attribute
            `lengths_vary` that is true says that axis 1 of its arrays is time and varies.
        validate: function without arguments that returns a dictionary of numbers, called after
            every epoch.
        directory: where to write; created if missing.
        epochs: positive integer.
        monitor: key of the dictionary that `validate` returns.
        mode: `"max"` if a higher value of it is better, `"min"` if a lower one is.
        callbacks: Keras callbacks, of which `on_epoch_begin` is called before an epoch's first
            batch and `on_epoch_end` with its numbers. Their attributes that are numbers, booleans,
            `None` or lists of numbers are part of the checkpoint.
        learning_rate: function of epoch and batch, both from 0, that gives the learning rate of
            that batch, or `None`: that of the optimizer.
        place: function that puts a batch onto the devices, or `None`.
        saved: the model that `best.keras` holds, if it is not `model` but a part of it.
        record: dictionary of JSON values, all that shapes the run. It is part of the checkpoint,
            and a run does not go on with another. Default: empty.
        checkpoint_seconds: number, how often to write a checkpoint within an epoch.
        verbose: whether to show a progress bar.
        unit: name of what is counted, for the progress bar.
    """

    def __init__(
        self,
        model,
        batches,
        validate,
        directory,
        epochs,
        monitor,
        mode="max",
        callbacks=(),
        learning_rate=None,
        place=None,
        saved=None,
        record=None,
        checkpoint_seconds=60,
        verbose=True,
        unit="samples",
    ):
        self.model = model
        self.batches = batches
        self.validate = validate
        self.directory = Path(directory)
        self.epochs = epochs
        self.monitor = monitor
        self.sign = {"max": 1, "min": -1}[mode]
        self.learning_rate = learning_rate
        self.place = place
        self.saved = model if saved is None else saved
        self.callbacks = list(callbacks)
        self.checkpoint_seconds = checkpoint_seconds
        self.verbose = verbose
        self.speed = f"{unit}/s"
        self.record = dict(record or {})
        self.progress = _Progress(record=self.record)
        self._saved = None  # epoch and batch of the checkpoint
        for callback in self.callbacks:
            callback.set_model(model)
            callback.on_train_begin()

    def resume(self):
        """Goes back to the last checkpoint.

        Raises:
            FileNotFoundError: if the directory has none.
            ValueError: if it is damaged or of another model. Nothing is changed then.
        """
        path = self.directory / CHECKPOINT
        state = load_checkpoint(
            path, self.model, lambda state: self._check(path, state), self.record
        )
        self.progress = _Progress(**{name: state[name] for name in _KIND if name in state})
        self.progress.record = self.record
        self._saved = self.progress.epoch, self.progress.batch
        for callback, numbers in zip(self.callbacks, self.progress.callbacks, strict=True):
            vars(callback).update(numbers)

    def _check(self, path, state):
        try:
            check_kind(state, _KIND, "the state")
            _check_history(state)
            for callback, numbers in zip(self.callbacks, state["callbacks"], strict=False):
                _check_callback(callback, numbers)
        except ValueError as error:
            raise ValueError(
                f"{path}: not a checkpoint of a Trainer ({error}). Restore it from a copy."
            ) from error
        if len(state["callbacks"]) != len(self.callbacks) or state["batch"] > len(self.batches):
            raise ValueError(
                f"{path}: has {len(state['callbacks'])} callbacks and stands at batch "
                f"{state['batch']}; here are {len(self.callbacks)} callbacks and "
                f"{len(self.batches)} batches. Resume with the arguments the run started with."
            )

    def run(self, max_batches=None):
        """Trains until the last epoch is done.

        Args:
            max_batches: integer, to stop after so many batches, with a checkpoint.

        Returns:
            The history: a list of dictionaries, one an epoch.

        Raises:
            OSError: if a file cannot be written. It says which one, and what was kept.
            ValueError: if the loss is not a number any more.
        """
        self._left = math.inf if max_batches is None else max_batches
        try:
            with traced_alike(self.model, getattr(self.batches, "lengths_vary", False)):
                self._run()
        except OSError as error:
            raise OSError(f"{words_of(error)} {self._kept()}") from error
        return self.progress.history

    def _run(self):
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.directory, error) from error
        remove_left_overs(self.directory)
        if self.progress == _Progress(record=self.record):
            self._save()  # from here on there is something to resume, whenever the run is killed
        while self.progress.epoch < self.epochs:
            self._train_epoch()
            if self.progress.batch < len(self.batches):
                self._save()
                break
            self._end_epoch()

    def _kept(self):
        path = self.directory / CHECKPOINT
        if self._saved is None or not path.is_file():
            return "No checkpoint was kept."
        epoch, batch = self._saved
        return (
            f"{path} is kept, from before batch {batch + 1} of epoch {epoch + 1}: resume there "
            "(--resume)."
        )

    def _train_epoch(self):
        progress, batches = self.progress, self.batches
        batches.set_epoch(progress.epoch)
        bar = None
        if self.verbose:
            print(f"Epoch {progress.epoch + 1}/{self.epochs}")
            bar = keras.utils.Progbar(
                len(batches),
                # means already
                stateful_metrics=[*self.model.metrics_names, "learning_rate", self.speed],
                interval=0.5 if sys.stdout.isatty() else 60,  # a log gets a line a minute
            )
        if progress.batch == 0:
            for callback in self.callbacks:
                callback.on_epoch_begin(progress.epoch)
        saved = mark = time.monotonic()
        while progress.batch < len(batches) and self._left > 0:
            self._train_batch()
            self._left -= 1
            now = time.monotonic()
            progress.seconds, mark = progress.seconds + now - mark, now
            if bar is not None:
                shown = {**self._means(), self.speed: progress.samples / progress.seconds}
                bar.update(progress.batch, shown.items(), progress.batch == len(batches))
            if now - saved > self.checkpoint_seconds and progress.batch < len(batches):
                self._save()
                saved = now

    def _train_batch(self):
        progress = self.progress
        x, y, *weights = self.batches[progress.batch]
        count = float(weights[0].sum()) if weights else len(y)
        rates = {}
        if self.learning_rate is not None:
            rates["learning_rate"] = self.learning_rate(progress.epoch, progress.batch)
            self.model.optimizer.learning_rate.assign(rates["learning_rate"])
        batch = (x, y, *weights) if self.place is None else self.place((x, y, *weights))
        logs = self.model.train_on_batch(*batch, return_dict=True)  # of this batch alone
        if math.isnan(logs["loss"]):
            raise ValueError(
                f"{self.directory}: the loss of batch {progress.batch + 1} of epoch "
                f"{progress.epoch + 1} is not a number (NaN), for the weights grew beyond all "
                "bounds. Start a run with a lower learning rate, or another seed."
            )
        for name, value in (logs | rates).items():
            progress.sums[name] = progress.sums.get(name, 0.0) + float(value) * count
        progress.samples += count
        progress.batch += 1

    def _means(self):
        """Loss and metrics over the samples of the epoch so far."""
        return {name: total / self.progress.samples for name, total in self.progress.sums.items()}

    def _end_epoch(self):
        progress = self.progress
        # An optimizer that averages lends the model the mean of its weights.
        averaged = getattr(self.model.optimizer, "averaged_weights", nullcontext)
        with averaged():
            validated = {name: float(value) for name, value in self.validate().items()}
            value, best = validated[self.monitor], progress.best
            if best is None or math.isnan(best) or self.sign * (value - best) > 0:
                progress.best = value
                with replacing(self.directory / BEST) as temporary:
                    self.saved.save(temporary)
        means = self._means()
        now = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        rate = means.pop("learning_rate", now)
        numbers = means | validated
        row = {
            "epoch": progress.epoch + 1,
            **numbers,
            "learning_rate": rate,
            "seconds": round(progress.seconds, 3),
        }
        progress.history.append(row)
        for callback in self.callbacks:
            callback.on_epoch_end(progress.epoch, dict(numbers))
        progress.epoch, progress.batch, progress.seconds = progress.epoch + 1, 0, 0.0
        progress.samples, progress.sums = 0, {}
        write_history(self.directory, progress.history)
        self._save()
        write_tensorboard(self.directory, row)
        if self.verbose:
            shown = ", ".join(f"{name} {value:.4g}" for name, value in row.items())
            print(f"  {shown}", flush=True)

    def _save(self):
        self.progress.callbacks = [
            {name: value for name, value in vars(callback).items() if _is_kept(value)}
            for callback in self.callbacks
        ]
        save_checkpoint(self.directory / CHECKPOINT, self.model, asdict(self.progress))
        self._saved = self.progress.epoch, self.progress.batch
