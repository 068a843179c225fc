"""Dependency trees, and the paths and the order in which a top-down model generates their words."""

import dataclasses
import enum
import reprlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.utils.validation import check_integer, renamed_attribute, warn_renamed


class Edge(enum.IntEnum):
    """The edge by which a top-down model reaches a word. Its value is an index.

    `LEFT` and `RIGHT` lead from a head to its nearest dependent on that side, `NX_LEFT` and
    `NX_RIGHT` from a dependent to the next one, away from the head.
    """

    LEFT = 0
    RIGHT = 1
    NX_LEFT = 2
    NX_RIGHT = 3

    def __str__(self) -> str:
        return self.name.replace("_", "-")


class Step(NamedTuple):
    """The generation of the word at `position` from `source`, by an edge; 0 is ROOT.

    If the edge is `RIGHT`, `left` has the source's left dependents, the farthest first.
    """

    position: int
    source: int
    edge: Edge
    left: tuple[int, ...]

    @property
    def place(self) -> int:
        """Deprecated. Use `position`."""
        warn_renamed("Step.place", "position")
        return self.position


@dataclasses.dataclass(frozen=True, slots=True, init=False)
class DependencyTree:
    """A sentence in which one word depends on ROOT, all others on another word. Immutable.

    The attributes are the arguments, as tuples.

    Args:
        words: list of n strings, n at least 1.
        heads: n integers: the position of each word's head, counted from 1, or 0 for ROOT.
        tags: list of n strings, parts of speech, or `None`.
        relations: list of n strings, dependency relations, or `None`.

    Raises:
        ValueError: if it is not a tree with one word under ROOT; the message names a word.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> tree = DependencyTree("the cat sleeps".split(), [2, 3, 0])
    >>> tree.depth, tree.is_projective
    (3, True)
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    tags: tuple[str, ...] | None
    relations: tuple[str, ...] | None

    def __init__(
        self,
        words: Sequence[str],
        heads: Sequence[int],
        tags: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
    ) -> None:
        for name, values in (("words", words), ("tags", tags), ("relations", relations)):
            strings = None if values is None else _strings(name, values, len(words))
            object.__setattr__(self, name, strings)
        object.__setattr__(self, "heads", _heads(words, heads))

    def __len__(self) -> int:
        return len(self.words)

    def dependents(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The positions of the dependents on the left and on the right of ROOT and of every word.

        >>> DependencyTree("the cat sleeps".split(), [2, 3, 0]).dependents()
        [((), (3,)), ((), ()), ((1,), ()), ((2,), ())]
        """
        sides: list[tuple[list[int], list[int]]] = [([], []) for _ in range(len(self) + 1)]
        for position, head in enumerate(self.heads, 1):
            sides[head][position > head].append(position)
        return [(tuple(left), tuple(right)) for left, right in sides]

    def steps(self) -> list[Step]:
        """The steps in which a top-down model generates the words, in breadth-first order.

        The dependents on the left of a word come before those on its right, both nearest first. A
        tree that is not projective is a `ValueError`.

        Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", sections
        2.1 and 2.2, https://aclanthology.org/N16-1035.

        >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
        >>> [(step.position, step.source, str(step.edge)) for step in tree.steps()]
        [(3, 0, 'RIGHT'), (2, 3, 'LEFT'), (4, 3, 'RIGHT'), (1, 2, 'LEFT')]
        """
        crossing = _crossing(self.heads)
        if crossing:
            raise ValueError(
                f"{_named(self.words, crossing[0])}: words between it and its head do not descend "
                "from that head, so the tree is not projective. Call projectivize()."
            )
        dependents = self.dependents()
        order, steps = [0], []
        for head in order:  # grows during the loop
            left, right = dependents[head]
            sides = ((left[::-1], Edge.LEFT, ()), (right, Edge.RIGHT, left))
            for positions, edge, left_dependents in sides:
                source = head
                for position in positions:
                    steps.append(Step(position, source, edge, left_dependents))
                    source, edge, left_dependents = position, Edge(edge % 2 + 2), ()
                order += positions
        return steps

    def paths(self) -> list[tuple[tuple[int, Edge], ...]]:
        """The path from ROOT to every word of a projective tree, D(w) in the paper of `steps`.

        A path is a tuple of pairs, for each step its source, 0 for ROOT, and its `Edge`.

        >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
        >>> [[(source, str(edge)) for source, edge in path] for path in tree.paths()][:2]
        [[(0, 'RIGHT'), (3, 'LEFT'), (2, 'LEFT')], [(0, 'RIGHT'), (3, 'LEFT')]]
        """
        paths: list[tuple[tuple[int, Edge], ...]] = [()] * (len(self) + 1)
        for position, source, edge, _ in self.steps():
            paths[position] = (*paths[source], (source, edge))
        return paths[1:]

    @classmethod
    def from_paths(
        cls,
        words: Sequence[str],
        paths: Sequence[Sequence[tuple[int, int]]],
        tags: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
    ) -> "DependencyTree":
        """Builds the tree that has these `paths`; `ValueError` if there is none.

        >>> tree = DependencyTree("the cat sleeps".split(), [2, 3, 0])
        >>> DependencyTree.from_paths(tree.words, tree.paths()) == tree
        True
        """
        if len(paths) != len(words):
            raise ValueError(_wrong_length("paths", paths, len(words)))
        heads = [0] * (len(words) + 1)
        for position in sorted(range(1, len(words) + 1), key=lambda n: len(paths[n - 1])):
            source, edge = paths[position - 1][-1] if paths[position - 1] else (-1, Edge.LEFT)
            if not 0 <= source <= len(words):
                raise ValueError(f"{_named(words, position)}: its path must begin at ROOT.")
            heads[position] = heads[source] if edge >= Edge.NX_LEFT else source
        tree = cls(words, heads[1:], tags, relations)
        for position, (expected, path) in enumerate(zip(tree.paths(), paths, strict=True), 1):
            if expected != tuple(map(tuple, path)):
                raise ValueError(f"{_named(words, position)}: its path contradicts the others.")
        return tree

    @property
    def depth(self) -> int:
        """The number of words from ROOT down to the deepest one."""
        depths = [0] * (len(self) + 1)
        for position in _breadth_first(self.heads):
            depths[position] = depths[self.heads[position - 1]] + 1
        return max(depths)

    @property
    def is_projective(self) -> bool:
        """Whether all words between a word and its head are descendants of that head."""
        return not _crossing(self.heads)

    def projectivize(self) -> tuple["DependencyTree", int]:
        """Makes the tree projective: moves dependents to heads higher up.

        The shortest non-projective arc, the leftmost of equally short ones, is moved to the head of
        its head until there is none. Returns the tree and the number of moves.

        Source: Nivre and Nilsson 2005, "Pseudo-Projective Dependency Parsing",
        https://aclanthology.org/P05-1013.

        >>> tree = DependencyTree("who did you talk to".split(), [5, 4, 4, 0, 4])
        >>> tree.is_projective, tree.projectivize()[0].heads, tree.projectivize()[1]
        (False, (4, 4, 4, 0, 4), 1)
        """
        heads, lifts = [0, *self.heads], 0
        while crossing := _crossing(heads[1:]):
            position = min(crossing, key=lambda position: abs(position - heads[position]))
            heads[position] = heads[heads[position]]
            lifts += 1
        return dataclasses.replace(self, heads=tuple(heads[1:])) if lifts else self, lifts

    projectivized = renamed_attribute("projectivized", "projectivize")


