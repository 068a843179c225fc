"""Checks of arguments, with messages that name the argument."""

import operator
import reprlib
from collections.abc import Collection
from typing import Any

__all__ = ["integer", "one_of"]


def integer(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Takes any integer type, NumPy's included, and refuses a bool, which is a mistake.

    Args:
        name: of the argument.
        value: that was given.
        least: the least value that will do.
        most: the greatest, or `None`.

    Returns:
        `int`.

    Raises:
        ValueError: if the value is no integer or out of range.

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
    """Refuses what is none of the names that an argument may have.

    Args:
        name: of the argument.
        value: that was given.
        known: names, two at least.

    Raises:
        ValueError: if the value is another.

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
