"""Former names of arguments and methods, which work for one more release."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["renamed_arguments", "warn_renamed"]

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str) -> None:
    """Warns the caller of the calling function that it uses a former name."""
    message = f"{old} is deprecated and will be removed in the next release. Use {new}."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def renamed_arguments(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: accepts keyword arguments under former names, `former=current`.

    Example:

    >>> from keras_onlstm.utils.deprecation import renamed_arguments
    >>> @renamed_arguments(about="metadata")
    ... def save(path, metadata=None):
    ...     return metadata
    >>> save("model.npz", metadata="a test")
    'a test'
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> R:
            for old, new in names.items():
                if old in kwargs:
                    warn_renamed(f"{old}=", f"{new}=")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return wrapper

    return decorate
