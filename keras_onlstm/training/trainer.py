"""A training loop that can be killed at any time and resumed with identical results."""

import csv
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import keras

from keras_onlstm.distribution.processes import SINGLE_PROCESS, Processes
from keras_onlstm.runs.config import Config
from keras_onlstm.runs.directory import has_begun, running
from keras_onlstm.text.vocabulary import write_words
from keras_onlstm.training.checkpoint import (
    Progress,
    callback_states,
    load_checkpoint,
    restore_callbacks,
    save_checkpoint,
)
from keras_onlstm.training.corpora import VOCABULARY, check_same_vocabulary
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import remove_left_overs, replacing, write_json
from keras_onlstm.utils.validation import renamed_arguments

CHECKPOINT = "checkpoint.npz"
BEST = "best.keras"


class Trainer:
    """Trains a compiled model and writes the results to a directory.

    The directory receives `checkpoint.npz` (all that is needed to resume, unlike that of
    `keras.callbacks.BackupAndRestore`), `best.keras` (the model of the best epoch), `metrics.csv`,
    `metrics.json`, and event files if TensorBoard is installed.

    Args:
        model: compiled and built `keras.Model`.
        batches: a data set with `len`, `[index]` and `set_epoch(epoch)`, such as `PairBatches` or
            `Windows`. A batch is inputs, targets and optionally weights of the targets. Optional:
            `lengths_vary`, whether axis 1 of its arrays varies in size; `samples(index)`, the size
            of a batch in `unit`; `share(index)`, a factor of its learning rate.
        validate: function that returns a dictionary of numbers, called after every epoch.
        directory: where to write; created if missing.
        epochs: positive integer.
        monitor: key of the result of `validate` that decides which epoch is best.
        mode: `"max"` if a higher value is better, `"min"` if a lower one is.
        callbacks: Keras callbacks. Checkpoints include the results of `get_state()`, and the state
            of `EarlyStopping` and `ReduceLROnPlateau`.
        schedules: objects such as `PlateauSchedule`. `step` takes the metric `schedule.monitor`, or
            that of the trainer, after every epoch; `rate`, if it exists, gives the learning rate of
            every batch; checkpoints include `get_state()`.
        distribute: function that puts a batch onto the devices, or `None`.
        best_model: the model to save in `best.keras`, if it is only a part of `model`.
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
    >>> validate = lambda: {"val_loss": model.test_on_batch(inputs, classes)}
    >>> trainer = Trainer(model, batches, validate, "run", 3, "val_loss", "min", verbose=False)
    >>> [row["epoch"] for row in trainer.run()]
    [1, 2, 3]
    """

    @renamed_arguments(place="distribute", saved="best_model")
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
        distribute: Callable[[tuple], tuple] | None = None,
        best_model: keras.Model | None = None,
        record: Mapping[str, Any] | None = None,
        checkpoint_seconds: float = 60,
        verbose: bool = True,
        log_every: int = 0,
        unit: str = "samples",
        processes: Processes = SINGLE_PROCESS,
    ) -> None:
        self.model, self.batches, self.validate = model, batches, validate
        self.directory, self.epochs = Path(directory), epochs
        self.monitor, self.sign = monitor, {"max": 1, "min": -1}[mode]
        self.callbacks, self.schedules = list(callbacks), list(schedules)
        self.distribute = distribute or (lambda batch: batch)
        self.best_model = model if best_model is None else best_model
        self.record = dict(record or {})
        self.checkpoint_seconds, self.verbose = checkpoint_seconds, verbose
        self.log_every = log_every if verbose and not sys.stdout.isatty() else 0
        self.unit, self.processes = unit, processes
        self.progress = Progress(record=self.record)
        self._hooks: Any = None

    def resume(self) -> None:
        """Restores the last checkpoint.

        Raises `FileNotFoundError` if it is missing, and `ValueError` if it is damaged or of another
        model. Nothing is changed then.
        """
        path, arrays = self.directory / CHECKPOINT, dict[str, Any]()
        state = load_checkpoint(path, self.model, self._check, self.record, arrays)
        self.progress = Progress.from_state(path, state, self.record)
        restore_callbacks(self._stateful, self.progress.callbacks, arrays)

    @property
    def _stateful(self):
        return [*self.callbacks, *(s for s in self.schedules if s.get_state())]

    def _check(self, state):
        path, callbacks = self.directory / CHECKPOINT, len(self._stateful)
        Progress.from_state(path, state, self.record)
        self.batches.set_epoch(state["epoch"])  # epochs may differ in length
        if len(state["callbacks"]) != callbacks or state["batch"] > len(self.batches):
            raise ValueError(
                f"{path}: has {len(state['callbacks'])} callbacks, at batch {state['batch']}, but "
                f"this Trainer has {callbacks} callbacks and {len(self.batches)} batches. "
                "Resume with the arguments the run started with."
            )

    def run(self, max_batches: int | None = None) -> list[dict[str, float]]:
        """Trains to the end, or saves and stops after `max_batches`. Returns the history."""
        self._batches_left = math.inf if max_batches is None else max_batches
        with deterministic_tracing(self.model, getattr(self.batches, "lengths_vary", False)):
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
        states = callback_states(self._stateful)
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
            restore_callbacks(self._stateful, *states)

    def _train_epoch(self):
        progress, batches = self.progress, self.batches
        batches.set_epoch(progress.epoch)
        if progress.batch == 0:
            self._hooks.on_epoch_begin(progress.epoch)
        title = self._title()
        options = {"desc": title, "total": len(batches), "initial": progress.batch,
                   "file": sys.stdout, "leave": False,
                   "disable": None if self.verbose else True}  # fmt: skip
        with progress_bar("batches", **options) as bar:  # disable=None: only on a terminal
            saved = previous = time.monotonic()
            while progress.batch < len(batches) and self._batches_left > 0:
                self._train_batch()
                self._batches_left -= 1
                now = time.monotonic()
                progress.seconds, previous = progress.seconds + now - previous, now
                bar.set_postfix(progress.means(), refresh=False)
                bar.update()
                if self.log_every and progress.batch % self.log_every == 0:
                    position = f"{title}, batch {progress.batch}/{len(batches)}"
                    print(f"{position}: {_text(progress.means())}", flush=True)
                if self.model.stop_training:
                    break
                if now - saved > self.checkpoint_seconds and progress.batch < len(batches):
                    self._save()
                    saved = now

    def _title(self):
        return f"Epoch {self.progress.epoch + 1}/{self.epochs}"

    def _train_batch(self):
        progress, batches, index = self.progress, self.batches, self.progress.batch
        x, y, *weights = batches[index]
        if hasattr(batches, "samples"):
            count = float(batches.samples(index))
        else:
            count = float(weights[0].sum()) if weights else len(y)
        self._hooks.on_train_batch_begin(index)
        rates = {}
        for schedule in (s for s in self.schedules if hasattr(s, "rate")):
            done = (progress.epoch + index / len(batches)) / self.epochs
            share = batches.share(index) if hasattr(batches, "share") else 1.0
            rates["learning_rate"] = schedule.rate(done) * share
            self.model.optimizer.learning_rate.assign(rates["learning_rate"])
        # Metrics of this batch only: the Trainer computes the means over the epoch.
        logs = self.model.train_on_batch(*self.distribute((x, y, *weights)), return_dict=True)
        progress.add(logs | rates, count)
        means = progress.means()
        self._hooks.on_train_batch_end(index, {name: means[name] for name in logs})
        # A callback such as `keras.callbacks.TerminateOnNaN` may have stopped the training.
        if math.isnan(logs["loss"]) and not self.model.stop_training:
            raise ValueError(
                f"{self.directory}: the loss of batch {progress.batch} of epoch "
                f"{progress.epoch + 1} is NaN: training diverged. Start with a lower learning rate."
            )

    def _end_epoch(self):
        progress, optimizer, is_first = self.progress, self.model.optimizer, self.processes.is_first
        # An averaging optimizer temporarily sets the mean weights.
        with getattr(optimizer, "averaged_weights", nullcontext)():
            self._hooks.on_test_begin()
            validated = {name: float(value) for name, value in self.validate().items()}
            self._hooks.on_test_end(validated)
            value, best = validated[self.monitor], progress.best
            if best is None or math.isnan(best) or self.sign * (value - best) > 0:
                progress.best = value
                if is_first:
                    with replacing(self.directory / BEST) as temporary:
                        self.best_model.save(temporary)
        means, seconds = progress.means(), progress.seconds
        last_rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
        rates = {"learning_rate": means.pop("learning_rate", last_rate)}
        metrics = means | validated
        row = {"epoch": progress.epoch + 1, **metrics, **rates, "seconds": round(seconds, 3)}
        line = (
            f"{self._title()}: {progress.samples:,.0f} {self.unit} in {seconds:.0f} s, "
            f"{progress.samples / max(seconds, 1e-9):,.0f} a second, {_text(metrics)}"
        )
        self._hooks.on_epoch_end(progress.epoch, dict(metrics))
        for schedule in self.schedules:
            schedule.step(validated[schedule.monitor or self.monitor])
        progress.end_epoch(row, bool(self.model.stop_training))
        if is_first:
            write_history(self.directory, progress.history)
        self._save()
        if is_first:
            write_tensorboard(self.directory, row)
        if self.verbose:
            print(line, flush=True)

    def _save(self):
        if self.processes.is_first:
            self.progress.callbacks, arrays = callback_states(self._stateful)
            save_checkpoint(self.directory / CHECKPOINT, self.model, asdict(self.progress), arrays)


