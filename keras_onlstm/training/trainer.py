"""A training loop that can be killed at any time and resumed with identical results."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras

from keras_onlstm.distribution.processes import ALONE, Processes
from keras_onlstm.training.checkpoint import (
    Progress,
    load_checkpoint,
    restore_state,
    save_checkpoint,
    state_of,
)
from keras_onlstm.training.deterministic_tracing import traced_alike
from keras_onlstm.training.metrics_log import write_history, write_tensorboard
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import remove_left_overs, replacing

__all__ = ["Trainer"]

CHECKPOINT = "checkpoint.npz"
BEST = "best.keras"


class Trainer:
    """Trains a compiled model and writes the results to a directory.

    The directory receives `checkpoint.npz` (all that is needed to resume), `best.keras` (the model
    of the best epoch), `metrics.csv`, `metrics.json`, and event files if TensorBoard is installed.

    Unlike `keras.callbacks.BackupAndRestore`, a checkpoint includes the position in the data and
    the counters of callbacks. The order of the data depends only on seed and epoch.

    Args:
        model: compiled and built `keras.Model`.
        batches: a data set with `len`, `[index]` and `set_epoch(epoch)`, such as `PairBatches` or
            `Windows`. A batch is inputs, targets and optionally weights of the targets. If the
            attribute `lengths_vary` is true, axis 1 of its arrays is time and varies in size.
            Optional methods: `samples(index)`, the size of a batch in `unit`, and `share(index)`,
            a factor of its learning rate.
        validate: function without arguments that returns a dictionary of numbers, called after
            every epoch.
        directory: where to write; created if missing.
        epochs: positive integer.
        monitor: key of the result of `validate` that decides which epoch is best.
        mode: `"max"` if a higher value is better, `"min"` if a lower one is.
        callbacks: Keras callbacks, called as in `keras.Model.fit`. One that sets `stop_training`
            ends the epoch after this batch, and the run after this epoch. Checkpoints include the
            results of `get_state()`, and the state of `EarlyStopping` and `ReduceLROnPlateau`.
        schedules: objects of `training.schedules`. `step` takes the monitored value after every
            epoch; `rate`, if it exists, gives the learning rate of every batch.
        place: function that puts a batch onto the devices, or `None`.
        saved: the model in `best.keras`, if it is not `model` but a part of it.
        record: dictionary of JSON values. A run can only be resumed with the same one.
        checkpoint_seconds: number, seconds between checkpoints within an epoch.
        verbose: whether to show a progress bar on a terminal, and print a line per epoch.
        log_every: batches between printed lines if the output is not a terminal; 0: no lines.
        unit: plural name of the samples, such as `"tokens"`.
        processes: `Processes` that train the model together. Only the first one writes.

    Example:

    >>> import keras
    >>> from keras_onlstm.models import PairClassifier
    >>> from keras_onlstm.training import PairBatches, Trainer
    >>> batches = PairBatches([[1, 2], [3]], [[4], [5, 6]], [0, 1], batch_size=2)
    >>> model = PairClassifier(7, 2, embedding_dim=4, units=8, chunk_size=4)
    >>> inputs, classes = batches[0]
    >>> model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    >>> _ = model(inputs)
    >>> model.optimizer.build(model.trainable_variables)
    >>> def validate():
    ...     return {"val_loss": model.test_on_batch(inputs, classes)}
    >>> trainer = Trainer(model, batches, validate, "run", 3, "val_loss", "min", verbose=False)
    >>> [row["epoch"] for row in trainer.run()]
    [1, 2, 3]
    """

    def __init__(
        self,
        model: keras.Model,
        batches: Any,
        validate: Callable[[], Mapping[str, float]],
        directory: StrPath,
        epochs: int,
        monitor: str,
        mode: str = "max",
        callbacks: Iterable[keras.callbacks.Callback] = (),
        schedules: Iterable[Any] = (),
        place: Callable[[tuple], tuple] | None = None,
        saved: keras.Model | None = None,
        record: Mapping[str, Any] | None = None,
        checkpoint_seconds: float = 60,
        verbose: bool = True,
        log_every: int = 0,
        unit: str = "samples",
        processes: Processes = ALONE,
    ) -> None:
        self.model, self.batches, self.validate = model, batches, validate
        self.directory, self.epochs = Path(directory), epochs
        self.monitor, self.sign = monitor, {"max": 1, "min": -1}[mode]
        self.callbacks, self.schedules = list(callbacks), list(schedules)
        self.place = place or (lambda batch: batch)
        self.saved = model if saved is None else saved
        self.record = dict(record or {})
        self.checkpoint_seconds, self.verbose = checkpoint_seconds, verbose
        self.log_every = log_every if verbose and not sys.stdout.isatty() else 0
        self.unit, self.processes = unit, processes
        self.progress = Progress(record=self.record)
        self._hooks: Any = None

    def resume(self) -> None:
        """Restores the last checkpoint.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is damaged or of another model. Nothing is changed then.
        """
        path, check = self.directory / CHECKPOINT, self._check
        arrays: dict[str, Any] = {}
        state = load_checkpoint(path, self.model, check, self.record, arrays)
        self.progress = Progress.of_state(path, state, self.record)
        restore_state(self._stateful, self.progress.callbacks, arrays)

    @property
    def _stateful(self):
        return [*self.callbacks, *(one for one in self.schedules if one.get_state())]

    def _check(self, state):
        path = self.directory / CHECKPOINT
        Progress.of_state(path, state, self.record)
        self.batches.set_epoch(state["epoch"])  # epochs may differ in length
        states, batches = len(state["callbacks"]), len(self.batches)
        if states != len(self._stateful) or state["batch"] > batches:
            raise ValueError(
                f"{path}: has {states} callbacks and is at batch {state['batch']}; here are "
                f"{len(self._stateful)} callbacks and {batches} batches. Resume with the arguments "
                "the run started with."
            )

    def run(self, max_batches: int | None = None) -> list[dict[str, float]]:
        """Trains until the last epoch ends or a callback stops the training.

        Args:
            max_batches: integer, number of batches after which to stop, with a checkpoint.

        Returns:
            The history: a list of dictionaries, one per epoch.

        Raises:
            OSError: if a file cannot be written.
            ValueError: if the loss is NaN.
        """
        self._left = math.inf if max_batches is None else max_batches
        with traced_alike(self.model, getattr(self.batches, "lengths_vary", False)):
            self._begin()
            while self.progress.epoch < self.epochs and not self.model.stop_training:
                self._train_epoch()
                if self.progress.batch < len(self.batches) and not self.model.stop_training:
                    self._save()
                    self._hooks.on_train_end(self.progress.last_metrics())
                    self.processes.wait()  # until the first process has written it
                    # `on_train_end` of a callback may have restored the weights of its best epoch.
                    load_checkpoint(self.directory / CHECKPOINT, self.model)
                    return self.progress.history
                self._end_epoch()
            self._hooks.on_train_end(self.progress.last_metrics())
        return self.progress.history

    def _begin(self):
        """Calls `on_train_begin`, which resets callbacks, and restores them in a resumed run."""
        if self.processes.is_first:
            self.directory.mkdir(parents=True, exist_ok=True)
            remove_left_overs(self.directory)
        is_new = self.progress == Progress(record=self.record)
        before = state_of(self._stateful)
        # Keras calls callbacks in threads if none of them overrides `on_train_batch_end`.
        in_order = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
        params = {"epochs": self.epochs, "steps": len(self.batches), "verbose": int(self.verbose)}
        callbacks = [*self.callbacks, in_order]
        self._hooks = keras.callbacks.CallbackList(callbacks, model=self.model, **params)
        self.model.stop_training = self.progress.stopped
        self._hooks.on_train_begin()
        if is_new:
            self._save()  # after this the run can be resumed if it is killed
        else:
            restore_state(self._stateful, *before)

    def _train_epoch(self):
        progress, batches = self.progress, self.batches
        batches.set_epoch(progress.epoch)
        if progress.batch == 0:
            self._hooks.on_epoch_begin(progress.epoch)
        shown = {"desc": self._title(), "total": len(batches), "initial": progress.batch}
        hidden = None if self.verbose else True
        with progress_bar("batches", file=sys.stdout, leave=False, disable=hidden, **shown) as bar:
            saved = mark = time.monotonic()
            while progress.batch < len(batches) and self._left > 0:
                self._train_batch()
                self._left -= 1
                now = time.monotonic()
                progress.seconds, mark = progress.seconds + now - mark, now
                bar.set_postfix(progress.means(), refresh=False)
                bar.update()
                if self.log_every and progress.batch % self.log_every == 0:
                    print(f"{self._title()}, batch {progress.batch}/{len(batches)}: "
                          f"{_shown(progress.means())}", flush=True)  # fmt: skip
                if self.model.stop_training:
                    break
                if now - saved > self.checkpoint_seconds and progress.batch < len(batches):
                    self._save()
                    saved = now

    def _title(self):
        return f"Epoch {self.progress.epoch + 1}/{self.epochs}"

    def _train_batch(self):
        progress, index = self.progress, self.progress.batch
        x, y, *weights = self.batches[index]
        count = self._samples(index, y, weights)
        self._hooks.on_train_batch_begin(index)
        rates = {}
        for schedule in (one for one in self.schedules if hasattr(one, "rate")):
            done = (progress.epoch + index / len(self.batches)) / self.epochs
            share = self.batches.share(index) if hasattr(self.batches, "share") else 1.0
            rates["learning_rate"] = schedule.rate(done) * share
            self.model.optimizer.learning_rate.assign(rates["learning_rate"])
        # Metrics of this batch only: the Trainer computes the means over the epoch.
        logs = self.model.train_on_batch(*self.place((x, y, *weights)), return_dict=True)
        progress.add(logs | rates, count)
        means = progress.means()
        self._hooks.on_train_batch_end(index, {name: means[name] for name in logs})
        # A callback such as `keras.callbacks.TerminateOnNaN` may have stopped the training.
        if math.isnan(logs["loss"]) and not self.model.stop_training:
            raise ValueError(
                f"{self.directory}: the loss of batch {progress.batch} of epoch "
                f"{progress.epoch + 1} is NaN: training diverged. Start a run with a lower "
                "learning rate, or another seed."
            )

    def _samples(self, index, y, weights):
        """The weight of a batch in the means."""
        if hasattr(self.batches, "samples"):
            return float(self.batches.samples(index))
        return float(weights[0].sum()) if weights else len(y)

    def _end_epoch(self):
        progress = self.progress
        # An averaging optimizer temporarily sets the mean weights.
        with getattr(self.model.optimizer, "averaged_weights", nullcontext)():
            self._hooks.on_test_begin()
            validated = {name: float(value) for name, value in self.validate().items()}
            self._hooks.on_test_end(validated)
            value, best = validated[self.monitor], progress.best
            if best is None or math.isnan(best) or self.sign * (value - best) > 0:
                progress.best = value
                if self.processes.is_first:
                    with replacing(self.directory / BEST) as temporary:
                        self.saved.save(temporary)
        means = progress.means()
        now = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        rate, seconds = means.pop("learning_rate", now), progress.seconds
        metrics = means | validated
        row = {"epoch": progress.epoch + 1, **metrics, "learning_rate": rate,
               "seconds": round(seconds, 3)}  # fmt: skip
        line = (
            f"{self._title()}: {progress.samples:,.0f} {self.unit} in {seconds:.0f} s, "
            f"{progress.samples / max(seconds, 1e-9):,.0f} a second, {_shown(metrics)}"
        )
        self._hooks.on_epoch_end(progress.epoch, dict(metrics))
        for schedule in self.schedules:
            schedule.step(validated[schedule.monitor or self.monitor])
        progress.end_epoch(row, bool(self.model.stop_training))
        if self.processes.is_first:
            write_history(self.directory, progress.history)
        self._save()
        if self.processes.is_first:
            write_tensorboard(self.directory, row)
        if self.verbose:
            print(line, flush=True)

    def _save(self):
        if self.processes.is_first:
            self.progress.callbacks, arrays = state_of(self._stateful)
            save_checkpoint(self.directory / CHECKPOINT, self.model, asdict(self.progress), arrays)


def _shown(metrics):
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
