"""Checks of arguments and of values from files, and former names of arguments.

A value from a file is checked against a kind, which describes the expected structure:

- `str`, `bool`, `float` (any number), `list`, `dict`, `None`, `object` (anything);
- `Integer(minimum, maximum)`, `Number(minimum, maximum)` and `Choice(values)`, which are narrower;
- `[kind]`, a list; `{"name": kind}`, an object with at least these names; `{str: kind}`, with any;
- `(kind, kind)`, one or the other; with `...` in it the name may be missing.
"""

import functools
import importlib
import math
import operator
import reprlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def check_integer(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """Returns an integer argument as `int`. NumPy's integers are valid, bools are not."""
    is_integer = not isinstance(value, bool) and hasattr(value, "__index__")
    number = operator.index(value) if is_integer else None
    if number is None or number < minimum or (maximum is not None and number > maximum):
        expected = f"{minimum} or above" if maximum is None else f"from {minimum} to {maximum}"
        raise ValueError(f"{name} must be an integer, {expected}, not {reprlib.repr(value)}.")
    return number


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Raises a `ValueError` for an argument that is not one of several strings."""
    if not isinstance(value, str) or value not in choices:
        *names, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(names)} or {last}, not {reprlib.repr(value)}.")


class Integer(NamedTuple):
    """The kind of integers from `minimum` to `maximum`."""

    minimum: int = 0
    maximum: int = 2**63 - 1


class Number(NamedTuple):
    """The kind of numbers from `minimum` to `maximum`, which may be infinite."""

    minimum: float = -math.inf
    maximum: float = math.inf


class Choice(NamedTuple):
    """The kind of strings that are one of `values`."""

    values: tuple[str, ...]


SEEDS = Integer(0, 2**32 - 1)  # valid for every random generator
INITIALIZATIONS = Choice(("scaled", "published"))  # initial weights: see models.initializers


def check_kind(value: Any, kind: Any, name: str = "it") -> None:
    """Checks that a value is of a kind; if not, the `ValueError` names the position in it.

    >>> kind = {"epochs": [{"epoch": Integer(1), "loss": float}]}
    >>> check_kind({"epochs": [{"epoch": 1, "loss": "low"}]}, kind)
    Traceback (most recent call last):
    ...
    ValueError: epochs[0].loss must be a number, not 'low'
    """
    error = _find_error(value, kind)
    if error is not None:
        path, message = error
        raise ValueError(f"{path.removeprefix('.') or name} {message}")


def _find_error(value, kind):
    """The path to a value that is not of a kind and a message, or `None`."""
    alternatives = _alternatives(kind)
    for alternative in alternatives:
        if _matches(value, alternative):
            return _find_nested_error(value, alternative)
    expected = " or ".join(_describe(kind) for kind in alternatives if kind is not ...)
    return "", f"must be {expected}, not {reprlib.repr(value)}"


def _find_nested_error(value, kind):
    if isinstance(kind, list):
        errors = ((f"[{index}]", _find_error(item, kind[0])) for index, item in enumerate(value))
    elif isinstance(kind, dict) and str in kind:
        errors = (
            (f".{reprlib.repr(name)}", _find_error(name, str) or _find_error(item, kind[str]))
            for name, item in value.items()
        )
    elif isinstance(kind, dict):
        errors = ((f".{name}", _item_error(value, name, item)) for name, item in kind.items())
    else:
        return None
    return next(((path + error[0], error[1]) for path, error in errors if error), None)


def _item_error(value, name, kind):
    if name in value:
        return _find_error(value[name], kind)
    return None if ... in _alternatives(kind) else ("", "is missing")


def _alternatives(kind):
    return kind if type(kind) is tuple else (kind,)


def _matches(value, kind):
    """Whether a value is of a kind, without a check of its items."""
    if kind is str:
        return isinstance(value, str) and _is_encodable(value)
    if kind is float:
        return type(value) is float or (type(value) is int and abs(value) < 2**63)
    if isinstance(kind, Integer):
        return type(value) is int and kind.minimum <= value <= kind.maximum
    if isinstance(kind, Number):
        return type(value) in (int, float) and kind.minimum <= value <= kind.maximum
    if isinstance(kind, Choice):
        return isinstance(value, str) and value in kind.values
    if isinstance(kind, list | dict):
        return type(value) is type(kind)
    return kind is object or value is kind or type(value) is kind


def _is_encodable(text):
    try:
        text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
    return True


def _describe(kind):
    if isinstance(kind, Integer):
        if kind.maximum == Integer().maximum:
            return f"an integer, {kind.minimum} or above"
        return f"an integer from {kind.minimum} to {kind.maximum}"
    if isinstance(kind, Number):
        if kind.maximum == math.inf:
            return f"a number, {kind.minimum:g} or above"
        return f"a number from {kind.minimum:g} to {kind.maximum:g}"
    if isinstance(kind, Choice):
        return " or ".join(map(repr, kind.values))
    return _NAMES[type(kind) if isinstance(kind, list | dict) else kind]


_NAMES: dict[Any, str] = {
    str: "a string",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    None: "null",
}


# Former public names work for one release, with a `DeprecationWarning`.


def warn_renamed(old: str, new: str) -> None:
    """Warns the caller of the calling function of a former name."""
    warnings.warn(f"{old} is deprecated. Use {new}.", DeprecationWarning, stacklevel=3)


def module_getattr(
    module: str, names: Mapping[str, str], lazy: Sequence[str] = (), public: Sequence[str] = ()
) -> Callable[[str], Any]:
    """A `__getattr__` for a module.

    It finds former `names`, which it maps to `"name"` or `"package.module:name"`, and the `public`
    names of the `lazy` submodules, which are imported then.
    """

    def getattr_(name):
        for submodule in lazy if name in public else ():
            found = vars(importlib.import_module(f"{module}.{submodule}"))
            if name in found:
                return found[name]
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = names[name].rpartition(":")
        warn_renamed(f"{module}.{name}", f"{home or module}.{new}")
        return getattr(importlib.import_module(home or module), new)

    return getattr_


def renamed_attribute(old: str, new: str) -> Any:
    """A read-only property that returns the attribute or method with the new name."""

    def value(self):
        warn_renamed(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)

    return property(value, doc=f"Deprecated. Use `{new}`.")


def renamed_arguments(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for a function whose keyword arguments were renamed: `old="new"`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                warn_renamed(f"{old}=", f"{names[old]}=")
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
