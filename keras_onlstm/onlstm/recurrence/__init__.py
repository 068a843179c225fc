"""The loop over time: what it is given, what it returns, and which version of it runs.

- `reference`: the readable one, `step` in a loop. What is faster must equal it.
- `single`: the same without a loop, for one row of time.
- `fused`: the fast one, with gradients derived by hand; one file a backend, and what they share in
  `fused_step`, the equations, and `fused_groups`, the layout of the states.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from keras_onlstm.onlstm.recurrence import fused, reference, single
from keras_onlstm.onlstm.recurrence.problem import Problem, Recurrence

__all__ = ["Problem", "Recurrence", "readable", "refusal", "run", "substituted"]

refusal = fused.refusal

_substitute: ContextVar[Callable[[Problem], Recurrence] | None] = ContextVar(
    "recurrence", default=None
)


def run(problem: Problem, fuse: bool) -> Recurrence:
    """Runs the recurrence over a whole sequence: the one place that chooses how.

    Args:
        problem: `Problem`.
        fuse: whether the fused version is wanted, which `refusal` tells of who cannot have it.

    Returns:
        `Recurrence`.
    """
    substitute = _substitute.get()
    if substitute is not None:  # a model is exported, or compared with an exported one
        return substitute(problem)
    return fused.run(problem) if fuse else readable(problem)


def readable(problem: Problem) -> Recurrence:
    """`run` without the fused version: its loop, if any, runs wherever the backend does."""
    return (single if problem.inputs.shape[1] == 1 else reference).run(problem)


@contextmanager
def substituted(other: Callable[[Problem], Recurrence]) -> Iterator[None]:
    """A context in which every `ONLSTM` runs another recurrence, whichever it would have chosen.

    Args:
        other: function from `Problem` to `Recurrence`.
    """
    token = _substitute.set(other)
    try:
        yield
    finally:
        _substitute.reset(token)
