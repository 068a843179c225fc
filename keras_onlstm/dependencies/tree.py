"""Dependency trees, and the paths and the order in which a top-down model generates their words."""

import dataclasses
import enum
import reprlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.utils.validation import check_integer

__all__ = ["DependencyTree", "Edge", "Step", "chain", "random_tree"]


_INTEGER = int | np.integer


class Edge(enum.IntEnum):
    """How a word is reached from its source: as the nearest dependent, or as the next one.

    `LEFT` and `RIGHT` lead from a head to its nearest dependent on that side, `NX_LEFT` and
    `NX_RIGHT` from a dependent to the next one, away from the head. The number is the index of
    the edge on axes of size 4.
    """

    LEFT = 0
    RIGHT = 1
    NX_LEFT = 2
    NX_RIGHT = 3

    def __str__(self) -> str:
        return self.name.replace("_", "-")


class Step(NamedTuple):
    """The generation of one word. Positions are counted from 1; 0 is ROOT.

    Attributes:
        place: integer, position of the word.
        source: integer, position of the word from which it is reached.
        edge: `Edge` from the source.
        left: tuple of the positions of the source's left dependents, all known by then, farthest
            first, if the edge is `RIGHT`, else empty.
    """

    place: int
    source: int
    edge: Edge
    left: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, init=False)
