"""Checkpoints from which training goes on exactly where it stopped.

One `.npz` file holds every variable that training changes, bit for bit: weights, the states of the
random generators, the running metrics and the optimizer's variables, the learning rate among them,
beside a JSON text for what is not a variable. No pickle: a checkpoint from a stranger is only
numbers.
"""

import json
import re
from pathlib import Path

import numpy as np
from keras import ops

from keras_onlstm.files import replacing

__all__ = ["load_checkpoint", "save_checkpoint"]

_STATE = "state.json"


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
    """A name as it is in the first model of a process: Keras numbers those of later ones."""
    return re.sub(r"_\d+", "", name)


def _stored(variable):
    """The array that a checkpoint holds of a variable."""
    array = np.asarray(ops.convert_to_numpy(variable))
    # bfloat16 has no NumPy dtype of its own: keep its bits
    return array if array.dtype.kind in "fiub" else array.view(f"u{array.itemsize}")


def save_checkpoint(path, model, state):
    """Writes a checkpoint, completely or not at all.

    Args:
        path: the file, ending in `.npz`.
        model: a compiled `keras.Model` whose optimizer and metrics are built.
        state: JSON-serializable object, returned by `load_checkpoint`.
    """
    arrays = {name: _stored(variable) for name, variable in _variables(model).items()}
    encoded = np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)
    with replacing(path) as temporary:
        np.savez(temporary, **{_STATE: encoded}, **arrays)


def load_checkpoint(path, model, check=None):
    """Sets every variable of `model` to what a checkpoint holds.

    Args:
        path: the file that `save_checkpoint` wrote.
        model: a compiled model, built as the saved one was. Untouched if anything is wrong.
        check: function of the `state` that was saved, called before anything is set; what it raises
            goes through.

    Returns:
        The `state` that was saved.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is damaged or belongs to another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint. Start the run without resuming.")
    try:
        # Opened here, as NumPy forgets to close a damaged file.
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        state = json.loads(arrays.pop(_STATE).tobytes())
    except Exception as error:  # whatever NumPy, its zip reader and JSON raise over damaged bytes
        raise ValueError(
            f"{path}: not a complete checkpoint ({error}). Restore it from a copy, or start the "
            "run anew in another directory."
        ) from error
    variables = _variables(model)
    if list(map(_without_numbers, variables)) != list(map(_without_numbers, arrays)):
        raise ValueError(
            f"{path}: belongs to another model: it holds {len(arrays)} variables, the model has "
            f"{len(variables)}, or their names differ. Resume with the arguments the run started "
            "with."
        )
    arrays = dict(zip(variables, arrays.values(), strict=True))
    for name, variable in variables.items():
        wanted, found = _stored(variable), arrays[name]
        if (wanted.shape, wanted.dtype) != (found.shape, found.dtype):
            raise ValueError(
                f"{path}: {name} is {found.dtype} of shape {found.shape}, the model wants "
                f"{wanted.dtype} of shape {wanted.shape}. Resume with the arguments the run "
                "started with."
            )
    if check is not None:
        check(state)
    for name, variable in variables.items():
        native = np.asarray(ops.convert_to_numpy(variable)).dtype
        variable.assign(arrays[name].view(native))
    return state
