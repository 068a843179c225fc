"""Checks of arguments, with messages that name the argument."""

import operator
import reprlib
from collections.abc import Collection
from typing import Any

__all__ = ["integer", "one_of"]


def integer(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Checks an integer argument. NumPy's integers are valid, bools are not.

    Args:
        name: name of the argument.
        value: its value.
        least: the smallest valid value.
        most: the largest, or `None`.

    Returns:
        `int`.

    Raises:
        ValueError: if the value is not an integer or is out of range.

    Example:

    >>> from keras_onlstm.utils.arguments import integer
    >>> integer("units", 0)
    Traceback (most recent call last):
    ...
    ValueError: units must be an integer, 1 or above, not 0.
    """
    known = not isinstance(value, bool) and hasattr(value, "__index__")
    number = operator.index(value) if known else None
    if number is None or number < least or (most is not None and number > most):
        wanted = f"{least} or above" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer, {wanted}, not {reprlib.repr(value)}.")
    return number


def one_of(name: str, value: Any, known: Collection[str]) -> None:
    """Checks an argument that is one of several names.

    Args:
        name: name of the argument.
        value: its value.
        known: the valid names, at least two.

    Raises:
        ValueError: if it is not one of them.

    Example:

    >>> from keras_onlstm.utils.arguments import one_of
    >>> one_of("format", "gif", ["text", "svg", "latex"])
    Traceback (most recent call last):
    ...
    ValueError: format is 'text', 'svg' or 'latex', not 'gif'.
    """
    if not isinstance(value, str) or value not in known:
        *names, last = map(repr, known)
        raise ValueError(f"{name} is {', '.join(names)} or {last}, not {reprlib.repr(value)}.")
