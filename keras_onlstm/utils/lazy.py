"""Packages whose names are imported when they are first asked for.

What imports Keras takes seconds, and `--help` needs none of it.
"""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: Collection[str], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package's `__init__.py`.

    Type checkers, which do not run them, read the imports there under `TYPE_CHECKING`.

    Args:
        package: its `__name__`.
        names: its `__all__`.
        homes: dictionary from names to the modules in the package that define them. Names without
            one are modules themselves.

    Returns:
        The two functions.

    Example:

    >>> from keras_onlstm.utils.lazy import lazy_names
    >>> get, listed = lazy_names("keras_onlstm.text", ["EOS"], {"EOS": "vocabulary"})
    >>> get("EOS")
    '<eos>'
    >>> get("SOS")
    Traceback (most recent call last):
    ...
    AttributeError: module 'keras_onlstm.text' has no attribute 'SOS'
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{homes.get(name, name)}")
        value = getattr(module, name) if name in homes else module
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return get, listed
