"""State of callbacks in a checkpoint: their counters, and the weights that they keep."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

__all__ = ["restore_state", "state_of"]

Arrays = dict[str, np.ndarray]

_KERAS_COUNTERS = {
    keras.callbacks.EarlyStopping: ("best", "best_epoch", "best_weights", "stopped_epoch", "wait"),
    keras.callbacks.ReduceLROnPlateau: ("best", "cooldown_counter", "wait"),
}


def _state(callback):
    """The state of one callback: a dictionary, empty if nothing is stored of it."""
    if hasattr(callback, "get_state"):
        return callback.get_state()
    kinds = [kind for kind in _KERAS_COUNTERS if isinstance(callback, kind)]
    return {name: getattr(callback, name, None) for kind in kinds for name in _KERAS_COUNTERS[kind]}


def state_of(
    callbacks: Sequence[keras.callbacks.Callback],
) -> tuple[list[dict[str, Any]], Arrays]:
    """The states of callbacks, from `get_state`, or the counters of two Keras callbacks.

    Args:
        callbacks: list of Keras callbacks.

    Returns:
        A list of dictionaries of JSON values, one per callback, and a dictionary of the arrays in
        lists of arrays, with keys such as `"0/best_weights/2"`: callback, name, position.
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


def restore_state(
    callbacks: Sequence[keras.callbacks.Callback], numbers: list[dict[str, Any]], arrays: Arrays
) -> None:
    """Gives callbacks the states that `state_of` returned.

    Checkpoints of earlier versions hold more names than a state has. These are ignored.

    Args:
        callbacks: list of Keras callbacks.
        numbers: list of dictionaries, one per callback.
        arrays: dictionary.
    """
    for index, (callback, values) in enumerate(zip(callbacks, numbers, strict=True)):
        state = _state(callback)
        for name in state:
            own = [arrays[key] for key in arrays if key.startswith(f"{index}/{name}/")]
            state[name] = own or values.get(name, state[name])
        if hasattr(callback, "set_state"):
            callback.set_state(state)
        else:
            vars(callback).update(state)