class DependencyTree:
    """A sentence in which one word depends on ROOT, all others on another word. Immutable.

    Args:
        words: list of n strings, n at least 1.
        heads: n integers: the position of each word's head, counted from 1, or 0 for ROOT.
        tags: list of n strings, parts of speech, or `None`.
        relations: list of n strings, dependency relations, or `None`.

    Attributes:
        words: tuple.
        heads: tuple.
        tags: tuple, or `None`.
        relations: tuple, or `None`.

    Raises:
        ValueError: if it is not a tree with one word under ROOT; the message names a word.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> tree = DependencyTree("the cat sleeps".split(), [2, 3, 0])
    >>> tree.depth, tree.is_projective
    (3, True)
    >>> DependencyTree("the cat sleeps".split(), [2, 1, 0])
    Traceback (most recent call last):
    ...
    ValueError: word 1, 'the': its heads do not lead up to ROOT.
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
        values = {"words": _strings("words", words, len(words)), "heads": _heads(words, heads)}
        for name, labels in (("tags", tags), ("relations", relations)):
            values[name] = None if labels is None else _strings(name, labels, len(words))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.words)

    def dependents(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The dependents of ROOT and of every word.

        Returns:
            List of n + 1 pairs, ROOT's first: positions of the dependents on the left and on the
            right, each in the order of the sentence.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> DependencyTree("the cat sleeps".split(), [2, 3, 0]).dependents()
        [((), (3,)), ((), ()), ((1,), ()), ((2,), ())]
        """
        sides: list[tuple[list[int], list[int]]] = [([], []) for _ in range(len(self) + 1)]
        for place, head in enumerate(self.heads, 1):
            sides[head][place > head].append(place)
        return [(tuple(left), tuple(right)) for left, right in sides]

    def steps(self) -> list[Step]:
        """Returns the steps in which a top-down model generates the words, level by level.

        The dependents on the left of a word come before those on its right, both nearest first.

        Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", sections
        2.1 and 2.2, https://aclanthology.org/N16-1035.

        Returns:
            List of n `Step`, in breadth-first order.

        Raises:
            ValueError: if the tree is not projective, because then the steps do not determine the
                order of the words.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
        >>> for step in tree.steps():
        ...     print(step.place, step.source, step.edge, step.left)
        3 0 RIGHT ()
        2 3 LEFT ()
        4 3 RIGHT (2,)
        1 2 LEFT ()
        """
        crossing = _crossing(self.heads)
        if crossing:
            raise ValueError(
                f"{_named(self.words, crossing[0])}: between it and its head stand words that do "
                "not depend on that head: the tree is not projective. projectivized() makes it so."
            )
        dependents = self.dependents()
        order, steps = [0], []
        for head in order:  # grows meanwhile
            left, right = dependents[head]
            sides = ((left[::-1], Edge.LEFT, ()), (right, Edge.RIGHT, left))
            for places, edge, before in sides:
                source = head
                for place in places:
                    steps.append(Step(place, source, edge, before))
                    source, edge, before = place, Edge(edge % 2 + 2), ()
                order += places
        return steps

    def paths(self) -> list[tuple[tuple[int, Edge], ...]]:
        """Returns the path from ROOT to every word, D(w) in the paper of `steps`.

        Returns:
            List of n tuples of pairs, for each step its source, 0 for ROOT, and its `Edge`.

        Raises:
            ValueError: if the tree is not projective.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
        >>> [[(place, str(edge)) for place, edge in path] for path in tree.paths()][:2]
        [[(0, 'RIGHT'), (3, 'LEFT'), (2, 'LEFT')], [(0, 'RIGHT'), (3, 'LEFT')]]
        """
        found: list[tuple[tuple[int, Edge], ...]] = [()] * (len(self) + 1)
        for place, source, edge, _ in self.steps():
            found[place] = (*found[source], (source, edge))
        return found[1:]

    @classmethod
    def from_paths(
        cls,
        words: Sequence[str],
        paths: Sequence[Sequence[tuple[int, int]]],
        tags: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
    ) -> "DependencyTree":
        """Builds the tree that has these paths: the inverse of `paths`.

        Args:
            words: list of n strings.
            paths: list of n paths, as `paths` returns them.
            tags: list of n strings, or `None`.
            relations: list of n strings, or `None`.

        Returns:
            `DependencyTree`, projective.

        Raises:
            ValueError: if no tree has these paths; the message names a word.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> tree = DependencyTree("the cat sleeps".split(), [2, 3, 0])
        >>> DependencyTree.from_paths(tree.words, tree.paths()) == tree
        True
        """
        if len(paths) != len(words):
            raise ValueError(f"{len(paths)} paths for {len(words)} words.")
        heads = [0] * (len(words) + 1)
        for place in sorted(range(1, len(words) + 1), key=lambda place: len(paths[place - 1])):
            source, edge = paths[place - 1][-1] if paths[place - 1] else (-1, Edge.LEFT)
            if not 0 <= source <= len(words):
                raise ValueError(f"{_named(words, place)}: its path does not begin at ROOT.")
            heads[place] = heads[source] if edge >= Edge.NX_LEFT else source
        tree = cls(words, heads[1:], tags, relations)
        for place, (found, path) in enumerate(zip(tree.paths(), paths, strict=True), 1):
            if found != tuple(map(tuple, path)):
                raise ValueError(f"{_named(words, place)}: no tree has its path and those before.")
        return tree

    @property
    def depth(self) -> int:
        """The number of words from ROOT down to the deepest one."""
        depths = [0] * (len(self) + 1)
        for place in _from_the_top(self.heads):
            depths[place] = depths[self.heads[place - 1]] + 1
        return max(depths)

    @property
    def is_projective(self) -> bool:
        """Whether all words between a word and its head are descendants of that head."""
        return not _crossing(self.heads)

    def projectivized(self) -> tuple["DependencyTree", int]:
        """Makes the tree projective: lifts arcs to heads higher up.

        While there are non-projective arcs, the shortest of them, the leftmost of equally short
        ones, is moved to the head of its head.

        Source: Nivre and Nilsson 2005, "Pseudo-Projective Dependency Parsing",
        https://aclanthology.org/P05-1013.

        Returns:
            `DependencyTree`, and how many times an arc was lifted: 0 if it is the same tree.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> tree = DependencyTree("who did you talk to".split(), [5, 4, 4, 0, 4])
        >>> tree.is_projective, tree.projectivized()[0].heads, tree.projectivized()[1]
        (False, (4, 4, 4, 0, 4), 1)
        """
        heads, lifts = [0, *self.heads], 0
        while crossing := _crossing(heads[1:]):
            place = min(crossing, key=lambda place: abs(place - heads[place]))
            heads[place] = heads[heads[place]]
            lifts += 1
        return dataclasses.replace(self, heads=tuple(heads[1:])) if lifts else self, lifts


