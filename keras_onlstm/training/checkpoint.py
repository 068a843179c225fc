"""Checkpoints from which training resumes exactly."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_onlstm.runs.earlier import current_values
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import describe, parse_json, read_npz, replacing
from keras_onlstm.utils.validation import Integer, check_kind


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
        others = ("epoch", "learning_rate", "seconds")
        row = self.history[-1] if self.history else {}
        return {name: value for name, value in row.items() if name not in others}

    def end_epoch(self, row: dict[str, float], stopped: bool) -> None:
        """Goes to the next epoch."""
        self.history.append(row)
        self.epoch, self.batch, self.stopped = self.epoch + 1, 0, stopped
        self.seconds, self.samples, self.sums = 0.0, 0, {}

    @classmethod
    def from_state(cls, path: Path, state: Any, record: dict[str, Any]) -> "Progress":
        """The progress stored in a checkpoint, with the record of the run."""
        try:
            check_kind(state, _PROGRESS, "the state")
        except ValueError as error:
            raise ValueError(f"{path}: not a checkpoint of a Trainer ({error}).") from error
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
_STATE = "state.json"
_ARRAYS = "arrays/"  # prefix of the names of arrays that are not the model's


def _variables(model):
    groups = {"model": model.variables, "metrics": model.metrics_variables,
              "optimizer": model.optimizer.variables}  # fmt: skip
    return {
        f"{group}/{index}/{variable.name}": variable
        for group, variables in groups.items()
        for index, variable in enumerate(variables)
    }


def _stored(variable):
    """The array that a checkpoint stores for a variable."""
    array = np.asarray(ops.convert_to_numpy(variable))
    # NumPy has no bfloat16: store its bits
    return array if array.dtype.kind in "fiub" else array.view(f"u{array.itemsize}")


def save_checkpoint(
    path: StrPath, model: keras.Model, state: Any, arrays: Mapping[str, np.ndarray] | None = None
) -> None:
    """Writes a checkpoint, atomically.

    Args:
        path: the file, ending in `.npz`.
        model: a compiled `keras.Model` whose optimizer and metrics are built.
        state: JSON-serializable object, which `load_checkpoint` returns.
        arrays: dictionary of further NumPy arrays of numbers, or `None`.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import load_checkpoint, save_checkpoint
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> model.optimizer.build(model.trainable_variables)
    >>> save_checkpoint("checkpoint.npz", model, {"epoch": 3})
    >>> load_checkpoint("checkpoint.npz", model)
    {'epoch': 3}
    """
    entries: dict[str, Any] = {_STATE: np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)}
    entries |= {name: _stored(variable) for name, variable in _variables(model).items()}
    for name, array in (arrays or {}).items():
        entries[f"{_ARRAYS}{array.dtype.name}/{name}"] = _stored(array)
    with replacing(path) as temporary:
        np.savez(temporary, **entries)


def load_checkpoint(
    path: StrPath,
    model: keras.Model,
    check: Callable[[Any], object] | None = None,
    record: Mapping[str, Any] | None = None,
    arrays: dict[str, np.ndarray] | None = None,
) -> Any:
    """Restores every variable of `model` from a checkpoint.

    Args:
        path: the file that `save_checkpoint` wrote.
        model: a compiled model, built like the saved one. Not changed if an error is raised.
        check: function of the saved `state`, called before anything is set. It may raise an error.
        record: dictionary that must agree with the `"record"` of the state; `None`: any.
        arrays: dictionary to which the further arrays are added, or `None`.

    Returns:
        The `state` that was saved.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if the file is damaged or belongs to another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint. Start a run with another --output.")
    further_arrays = {}
    try:
        stored = read_npz(path)
        state = parse_json(stored.pop(_STATE).tobytes(), object)
        for key in [name for name in stored if name.startswith(_ARRAYS)]:
            dtype, name = key.removeprefix(_ARRAYS).split("/", 1)
            further_arrays[name] = stored.pop(key).view(np.dtype(dtype))
    except Exception as error:  # damaged files raise exceptions of many types
        raise ValueError(
            f"{path}: not a complete checkpoint ({describe(error)}). Restore it from a copy."
        ) from error
    if record is not None:
        _check_record(path, state, record)
    variables = _variables(model)
    _check_variables(path, variables, stored)
    if arrays is not None:
        arrays.update(further_arrays)
    if check is not None:
        check(state)
    for variable, array in zip(variables.values(), stored.values(), strict=True):
        variable.assign(array.view(np.asarray(ops.convert_to_numpy(variable)).dtype))
    return state


