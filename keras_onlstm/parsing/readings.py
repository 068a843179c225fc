"""Which distances of a model a tree is read off, and how. No Keras."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from keras_onlstm.utils.types import Sentence

__all__ = ["Measuring", "Reading", "chosen_gates", "usual_reading"]


def chosen_gates(gate: str | None, gates: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the distances that an argument `gate` asks for.

    Args:
        gate: one of the names, or `"both"` where there are two; `None`: the first one.
        gates: tuple of names, those of all distances that a model measures.

    Returns:
        Tuple of names.

    Raises:
        ValueError: if it is none of them.

    Example:

    >>> from keras_onlstm.parsing.readings import chosen_gates
    >>> chosen_gates("both", ("forget", "input"))
    ('forget', 'input')
    >>> chosen_gates("output", ("forget", "input"))
    Traceback (most recent call last):
    ...
    ValueError: gate is 'forget', 'input' or 'both', not 'output'.
    """
    if gate is None:
        return gates[:1]
    if gate == "both" and len(gates) == 2:
        return tuple(gates)
    if gate not in gates:
        names = [repr(name) for name in (*gates, "both")[: 3 if len(gates) == 2 else len(gates)]]
        wanted = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        raise ValueError(f"gate is {wanted}, not {gate!r}.")
    return (gate,)


class Reading(NamedTuple):
    """How trees are read off the distances of a model, unless one asks for another way.

    Attributes:
        layer: integer from 1 on, whose distances count; `None`: those of all layers.
        method: `"greedy"`, `"binary"` or `"votes"`.
    """

    layer: int | None
    method: str


def usual_reading(members: tuple[int, ...]) -> Reading:
    """`Reading` of models of ON-LSTM: of one the second layer, as in the paper, several vote.

    Args:
        members: tuple of how many layers each of them has.

    Returns:
        `Reading`.

    Example:

    >>> from keras_onlstm.parsing.readings import usual_reading
    >>> usual_reading((3,)), usual_reading((3, 3)).method
    (Reading(layer=2, method='greedy'), 'votes')
    """
    return Reading(min(2, members[0]), "greedy") if len(members) == 1 else Reading(None, "votes")


class Measuring(Protocol):
    """What `Parser` wants of a model: of Keras, or exported.

    Attributes:
        vocabulary: list of words, or `None`.
        gates: tuple of the names of its distances.
        members: tuple of how many rows of distances each of the models has that it is made of.
    """

    vocabulary: list[str] | None
    gates: tuple[str, ...]
    members: tuple[int, ...]

    @property
    def reading(self) -> Reading:
        """How trees are read unless one asks for another way."""
        ...

    def distances(self, sentences: Iterable[Sentence], gate: str | None = None) -> list[np.ndarray]:
        """Arrays (rows, words), one for each sentence."""
        ...
