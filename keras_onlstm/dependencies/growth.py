"""Growth of a dependency tree from ROOT: the decisions at every word, and their order.

There are four decisions: whether a word gets a dependent on its left (ADD-LEFT) and on its right
(ADD-RIGHT), and whether its head gets another dependent after it on the left (ADD-NX-LEFT) or the
right (ADD-NX-RIGHT). A decision is open if both outcomes are possible:

- ADD-LEFT and ADD-RIGHT of every word;
- ADD-NX-LEFT of words on the left of their head, ADD-NX-RIGHT of words on the right of it, except
  for the word that depends on ROOT, which is the only one;
- none of ROOT, which has this one dependent, by ADD-RIGHT.

So each tree corresponds to one sequence of open decisions. If each word and each open decision is
drawn from a distribution, the probabilities of all trees add up to 1, unless some grow forever.

Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 3.4,
https://aclanthology.org/N16-1035. There every decision is made at every node, open or not.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree, Edge
from keras_onlstm.utils.validation import check_integer

__all__ = ["ADDITIONS", "Additions", "Growth", "Sprout", "additions"]

ADDITIONS = tuple(f"ADD-{edge}" for edge in Edge)
_AT_ROOT = tuple(edge == Edge.RIGHT for edge in Edge)
_LEFT = (Edge.LEFT, Edge.NX_LEFT)


class Additions(NamedTuple):
    """The decisions at ROOT and at the n words of a tree; columns in the order of `Edge`.

    Attributes:
        made: (n + 1, 4) bool, the decisions, ROOT's row first.
        is_open: (n + 1, 4) bool, whether each decision is open.
    """

    made: np.ndarray
    is_open: np.ndarray


def _open(source, edge):
    """Which decisions are open at a word reached from `source`, 0 for ROOT, by `edge`."""
    left = edge in _LEFT
    return True, True, left, not left and source != 0


def additions(tree: DependencyTree) -> Additions:
    """Returns the decisions that generate a projective tree."""
    made, is_open = np.zeros((2, len(tree) + 1, len(Edge)), bool)
    for step in tree.steps():
        made[step.source, step.edge] = True
        is_open[step.place] = _open(step.source, step.edge)
    return Additions(made, is_open)


class Sprout(NamedTuple):
    """Where the next word is added to a tree. Words are numbered from 1 in order of addition.

    Attributes:
        source: number of the word that the edge starts from, 0 for ROOT.
        edge: `Edge` to the next word.
        left: tuple of the numbers of the source's left dependents, the farthest first, if the edge
            is `RIGHT`, else empty.
    """

    source: int
    edge: Edge
    left: tuple[int, ...]


class Growth:
    """A tree that grows word by word, breadth first, in the order of `DependencyTree.steps`.

    Args:
        max_words: positive integer. At this number of words the tree stops growing.

    Attributes:
        sprout: `Sprout`, where the next word is added, or `None` if the tree is complete.
        is_cut: whether the limit left out words that were to be added.

    Raises:
        ValueError: if `max_words` is not a positive integer.

    Example:

    >>> from keras_onlstm.dependencies.growth import Growth
    >>> growth = Growth(max_words=10)
    >>> for word, adds in [("sleeps", "11.."), ("cat", "1.0."), ("here", "00.0"), ("a", "000.")]:
    ...     print(growth.sprout.source, growth.sprout.edge)
    ...     growth.add([add == "1" for add in adds])
    0 RIGHT
    1 LEFT
    1 RIGHT
    2 LEFT
    >>> growth.sprout, growth.order(), growth.tree(["sleeps", "cat", "here", "a"]).heads
    (None, [4, 2, 1, 3], (2, 3, 0, 3))
    """

    def __init__(self, max_words: int) -> None:
        self.max_words = check_integer("max_words", max_words)
        self.is_cut = False
        self._adds = [_AT_ROOT]
        self._heads = [0]
        self._sides: list[tuple[list[int], list[int]]] = [([], [])]
        self._sprouts = self._growing()
        self.sprout = next(self._sprouts, None)

    def __len__(self) -> int:
        return len(self._adds) - 1

    def _growing(self) -> Iterator[Sprout]:
        order = [0]
        for head in order:  # grows meanwhile
            left, right = self._sides[head]
            for edge, places in ((Edge.LEFT, left), (Edge.RIGHT, right)):
                source, before = head, tuple(left[::-1]) if edge == Edge.RIGHT else ()
                while self._adds[source][edge]:
                    if len(self) == self.max_words:
                        self.is_cut = True
                        return
                    yield Sprout(source, edge, before)  # then `add` adds the word
                    source, edge, before = len(self), Edge(edge % 2 + 2), ()
                    places.append(source)
                order += places

    def is_open(self) -> tuple[bool, ...]:
        """Returns which of the four decisions are open at the next word."""
        if self.sprout is None:
            raise ValueError("the tree is complete.")
        return _open(self.sprout.source, self.sprout.edge)

    def add(self, decisions: Sequence[bool]) -> None:
        """Adds a word at `sprout`. Decisions that are not open are ignored."""
        if self.sprout is None:
            raise ValueError("the tree is complete.")
        source, edge, _ = self.sprout
        allowed = _open(source, edge)
        head = self._heads[source] if edge >= Edge.NX_LEFT else source
        self._adds.append(tuple(bool(d) and o for d, o in zip(decisions, allowed, strict=True)))
        self._heads.append(head)
        self._sides.append(([], []))
        self.sprout = next(self._sprouts, None)

    def order(self) -> list[int]:
        """The numbers of the words in the order of the sentence."""
        found, pending = [], [(0, False)]
        while pending:
            number, is_placed = pending.pop()
            if is_placed:
                found.append(number)
                continue
            left, right = self._sides[number]
            inside = [*left[::-1], number, *right]
            pending += [(other, other == number) for other in reversed(inside)]
        return found[1:]  # ROOT comes first

    def tree(self, words: Sequence[str]) -> DependencyTree:
        """The current tree, given the words in the order in which they were added."""
        order = self.order()
        places = {number: place for place, number in enumerate([0, *order])}
        heads = [places[self._heads[number]] for number in order]
        return DependencyTree([words[number - 1] for number in order], heads)
