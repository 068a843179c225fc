"""Former public names: they work for one release, with a `DeprecationWarning`."""

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str) -> None:
    """Warns the caller of the calling function of a former name."""
    warnings.warn(f"{old} is deprecated. Use {new}.", DeprecationWarning, stacklevel=3)


def module_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a module, from former names to `"name"` or `"package.module:name"`."""

    def getattr_(name):
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = names[name].rpartition(":")
        warn_renamed(f"{module}.{name}", f"{home or module}.{new}")
        return getattr(importlib.import_module(home or module), new)

    return getattr_


def renamed_method(old: str, new: str) -> Any:
    """A method that calls the one with the new name."""

    def method(self, *args, **kwargs):
        warn_renamed(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)(*args, **kwargs)

    method.__doc__ = f"Deprecated. Use `{new}`."
    return method


def renamed_attribute(old: str, new: str) -> Any:
    """A read-only property that returns the attribute with the new name."""

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