def chain(words: Sequence[str]) -> DependencyTree:
    """The tree in which every word depends on the word before, as in a sequential model.

    >>> from keras_onlstm.dependencies import chain
    >>> chain("the cat sleeps".split()).heads
    (0, 1, 2)
    """
    return DependencyTree(words, range(len(words)))


def random_tree(words: Sequence[str], seed: int = 0) -> DependencyTree:
    """Draws a projective tree: the head of a span, and spans of its dependents on both sides.

    >>> from keras_onlstm.dependencies import random_tree
    >>> random_tree("the cat sleeps".split(), seed=1).is_projective
    True
    """
    generator = np.random.default_rng(check_integer("seed", seed, 0))
    heads = [0] * len(words)
    pending = [(0, len(words), 0)] if len(words) else []
    while pending:
        start, end, head = pending.pop()
        top = int(generator.integers(start, end))
        heads[top] = head
        for first, last in ((start, top), (top + 1, end)):
            while first < last:
                cut = int(generator.integers(first, last)) + 1
                pending.append((first, cut, top + 1))
                first = cut
    return DependencyTree(words, heads)


def _named(words, position):
    return f"word {position}, {reprlib.repr(words[position - 1])}"


def _wrong_length(name, values, count):
    return f"{name} must have {count} items, one for each word, got {len(values)}."


def _strings(name, values, count):
    if isinstance(values, str):
        raise ValueError(f"{name} must be a list of strings, got {reprlib.repr(values)}.")
    if len(values) != count:
        raise ValueError(_wrong_length(name, values, count))
    for value in values:
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} must be nonempty strings, got {reprlib.repr(value)}.")
    return tuple(values)


def _heads(words, heads):
    """The heads as integers, if they form a tree."""
    count = len(words)
    if len(heads) != count:
        raise ValueError(_wrong_length("heads", heads, count))
    for position, head in enumerate(heads, 1):
        if not isinstance(head, int | np.integer) or not 0 <= head <= count:
            raise ValueError(
                f"{_named(words, position)}: its head must be an integer from 0 to {count}, got "
                f"{reprlib.repr(head)}."
            )
    roots = [position for position, head in enumerate(heads, 1) if not head]
    if len(roots) != 1:
        names = " and ".join(_named(words, position) for position in roots[:2]) or "no word"
        names += f" and {len(roots) - 2} more" if len(roots) > 2 else ""
        raise ValueError(f"exactly one word must depend on ROOT, got {names}.")
    unreached = set(range(1, count + 1)).difference(_breadth_first(heads))
    if unreached:
        raise ValueError(
            f"{_named(words, min(unreached))}: its heads form a cycle, which does not lead to ROOT."
        )
    return tuple(map(int, heads))


def _breadth_first(heads: Sequence[int]) -> list[int]:
    """Positions, every word after its head, without words that ROOT does not reach."""
    dependents: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for position, head in enumerate(heads, 1):
        dependents[head].append(position)
    order = [0]
    for position in order:  # grows during the loop
        order += dependents[position]
    return order[1:]


def _crossing(heads: Sequence[int]) -> list[int]:
    """Positions, in order, of the words whose arc from the head is not projective."""
    head_of, order = (0, *heads), _breadth_first(heads)
    sizes = [1] * len(head_of)  # of the subtree below each word
    for position in reversed(order):
        sizes[head_of[position]] += sizes[position]
    # Number the words depth first. Then the descendants of a head have consecutive numbers.
    number, free = [0] * len(head_of), [1] * len(head_of)
    for position in order:
        head = head_of[position]
        number[position] = free[head]
        free[position] = number[position] + 1
        free[head] += sizes[position]
    crossing = []
    for position, head in enumerate(heads, 1):
        between = number[min(position, head) + 1 : max(position, head)]
        last = number[head] + sizes[head] - 1
        if between and not number[head] <= min(between) <= max(between) <= last:
            crossing.append(position)
    return crossing