def train_run(
    trainer: Trainer,
    config: Config,
    resume: bool,
    steps: int | None,
    description: str,
    vocabulary: Sequence[str] | None = None,
    prepared: Sequence[str] = (),
) -> bool:
    """Starts or resumes a run in the directory of a trainer. Returns whether it is complete.

    A run stores its `vocabulary`, if any; `prepared` are files that may exist before it starts.
    """
    directory, processes = trainer.directory, trainer.processes
    stored = prepared if vocabulary is None else [*prepared, VOCABULARY]
    lock = running(directory, config.to_json(), resume, prepared)
    with lock if processes.is_first else nullcontext():
        if processes.on_first(lambda: resume and has_begun(directory, stored)):
            if vocabulary is not None:
                check_same_vocabulary(directory, vocabulary, config.group("data")["data"])
            trainer.resume()
        elif vocabulary is not None and processes.is_first:
            write_words(directory / VOCABULARY, vocabulary)
        print(description, flush=True)
        trainer.run(steps)
    return trainer.progress.epoch == trainer.epochs or trainer.progress.stopped


def _text(metrics):
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def write_history(directory: Path, history: Sequence[dict[str, Any]]) -> None:
    """Writes the rows of all epochs to `metrics.csv` and `metrics.json`."""
    # Rewritten each time, so that a resumed run never contains an epoch twice.
    with (
        replacing(directory / "metrics.csv") as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, fieldnames=list(history[0]))
        writer.writeheader()
        writer.writerows(history)
    write_json(directory / "metrics.json", {"epochs": history})


