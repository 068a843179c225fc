"""What callbacks count: as a checkpoint keeps it, and as a run goes on with it."""

import reprlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_onlstm.utils.reading import check_kind

__all__ = ["InOrder", "append_to_files", "check_state", "restore_state", "state_of"]

_NUMBER = (float, bool, None)


Arrays = dict[str, np.ndarray]
Logs = dict[str, Any] | None


class InOrder(keras.callbacks.Callback):
    """Lets a `CallbackList` call every callback in its turn: Keras may use threads without it.

    `keras.callbacks.CallbackList` hands batches to threads where no callback has a method of its
    own for them. What such a callback sees then depends on how fast the threads are.
    """

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        pass

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        pass

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        pass


def _is_numbers(value):
    return isinstance(value, list) and all(isinstance(item, (int, float)) for item in value)


def _is_number(value):
    return value is None or isinstance(value, (bool, int, float)) or _is_numbers(value)


def _is_array(value):
    # bfloat16 is of the kind V, which has no fields
    return isinstance(value, np.ndarray) and (
        value.dtype.kind in "fiub" or value.dtype.name == "bfloat16"
    )


def _is_arrays(value):
    """Whether it is an array, or a list of arrays, as `keras.Model.get_weights` gives it."""
    return _is_array(value) or (
        isinstance(value, list) and bool(value) and all(map(_is_array, value))
    )


def _is_kept(value):
    """Whether a checkpoint keeps an attribute of that value."""
    return _is_number(value) or _is_arrays(value)


def _is_own(callback, name):
    """Whether an attribute follows from something else than the epochs that a callback has seen."""
    if isinstance(callback, keras.callbacks.CSVLogger):
        return True  # from its file
    # From the mode: the callback turns its sign when it first compares.
    return name == "min_delta" and "monitor_op" in vars(callback)


def state_of(
    callbacks: Sequence[keras.callbacks.Callback],
) -> tuple[list[dict[str, Any]], Arrays]:
    """What a checkpoint keeps of callbacks: their numbers, lists of numbers and arrays.

    Args:
        callbacks: list of Keras callbacks.

    Returns:
        A list of dictionaries from attributes to JSON values, one a callback, and a dictionary of
        arrays, whose keys are a callback's place, an attribute and, in a list, a place in it.
    """
    numbers: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for index, callback in enumerate(callbacks):
        numbers.append({})
        for name, value in vars(callback).items():
            if _is_own(callback, name):
                continue
            if _is_number(value):
                numbers[-1][name] = list(value) if isinstance(value, list) else value
            elif _is_array(value):
                arrays[f"{index}/{name}"] = value
            elif _is_arrays(value):
                arrays |= {f"{index}/{name}/{at}": array for at, array in enumerate(value)}
    return numbers, arrays


def _attributes(arrays):
    """Values of attributes, by a callback's place and name, of the arrays of `state_of`."""
    states: dict[tuple[int, str], list] = {}
    for key, array in arrays.items():
        index, name, *place = key.split("/")
        values = states.setdefault((int(index), name), [])
        if place and int(place[0]) != len(values):
            raise ValueError(f"the arrays of {reprlib.repr(name)} are not in order")
        values.append(array if place else (array,))
    return {
        at: values[0][0] if isinstance(values[0], tuple) else values
        for at, values in states.items()
    }


def check_state(
    callbacks: Sequence[keras.callbacks.Callback], numbers: list[dict[str, Any]], arrays: Arrays
) -> None:
    """Refuses what is not a state of these callbacks.

    Args:
        callbacks: list of Keras callbacks.
        numbers: list of dictionaries, as `state_of` returns it.
        arrays: dictionary, as `state_of` returns it.

    Raises:
        ValueError: if a number or an array would take the place of something else.
    """
    for callback, values in zip(callbacks, numbers, strict=False):
        for name, value in values.items():
            now = _present(callback, name)
            if value is not None and not _is_number(now):
                raise _no_number(callback, name)
            if value is not None and now is not None:
                check_kind(value, [(float, bool)] if isinstance(now, list) else _NUMBER, name)
    for index, name in _attributes(arrays):
        if index >= len(callbacks):
            raise ValueError(f"there is no callback {index + 1}")
        if not _is_kept(_present(callbacks[index], name)):
            raise _no_number(callbacks[index], name)


def _no_number(callback, name):
    return ValueError(f"{type(callback).__name__} has no number {reprlib.repr(name)}")


def _present(callback, name):
    """The value of an attribute, if it is there, and is no method."""
    if name not in vars(callback) and hasattr(type(callback), name):
        raise _no_number(callback, name)
    return vars(callback).get(name)


def restore_state(
    callbacks: Sequence[keras.callbacks.Callback], numbers: list[dict[str, Any]], arrays: Arrays
) -> None:
    """Gives callbacks the attributes that `state_of` returned.

    Args:
        callbacks: list of Keras callbacks. What is no number in them, such as a file, stays.
        numbers: list of dictionaries.
        arrays: dictionary.
    """
    values = [dict(attributes) for attributes in numbers]
    for (index, name), value in _attributes(arrays).items():
        values[index][name] = value
    for callback, attributes in zip(callbacks, values, strict=True):
        for name, value in attributes.items():
            if _is_kept(vars(callback).get(name)) and not _is_own(callback, name):
                vars(callback)[name] = list(value) if isinstance(value, list) else value


def append_to_files(callbacks: Sequence[keras.callbacks.Callback]) -> None:
    """Lets callbacks that write a file go on with the one that is there.

    Args:
        callbacks: list of Keras callbacks.
    """
    for callback in callbacks:
        if isinstance(callback, keras.callbacks.CSVLogger):
            callback.append = True