def _check_record(path, state, record):
    stored = state.get("record") if isinstance(state, dict) else None  # earlier versions had none
    # Records of earlier versions have fewer names.
    for name, value in current_values(stored).items() if isinstance(stored, dict) else ():
        if value != record.get(name):
            raise ValueError(
                f"{path}: the run was started with {name} {value}, not {record.get(name)}. Resume "
                "it with the value it was started with, or start another."
            )


def _check_variables(path, variables, arrays):
    """Checks that a checkpoint has the variables of a model."""
    remedy = "Resume with the arguments the run started with."
    # Keras adds numbers to the names in later models of a process.
    names, stored_names = ([re.sub(r"_\d+", "", key) for key in x] for x in (variables, arrays))
    if names != stored_names:
        raise ValueError(
            f"{path}: belongs to another model. It has {len(arrays)} variables and the model has "
            f"{len(variables)}, or their names differ. {remedy}"
        )
    for variable, (name, array) in zip(variables.values(), arrays.items(), strict=True):
        expected = _stored(variable)
        if (expected.shape, expected.dtype) != (array.shape, array.dtype):
            if "seed_generator_state" in name:
                raise ValueError(f"{path}: was written with another KERAS_BACKEND. Resume on it.")
            raise ValueError(
                f"{path}: {name} is {array.dtype} of shape {array.shape}, but the model needs "
                f"{expected.dtype} of shape {expected.shape}. {remedy}"
            )


_KERAS_COUNTERS = {
    keras.callbacks.EarlyStopping: ("best", "best_epoch", "best_weights", "stopped_epoch", "wait"),
    keras.callbacks.ReduceLROnPlateau: ("best", "cooldown_counter", "wait"),
}


def _state(callback):
    """The state of a callback, empty for most callbacks of Keras."""
    if hasattr(callback, "get_state"):
        return callback.get_state()
    names = (names for kind, names in _KERAS_COUNTERS.items() if isinstance(callback, kind))
    return {name: getattr(callback, name, None) for name in next(names, ())}


def callback_states(callbacks: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """The states of callbacks: a dictionary of numbers for each, and the arrays of all.

    The arrays have keys such as `"0/best_weights/2"`: callback, name, position in a list.
    """
    numbers: list[dict[str, Any]] = [{} for _ in callbacks]
    arrays: dict[str, np.ndarray] = {}
    for index, callback in enumerate(callbacks):
        for name, value in _state(callback).items():
            if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                arrays |= {f"{index}/{name}/{item}": array for item, array in enumerate(value)}
            else:
                numbers[index][name] = value
    return numbers, arrays


def restore_callbacks(
    callbacks: Sequence[Any], numbers: Sequence[dict[str, Any]], arrays: Mapping[str, np.ndarray]
) -> None:
    """Restores the results of `callback_states`, except names that a callback does not have."""
    for index, (callback, values) in enumerate(zip(callbacks, numbers, strict=True)):
        state = _state(callback)
        for name in state:
            own = [arrays[key] for key in arrays if key.startswith(f"{index}/{name}/")]
            state[name] = own or values.get(name, state[name])
        if hasattr(callback, "set_state"):
            callback.set_state(state)
        else:
            vars(callback).update(state)
