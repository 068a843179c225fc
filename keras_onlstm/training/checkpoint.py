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
from keras_onlstm.utils.files import parse_json, read_npz, reason, replacing
from keras_onlstm.utils.validation import Integer, check_kind

__all__ = [
    "BESIDE",
    "Progress",
    "load_checkpoint",
    "restore_state",
    "save_checkpoint",
    "state_of",
]

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


_STATE = "state.json"
_FURTHER = "arrays/"  # prefix of the names of arrays that are not the model's


def _variables(model):
    groups = {
        "model": model.variables,
        "metrics": model.metrics_variables,
        "optimizer": model.optimizer.variables,
    }
    return {
        f"{group}/{index}/{variable.name}": variable
        for group, variables in groups.items()
        for index, variable in enumerate(variables)
    }


def _without_numbers(name):
    """A name without the numbers that Keras adds to names in later models of a process."""
    return re.sub(r"_\d+", "", name)


def _stored(variable):
    """The array that a checkpoint stores for a variable."""
    array = np.asarray(ops.convert_to_numpy(variable))
    # bfloat16 has no NumPy dtype of its own: keep its bits
    return array if array.dtype.kind in "fiub" else array.view(f"u{array.itemsize}")


def save_checkpoint(
    path: StrPath,
    model: keras.Model,
    state: Any,
    arrays: Mapping[str, np.ndarray] | None = None,
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
    held: dict[str, Any] = {_STATE: np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)}
    held |= {name: _stored(variable) for name, variable in _variables(model).items()}
    for name, array in (arrays or {}).items():
        held[f"{_FURTHER}{array.dtype.name}/{name}"] = _stored(array)
    with replacing(path) as temporary:
        np.savez(temporary, **held)


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
        raise FileNotFoundError(
            f"{path}: no such checkpoint. Start a new run with another --output."
        )
    variables = _variables(model)
    try:
        stored = read_npz(path)
        state = parse_json(stored.pop(_STATE).tobytes(), object)
        further = [name for name in stored if name.startswith(_FURTHER)]
        others = dict(_further(name, stored.pop(name)) for name in further)
    except Exception as error:  # damaged files raise exceptions of many types
        raise ValueError(
            f"{path}: not a complete checkpoint ({reason(error)}). Restore it from a copy, or "
            "start the run anew in another directory."
        ) from error
    _check_record(path, state, record)
    fault = _difference(variables, stored)
    if fault:
        raise ValueError(f"{path}: {fault}. Resume with the arguments the run started with.")
    if arrays is not None:
        arrays.update(others)
    if check is not None:
        check(state)
    for variable, array in zip(variables.values(), stored.values(), strict=True):
        native = np.asarray(ops.convert_to_numpy(variable)).dtype
        variable.assign(array.view(native))
    return state


def _further(name, array):
    """The name and the array that were passed to `save_checkpoint`."""
    dtype, name = name.removeprefix(_FURTHER).split("/", 1)
    return name, array.view(np.dtype(dtype))


def _check_record(path, state, record):
    stored = state.get("record") if isinstance(state, dict) else None  # earlier versions had none
    if not isinstance(stored, dict) or record is None:
        return
    for name, value in current_values(stored).items():  # records of earlier versions have fewer
        if value != record.get(name):
            raise ValueError(
                f"{path}: the run was begun with {name} {value}, not {record.get(name)}. Resume it "
                "with what it was begun with, or start another."
            )


def _difference(variables, arrays):
    """How a model differs from the arrays of a checkpoint, or `None`."""
    if list(map(_without_numbers, variables)) != list(map(_without_numbers, arrays)):
        return (
            f"belongs to another model: it holds {len(arrays)} variables, the model has "
            f"{len(variables)}, or their names differ"
        )
    for variable, (name, array) in zip(variables.values(), arrays.items(), strict=True):
        wanted = _stored(variable)
        if (wanted.shape, wanted.dtype) != (array.shape, array.dtype):
            if "seed_generator_state" in name:
                return "was written on another backend of Keras; resume on that (KERAS_BACKEND)"
            return (
                f"{name} is {array.dtype} of shape {array.shape}, the model wants {wanted.dtype} "
                f"of shape {wanted.shape}"
            )
    return None


Arrays = dict[str, np.ndarray]

_KERAS_COUNTERS = {
    keras.callbacks.EarlyStopping: ("best", "best_epoch", "best_weights", "stopped_epoch", "wait"),
    keras.callbacks.ReduceLROnPlateau: ("best", "cooldown_counter", "wait"),
}


def _state(callback):
    """The state of a callback, empty for most callbacks of Keras."""
    if hasattr(callback, "get_state"):
        return callback.get_state()
    kinds = [kind for kind in _KERAS_COUNTERS if isinstance(callback, kind)]
    return {name: getattr(callback, name, None) for kind in kinds for name in _KERAS_COUNTERS[kind]}


def state_of(callbacks: Sequence[Any]) -> tuple[list[dict[str, Any]], Arrays]:
    """The states of callbacks: a dictionary of numbers for each, and the arrays of all.

    The arrays have keys such as `"0/best_weights/2"`: callback, name, position in a list.
    """
    numbers: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for index, callback in enumerate(callbacks):
        numbers.append({})
        for name, value in _state(callback).items():
            if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                arrays |= {f"{index}/{name}/{at}": array for at, array in enumerate(value)}
            else:
                numbers[-1][name] = value
    return numbers, arrays


def restore_state(callbacks: Sequence[Any], numbers: list[dict[str, Any]], arrays: Arrays) -> None:
    """Restores the states that `state_of` returned, except names that a callback does not have."""
    for index, (callback, values) in enumerate(zip(callbacks, numbers, strict=True)):
        state = _state(callback)
        for name in state:
            own = [arrays[key] for key in arrays if key.startswith(f"{index}/{name}/")]
            state[name] = own or values.get(name, state[name])
        if hasattr(callback, "set_state"):
            callback.set_state(state)
        else:
            vars(callback).update(state)