def chain(words: Sequence[str]) -> DependencyTree:
    """The tree in which every word is the right dependent of the word before.

    Args:
        words: list of strings.

    Returns:
        `DependencyTree`. On it a top-down model works like a sequential one.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> chain("the cat sleeps".split()).heads
    (0, 1, 2)
    """
    return DependencyTree(words, range(len(words)))


def random_tree(words: Sequence[str], seed: int = 0) -> DependencyTree:
    """Draws a projective tree, independent of the words.

    The head of a span is drawn uniformly from its words. The words on either side of it are cut at
    random into spans, whose heads depend on it.

    Args:
        words: list of strings.
        seed: integer.

    Returns:
        `DependencyTree`.

    Example:

    >>> from keras_onlstm.dependencies import random_tree
    >>> random_tree("the cat sleeps".split(), seed=1).is_projective
    True
    """
    generator = np.random.default_rng(check_integer("seed", seed, 0))
    heads = [0] * len(words)
    pending = [(0, len(words), 0)]
    while pending:
        start, end, head = pending.pop()
        if start == end:
            continue
        top = int(generator.integers(start, end))
        heads[top] = head
        for first, last in ((start, top), (top + 1, end)):
            while first < last:
                cut = int(generator.integers(first, last)) + 1
                pending.append((first, cut, top + 1))
                first = cut
    return DependencyTree(words, heads)


def _named(words, place):
    return f"word {place}, {reprlib.repr(words[place - 1])}"


def _strings(name, values, count):
    if isinstance(values, str):
        raise ValueError(f"{name} must be a list of strings, not {reprlib.repr(values)}.")
    if len(values) != count:
        raise ValueError(f"{len(values)} {name} for {count} words.")
    for value in values:
        if not isinstance(value, str) or not value:
            raise ValueError(
                f"{name} must be strings that are not empty, not {reprlib.repr(value)}."
            )
    return tuple(values)


def _heads(words, heads):
    """The heads as integers, if they form a tree."""
    count = len(words)
    if len(heads) != count:
        raise ValueError(f"{len(heads)} heads for {count} words.")
    for place, head in enumerate(heads, 1):
        if not isinstance(head, _INTEGER) or not 0 <= head <= count:
            raise ValueError(
                f"{_named(words, place)}: its head must be an integer from 0 to {count}, not "
                f"{reprlib.repr(head)}."
            )
    tops = [place for place, head in enumerate(heads, 1) if not head]
    if len(tops) != 1:
        names = " and ".join(_named(words, place) for place in tops[:2]) or "no word"
        raise ValueError(f"{names}: exactly one word must depend on ROOT, not {len(tops)}.")
    missing = set(range(1, count + 1)).difference(_from_the_top(heads))
    if missing:
        raise ValueError(f"{_named(words, min(missing))}: its heads do not lead up to ROOT.")
    return tuple(map(int, heads))


def _from_the_top(heads: Sequence[int]) -> list[int]:
    """Positions, every word after its head, without words in a cycle."""
    below: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for place, head in enumerate(heads, 1):
        below[head].append(place)
    order = [0]
    for place in order:  # grows meanwhile
        order += below[place]
    return order[1:]


def _crossing(heads: Sequence[int]) -> list[int]:
    """Positions, in order, of the words whose arc from the head is not projective."""
    above, order = (0, *heads), _from_the_top(heads)
    sizes = [1] * len(above)
    for place in reversed(order):
        sizes[above[place]] += sizes[place]
    # Depth-first numbers, which are consecutive for the words below a head.
    number, free = [0] * len(above), [1] * len(above)
    for place in order:
        head = above[place]
        number[place] = free[head]
        free[place] = number[place] + 1
        free[head] += sizes[place]
    found = []
    for place, head in enumerate(heads, 1):
        between = number[min(place, head) + 1 : max(place, head)]
        last = number[head] + sizes[head] - 1
        if between and not number[head] <= min(between) <= max(between) <= last:
            found.append(place)
    return found
