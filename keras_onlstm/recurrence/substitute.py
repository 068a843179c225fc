"""Another recurrence in the place of the layer's own, while a model is exported."""

from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["substitute", "substituted"]

_current = ContextVar("recurrence", default=None)


def substitute():
    """The recurrence that layers shall run, or `None`: the one they choose."""
    return _current.get()


@contextmanager
def substituted(run):
    """A context in which every `ONLSTM` runs `run`, called as `reference.run` is.

    Args:
        run: the function; it returns `reference.Recurrence`.
    """
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)
