"""A training loop that can be killed at any moment and resumed to the same bits."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import keras

from keras_onlstm.training.callback_state import Arrays, restore_state, state_of
from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
from keras_onlstm.training.hosts import ALONE, Hosts
from keras_onlstm.training.records import write_history, write_tensorboard
from keras_onlstm.training.traces import traced_alike
from keras_onlstm.utils.files import remove_left_overs, replacing
from keras_onlstm.utils.progress import progress_bar
from keras_onlstm.utils.reading import Integer, check_kind
from keras_onlstm.utils.types import StrPath

__all__ = ["Trainer"]

CHECKPOINT = "checkpoint.npz"
BEST = "best.keras"
_BESIDE = ("epoch", "learning_rate", "seconds")  # in a row of the history, beside what is measured


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
    stopped: bool = False  # by a callback, before the last epoch


_KIND = {  # of _Progress, as JSON
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
            `lengths_vary` that is true says that axis 1 of its arrays is time and varies; a method
            `samples(index)` says how much of `unit` a batch has, else its weights or its length do.
        validate: function without arguments that returns a dictionary of numbers, called after
            every epoch.
        directory: where to write; created if missing.
        epochs: positive integer.
        monitor: key of the dictionary that `validate` returns.
        mode: `"max"` if a higher value of it is better, `"min"` if a lower one is.
        callbacks: Keras callbacks. They are called as `keras.Model.fit` calls them, `on_test_begin`
            and `on_test_end` around `validate`; `logs` are means over the epoch so far. One that
            sets `stop_training` of the model ends the epoch with this batch, and the run with this
            epoch; resumed, such a run stays stopped. The checkpoint stores what `get_state()`
            returns, a dictionary of numbers, lists of numbers and lists of arrays, and a resumed
            run passes it to `set_state(state)`. Of the callbacks of Keras, which lack these
            methods, it stores the counters of `EarlyStopping`, with its best weights, and of
            `ReduceLROnPlateau`. The counters of others start anew in a resumed run.
        learning_rate: function of epoch and batch, both from 0, that gives the learning rate of
            that batch, or `None`: that of the optimizer.
        place: function that puts a batch onto the devices, or `None`.
        saved: the model that `best.keras` holds, if it is not `model` but a part of it.
        record: dictionary of JSON values, all that shapes the run. It is part of the checkpoint,
            and a run does not go on with another. Default: empty.
        checkpoint_seconds: number, how often to write a checkpoint within an epoch.
        verbose: whether to show a progress bar on a terminal, and print a line per epoch.
        unit: name of what is counted, in the plural.
        hosts: `Hosts` that train the model together. The first alone writes.

    Raises:
        KeyError: if `mode` is neither.

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
    >>> early = keras.callbacks.EarlyStopping("val_loss", mode="min", patience=1)
    >>> trainer = Trainer(
    ...     model,
    ...     batches,
    ...     validate,
    ...     "run",
    ...     epochs=3,
    ...     monitor="val_loss",
    ...     mode="min",
    ...     callbacks=[early],
    ...     verbose=False,
    ... )
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
        learning_rate: Callable[[int, int], float] | None = None,
        place: Callable[[tuple], tuple] | None = None,
        saved: keras.Model | None = None,
        record: Mapping[str, Any] | None = None,
        checkpoint_seconds: float = 60,
        verbose: bool = True,
        unit: str = "samples",
        hosts: Hosts = ALONE,
    ) -> None:
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
        self.unit = unit
        self.hosts = hosts
        self.record = dict(record or {})
        self.progress = _Progress(record=self.record)
        self._hooks: Any = None

    def resume(self) -> None:
        """Goes back to the last checkpoint.

        Raises:
            FileNotFoundError: if the directory has none.
            ValueError: if it is damaged or of another model. Nothing is changed then.
        """
        path = self.directory / CHECKPOINT
        arrays: Arrays = {}
        state = load_checkpoint(
            path, self.model, lambda state: self._check(path, state), self.record, arrays
        )
        self.progress = _Progress(**{name: state[name] for name in _KIND if name in state})
        self.progress.record = self.record
        restore_state(self.callbacks, self.progress.callbacks, arrays)

    def _check(self, path, state):
        try:
            check_kind(state, _KIND, "the state")
        except ValueError as error:
            raise ValueError(
                f"{path}: not a checkpoint of a Trainer ({error}). Restore it from a copy."
            ) from error
        self.batches.set_epoch(state["epoch"])  # epochs may differ in length
        if len(state["callbacks"]) != len(self.callbacks) or state["batch"] > len(self.batches):
            raise ValueError(
                f"{path}: has {len(state['callbacks'])} callbacks and stands at batch "
                f"{state['batch']}; here are {len(self.callbacks)} callbacks and "
                f"{len(self.batches)} batches. Resume with the arguments the run started with."
            )

    def run(self, max_batches: int | None = None) -> list[dict[str, float]]:
        """Trains until the last epoch is done, or a callback stops the training.

        Args:
            max_batches: integer, to stop after so many batches, with a checkpoint.

        Returns:
            The history: a list of dictionaries, one an epoch.

        Raises:
            OSError: if a file cannot be written.
            ValueError: if the loss is not a number any more.
        """
        self._left = math.inf if max_batches is None else max_batches
        with traced_alike(self.model, getattr(self.batches, "lengths_vary", False)):
            self._run()
        return self.progress.history

    def _run(self):
        if self.hosts.is_first:
            self._make_directory()
        self._begin()
        while self.progress.epoch < self.epochs and not self.model.stop_training:
            self._train_epoch()
            if self.progress.batch < len(self.batches) and not self.model.stop_training:
                self._save()
                self._hooks.on_train_end(self._last_numbers())
                self.hosts.wait()  # until the first has written it
                # This is not the end: the weights of an earlier epoch may be in their place now.
                load_checkpoint(self.directory / CHECKPOINT, self.model)
                return
            self._end_epoch()
        self._hooks.on_train_end(self._last_numbers())

    def _make_directory(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        remove_left_overs(self.directory)

    def _begin(self):
        """Calls `on_train_begin`, which resets counters, and restores these in a resumed run."""
        is_new = self.progress == _Progress(record=self.record)
        before = state_of(self.callbacks)
        # Keras calls callbacks in threads if none of them overrides `on_train_batch_end`.
        in_order = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
        self._hooks = keras.callbacks.CallbackList(
            [*self.callbacks, in_order],
            model=self.model,
            epochs=self.epochs,
            steps=len(self.batches),
            verbose=int(self.verbose),
        )
        self.model.stop_training = self.progress.stopped
        self._hooks.on_train_begin()
        if is_new:
            self._save()  # from here on there is something to resume, whenever the run is killed
        else:
            restore_state(self.callbacks, *before)

    def _last_numbers(self):
        """Those of the last epoch that was ended."""
        row = self.progress.history[-1] if self.progress.history else {}
        return {name: value for name, value in row.items() if name not in _BESIDE}

    def _train_epoch(self):
        progress, batches = self.progress, self.batches
        batches.set_epoch(progress.epoch)
        if progress.batch == 0:
            self._hooks.on_epoch_begin(progress.epoch)
        with progress_bar(
            "batches",
            desc=self._title(),
            total=len(batches),
            initial=progress.batch,
            file=sys.stdout,
            leave=False,
            disable=None if self.verbose else True,
        ) as bar:
            self._train_batches(bar)

    def _title(self):
        return f"Epoch {self.progress.epoch + 1}/{self.epochs}"

    def _train_batches(self, bar):
        progress, batches = self.progress, self.batches
        saved = mark = time.monotonic()
        while progress.batch < len(batches) and self._left > 0:
            self._train_batch()
            self._left -= 1
            is_last = progress.batch == len(batches) or self.model.stop_training
            now = time.monotonic()
            progress.seconds, mark = progress.seconds + now - mark, now
            bar.set_postfix(self._means(), refresh=False)
            bar.update()
            if is_last:
                break
            if now - saved > self.checkpoint_seconds:
                self._save()
                saved = now

    def _train_batch(self):
        progress = self.progress
        x, y, *weights = self.batches[progress.batch]
        count = self._samples(y, weights)
        self._hooks.on_train_batch_begin(progress.batch)
        rates = {}
        if self.learning_rate is not None:
            rates["learning_rate"] = self.learning_rate(progress.epoch, progress.batch)
            self.model.optimizer.learning_rate.assign(rates["learning_rate"])
        batch = (x, y, *weights) if self.place is None else self.place((x, y, *weights))
        logs = self.model.train_on_batch(*batch, return_dict=True)  # of this batch alone
        for name, value in (logs | rates).items():
            progress.sums[name] = progress.sums.get(name, 0.0) + float(value) * count
        progress.samples += count
        progress.batch += 1
        means = self._means()
        self._hooks.on_train_batch_end(progress.batch - 1, {name: means[name] for name in logs})
        # A callback may end the training over it, as `keras.callbacks.TerminateOnNaN` does.
        if math.isnan(logs["loss"]) and not self.model.stop_training:
            raise ValueError(
                f"{self.directory}: the loss of batch {progress.batch} of epoch "
                f"{progress.epoch + 1} is not a number (NaN), for the weights grew beyond all "
                "bounds. Start a run with a lower learning rate, or another seed."
            )

    def _samples(self, y, weights):
        """How much the current batch counts for."""
        if hasattr(self.batches, "samples"):
            return float(self.batches.samples(self.progress.batch))
        return float(weights[0].sum()) if weights else len(y)

    def _means(self):
        """Loss and metrics over the samples of the epoch so far."""
        return {name: total / self.progress.samples for name, total in self.progress.sums.items()}

    def _end_epoch(self):
        progress = self.progress
        # An optimizer that averages lends the model the mean of its weights.
        averaged = getattr(self.model.optimizer, "averaged_weights", nullcontext)
        with averaged():
            self._hooks.on_test_begin()
            validated = {name: float(value) for name, value in self.validate().items()}
            self._hooks.on_test_end(validated)
            value, best = validated[self.monitor], progress.best
            if best is None or math.isnan(best) or self.sign * (value - best) > 0:
                progress.best = value
                if self.hosts.is_first:
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
        samples, seconds = progress.samples, max(progress.seconds, 1e-9)
        line = f"{self._title()}: {samples:,.0f} {self.unit} in {seconds:.0f} s, "
        line += f"{samples / seconds:,.0f} a second, "
        line += ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        progress.history.append(row)
        self._hooks.on_epoch_end(progress.epoch, dict(numbers))
        progress.stopped = bool(self.model.stop_training)
        progress.epoch, progress.batch, progress.seconds = progress.epoch + 1, 0, 0.0
        progress.samples, progress.sums = 0, {}
        if self.hosts.is_first:
            write_history(self.directory, progress.history)
        self._save()
        if self.hosts.is_first:
            write_tensorboard(self.directory, row)
        if self.verbose:
            print(line, flush=True)

    def _save(self):
        if not self.hosts.is_first:
            return
        self.progress.callbacks, arrays = state_of(self.callbacks)
        save_checkpoint(self.directory / CHECKPOINT, self.model, asdict(self.progress), arrays)
