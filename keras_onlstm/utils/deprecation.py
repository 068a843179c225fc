"""Former names of public arguments and attributes. They work for one release, with a warning."""

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["attribute_of", "former_arguments", "former_names", "warn"]


def warn(former: str, current: str, stacklevel: int = 3) -> None:
    """Warns that a name is deprecated."""
    message = f"{former} is deprecated. Use {current}."
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)


F = TypeVar("F", bound=Callable[..., Any])


def former_arguments(**names: str) -> Callable[[F], F]:
    """A decorator that passes keyword arguments with former names on under their current names."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def with_former_arguments(*args: Any, **kwargs: Any) -> Any:
            for former in names.keys() & kwargs.keys():
                warn(f"{former}=", f"{names[former]}=")
                kwargs[names[former]] = kwargs.pop(former)
            return function(*args, **kwargs)

        return with_former_arguments

    return decorate


def attribute_of(former: str, current: str) -> Any:
    """A property: the former name of an attribute or method."""

    def get(instance):
        warn(former, current)
        return getattr(instance, current)

    return property(get)


def former_names(module: str, values: Mapping[str, Any], **names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names have changed.

    Args:
        module: name of the module.
        values: dictionary of the names of the module, `globals()`.
        **names: the current name for each former name.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{module}.{name}", names[name])
        return values[names[name]]

    return get