def write_tensorboard(directory: Path, row: dict[str, Any]) -> None:
    """Adds an epoch's row to the event files in `tensorboard/`, if TensorBoard is installed."""
    if find_spec("tensorboard") is None:
        return
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    metrics = [(name, value) for name, value in row.items() if name != "epoch"]
    values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics]
    now, epoch = time.time(), row["epoch"]
    # TensorBoard reads the files of a directory in the order of their names.
    path = directory / "tensorboard" / f"events.out.tfevents.{now:010.0f}.{epoch:06d}"
    path.parent.mkdir(exist_ok=True)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        event = Event(wall_time=now, step=epoch, summary=Summary(value=values))
        writer.write(event.SerializeToString())


@contextmanager
def deterministic_tracing(model: keras.Model, lengths_vary: bool) -> Iterator[None]:
    """A context in which `model.train_on_batch` traces every batch as if it were the first.

    Keras on TensorFlow traces a step with more and more general shapes, which fit all batches so
    far, and rounding depends on the trace. A resumed run begins with other batches. In this context
    a step depends only on the batch and the variables. If `lengths_vary`, batches that differ only
    in the size of axis 1 share a trace.
    """
    if keras.backend.backend() != "tensorflow" or model.run_eagerly:
        yield
        return
    import tensorflow as tf

    steps = {}

    def specification(array):
        shape = [None if lengths_vary and axis == 1 else n for axis, n in enumerate(array.shape)]
        return tf.TensorSpec(shape, tf.as_dtype(array.dtype))

    def traced(batch, arrays):
        # A new function each time: Keras's own remembers the shapes of earlier batches.
        model.make_train_function(force=True)
        function, model.train_function = model.train_function, train

        def step(*tensors):
            remaining = iter(tensors)
            flat = [None if array is None else next(remaining) for array in arrays]
            return function(iter([tf.nest.pack_sequence_as(batch, flat, expand_composites=True)]))

        return tf.function(step, autograph=False)

    def train(batches):
        batch = next(batches)
        arrays = tf.nest.flatten(batch, expand_composites=True)  # such as PerReplica
        tensors = [array for array in arrays if array is not None]
        signature = tuple(map(specification, tensors))
        if signature not in steps:
            steps[signature] = traced(batch, arrays).get_concrete_function(*signature)
        return steps[signature](*map(tf.convert_to_tensor, tensors))

    original, model.train_function = model.train_function, train
    try:
        yield
    finally:
        model.train_function = original
