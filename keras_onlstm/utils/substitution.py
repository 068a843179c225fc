"""Temporary replacement of a function, for example while a model is exported."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["Substitution"]


class Substitution:
    """Holds the function that replaces another one, or `None`."""

    def __init__(self, name: str) -> None:
        self._function: ContextVar[Callable[..., Any] | None] = ContextVar(name, default=None)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The replacement, or `None`."""
        return self._function.get()

    @contextmanager
    def __call__(self, other: Callable[..., Any]) -> Iterator[None]:
        """A context in which another function replaces it."""
        token = self._function.set(other)
        try:
            yield
        finally:
            self._function.reset(token)
