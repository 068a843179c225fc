"""Builds dependency trees from ROOT down: the decisions at every word, and their order.

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

from keras_onlstm.dependencies.tree import DependencyTree, Edge, Step
from keras_onlstm.utils.validation import check_integer

ADDITIONS = tuple(f"ADD-{edge}" for edge in Edge)


class Additions(NamedTuple):
    """The decisions at ROOT and at the n words of a tree; columns in the order of `Edge`."""

    labels: np.ndarray  # (n + 1, 4) bool, the decisions, ROOT's row first
    is_open: np.ndarray  # (n + 1, 4) bool, whether each decision is open


def open_decisions(source: int, edge: Edge) -> tuple[bool, bool, bool, bool]:
    """Which decisions are open at a word reached from `source`, 0 for ROOT, by `edge`."""
    left = edge in (Edge.LEFT, Edge.NX_LEFT)
    return True, True, left, not left and source != 0


def additions(tree: DependencyTree) -> Additions:
    """Returns the decisions that generate a projective tree."""
    labels, is_open = np.zeros((2, len(tree) + 1, len(Edge)), bool)
    for step in tree.steps():
        labels[step.source, step.edge] = True
        is_open[step.position] = open_decisions(step.source, step.edge)
    return Additions(labels, is_open)


class TreeBuilder:
    """Builds a tree word by word, breadth first, in the order of `DependencyTree.steps`.

    `next_step` is the `Step` that adds the next word, numbered from 1 in the order of adding, or
    `None` if the tree is complete, at `max_words` or before. `is_cut` tells whether that limit left
    out words.

    >>> from keras_onlstm.dependencies.tree_builder import TreeBuilder
    >>> builder = TreeBuilder(max_words=10)
    >>> for word, adds in [("sleeps", "11.."), ("cat", "1.0."), ("here", "00.0"), ("a", "000.")]:
    ...     print(builder.next_step.source, builder.next_step.edge)
    ...     builder.add([add == "1" for add in adds])
    0 RIGHT
    1 LEFT
    1 RIGHT
    2 LEFT
    >>> builder.next_step, builder.order(), builder.tree(["sleeps", "cat", "here", "a"]).heads
    (None, [4, 2, 1, 3], (2, 3, 0, 3))
    """

    def __init__(self, max_words: int) -> None:
        self.max_words = check_integer("max_words", max_words)
        self.is_cut = False
        self._adds = [tuple(edge == Edge.RIGHT for edge in Edge)]  # of ROOT
        self._heads = [0]
        self._dependents: list[tuple[list[int], list[int]]] = [([], [])]
        self._steps = self._generate_steps()
        self.next_step = next(self._steps, None)

    def __len__(self) -> int:
        return len(self._adds) - 1

    def _generate_steps(self) -> Iterator[Step]:
        order = [0]
        for head in order:  # grows during the loop
            left, right = self._dependents[head]
            for edge, numbers in ((Edge.LEFT, left), (Edge.RIGHT, right)):
                source, before = head, tuple(left[::-1]) if edge == Edge.RIGHT else ()
                while self._adds[source][edge]:
                    if len(self) == self.max_words:
                        self.is_cut = True
                        return
                    yield Step(len(self) + 1, source, edge, before)  # then `add` adds the word
                    source, edge, before = len(self), Edge(edge % 2 + 2), ()
                    numbers.append(source)
                order += numbers

    def add(self, decisions: Sequence[bool]) -> None:
        """Adds the next word. Decisions that are not open are ignored."""
        if self.next_step is None:
            raise ValueError("the tree is complete.")
        _, source, edge, _ = self.next_step
        is_open = open_decisions(source, edge)
        self._adds.append(tuple(bool(d) and o for d, o in zip(decisions, is_open, strict=True)))
        self._heads.append(self._heads[source] if edge >= Edge.NX_LEFT else source)
        self._dependents.append(([], []))
        self.next_step = next(self._steps, None)

    def order(self) -> list[int]:
        """The numbers of the words in the order of the sentence."""
        order, pending = [], [(0, False)]
        while pending:
            number, is_expanded = pending.pop()
            if is_expanded:
                order.append(number)
                continue
            left, right = self._dependents[number]
            numbers = [*left[::-1], number, *right]
            pending += [(other, other == number) for other in reversed(numbers)]
        return order[1:]  # ROOT comes first

    def tree(self, words: Sequence[str]) -> DependencyTree:
        """The current tree, given the words in the order in which they were added."""
        order = self.order()
        positions = {number: position for position, number in enumerate([0, *order])}
        heads = [positions[self._heads[number]] for number in order]
        return DependencyTree([words[number - 1] for number in order], heads)
