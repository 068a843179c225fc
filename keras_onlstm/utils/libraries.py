"""Installed libraries, their versions, and the backend of Keras."""

import importlib.metadata
import importlib.util
import itertools
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

BACKENDS = ("tensorflow", "jax", "torch")  # names for import and for pip
_VARIABLE = "KERAS_BACKEND"


def is_installed(module: str) -> bool:
    """Whether a top-level module is installed, without importing it."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None  # else it is only a directory


def not_installed(user: object, *libraries: str, error: ImportError) -> ImportError:
    """The error for libraries that cannot be imported.

    `user` is the file, option or feature that needs them. The message suggests the libraries, not
    an extra of this package, which would also install TensorFlow.
    """
    return ImportError(
        f"{user} needs {' and '.join(libraries)} ({error}): pip install {shlex.join(libraries)}",
        name=error.name,
    )


def keras_not_installed(user: object, error: ImportError) -> ImportError:
    """`not_installed` for Keras, and for a backend if none is installed."""
    backend = () if any(map(is_installed, BACKENDS)) else BACKENDS[:1]
    return not_installed(user, "keras", *backend, error=error)


def backend_not_installed(backend: str, error: ImportError) -> ImportError:
    """The error for a missing backend of Keras: install it, or set another."""
    others = [other for other in BACKENDS if other != backend]
    installed = " or ".join(filter(is_installed, others))
    if installed:
        remedy = f"Set {_VARIABLE}={installed}, or: pip install {backend}"
    else:
        remedy = (
            f"Install it: pip install {backend}. Or install {' or '.join(others)}, and set "
            f"{_VARIABLE} to its name"
        )
    return ImportError(
        f"Keras runs on {backend}, which cannot be imported ({error}), as {_VARIABLE} is "
        f"{os.environ.get(_VARIABLE) or 'not set'}. {remedy}.",
        name=backend,
    )


def configured_backend() -> str:
    """The backend that Keras will use, from the variable, keras.json or the default."""
    if os.environ.get(_VARIABLE):
        return os.environ[_VARIABLE]
    home = os.environ.get("KERAS_HOME")
    if home is None:
        user = os.path.expanduser("~")
        home = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")
    try:
        settings = json.loads(Path(home).expanduser().joinpath("keras.json").read_bytes())
        return settings.get("backend", BACKENDS[0])
    except (OSError, ValueError):
        return BACKENDS[0]


def choose_backend(program: str) -> None:
    """Sets an installed backend if the configured one is not, unless `KERAS_BACKEND` is set.

    It sets that variable, which child processes inherit. A line on standard error reports it when
    this process imports Keras, which some commands never do.
    """
    if os.environ.get(_VARIABLE) or "keras" in sys.modules:
        return
    configured = configured_backend()
    installed = [backend for backend in BACKENDS if is_installed(backend)]
    if configured not in BACKENDS or configured in installed or not installed:
        return
    os.environ[_VARIABLE] = installed[0]
    line = (
        f"{program}: {configured} is not installed, so Keras runs on {installed[0]}. "
        f"{_VARIABLE}={installed[0]} leaves this line out."
    )

    @contextmanager
    def announced():
        print(line, file=sys.stderr, flush=True)
        yield

    around_import("keras", announced)


def around_import(module: str, context: Callable[[], AbstractContextManager]) -> None:
    """Makes a later import of a top-level module, by any code, run within a context.

    `context` returns the context manager; it is called when the import begins.
    """
    sys.meta_path = [_ContextFinder(module, context), *sys.meta_path]


class _ContextFinder:
    """Asks the later finders for one module, and loads it within the context."""

    def __init__(self, module, context):
        self.module, self.context = module, context

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.module:
            return None
        # None follow if another thread has imported the module and removed this finder.
        following = itertools.dropwhile(lambda finder: finder is not self, sys.meta_path)
        next(following, None)
        specs = (finder.find_spec(fullname, path, target) for finder in following)
        spec: Any = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = self._wrapped(spec.loader.exec_module)
        return spec

    def _wrapped(self, exec_module):
        def wrapped(module):
            with self.context():
                exec_module(module)
            # A new list: another thread may be iterating over the old one.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]

        return wrapped


def versions(*further: str) -> dict[str, str]:
    """The versions of Python, this package and the installed libraries that results depend on."""
    found = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    for name in ("keras-onlstm", "keras", "tensorflow", "jax", "torch", "numpy", *further):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
