"""Dependency trees, and the paths and the order in which a top-down model generates their words."""

import enum
import heapq
import operator
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.utils.arguments import integer

__all__ = ["DependencyTree", "Edge", "Step", "chain", "random_tree"]


class Edge(enum.IntEnum):
    """How a word follows from its source: as its nearest dependent, or as the next one.

    `LEFT` and `RIGHT` lead from a head to its nearest dependent on that side, `NX_LEFT` and
    `NX_RIGHT` from a dependent to the next one, away from the head. The number is the place of
    the edge wherever four things stand in a row.
    """

    LEFT = 0
    RIGHT = 1
    NX_LEFT = 2
    NX_RIGHT = 3

    def __str__(self) -> str:
        return self.name.replace("_", "-")


class Step(NamedTuple):
    """How a word of a tree is generated. Places are counted from 1, 0 is ROOT.

    Attributes:
        place: integer, of the word.
        source: integer, of the word from which it follows.
        edge: `Edge` from there.
        left: tuple of the places of the source's left dependents, the farthest first, where the
            edge is `RIGHT`, else empty: they are all known then.
    """

    place: int
    source: int
    edge: Edge
    left: tuple[int, ...]


class DependencyTree:
    """A sentence in which every word depends on another one, and one on ROOT. Immutable.

    Args:
        words: list of n strings, n at least 1.
        heads: n integers: the place of the word, from 1 on, that each word depends on, or 0, ROOT.
        tags: list of n strings, parts of speech, or `None`.
        relations: list of n strings, names of the dependencies, or `None`.

    Attributes:
        words: tuple.
        heads: tuple.
        tags: tuple, or `None`.
        relations: tuple, or `None`.

    Raises:
        ValueError: if it is no tree with one word under ROOT; the message names a word.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> tree = DependencyTree("the cat sleeps".split(), [2, 3, 0])
    >>> tree.depth, tree.is_projective
    (3, True)
    >>> DependencyTree("the cat sleeps".split(), [2, 1, 0])
    Traceback (most recent call last):
    ...
    ValueError: word 1, 'the': depends on itself, by way of the words above it.
    """

    __slots__ = ("heads", "relations", "tags", "words")
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
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("words", _strings("words", words, len(words)))
        if not self.words:
            raise ValueError("words: a tree has one word at the least.")
        put("heads", _heads(self.words, heads))
        put("tags", None if tags is None else _strings("tags", tags, len(words)))
        relations = relations if relations is None else _strings("relations", relations, len(words))
        put("relations", relations)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a DependencyTree does not change: {name} is set when it is made.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a DependencyTree does not change: {name} stays.")

    def __reduce__(self) -> tuple[Any, ...]:
        return DependencyTree, (self.words, self.heads, self.tags, self.relations)

    def _key(self):
        return self.words, self.heads, self.tags, self.relations

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DependencyTree) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        optional = ("tags", "relations")
        given = [
            f", {name}={list(getattr(self, name))}" for name in optional if getattr(self, name)
        ]
        return f"DependencyTree({list(self.words)}, {list(self.heads)}{''.join(given)})"

    def dependents(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The dependents of ROOT and of every word.

        Returns:
            List of n + 1 pairs, ROOT's first: the places of the dependents on the left and on the
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
        """How a top-down model generates the words: level by level.

        The dependents of a word follow one another, those on the left, nearest first, before those
        on the right.

        Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", sections
        2.1 and 2.2, https://aclanthology.org/N16-1035.

        Returns:
            List of n `Step`, in breadth-first order.

        Raises:
            ValueError: if the tree is not projective, since then the steps do not tell in which
                order the words stand.

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
        self._check_projective()
        dependents = self.dependents()
        order, steps = [0], []
        for head in order:  # which grows
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
        """How every word is reached from ROOT: D(w) of the paper that `steps` names.

        Returns:
            List of n tuples of pairs, of each step on the way its source, 0 for ROOT, and `Edge`.

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
        """The tree that has these paths, the inverse of `paths`.

        Args:
            words: list of n strings.
            paths: list of n paths, as `paths` returns them.
            tags: as of the tree.
            relations: as of the tree.

        Returns:
            `DependencyTree`, projective.

        Raises:
            ValueError: if no tree has them; the message names a word.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> tree = DependencyTree("the cat sleeps".split(), [2, 3, 0])
        >>> DependencyTree.from_paths(tree.words, tree.paths()) == tree
        True
        """
        if len(paths) != len(words):
            raise ValueError(f"{len(paths)} paths for {len(words)} words.")
        heads = [0] * (len(words) + 1)
        known = [True, *[False] * len(words)]
        for place in sorted(range(1, len(words) + 1), key=lambda place: len(paths[place - 1])):
            source, edge = paths[place - 1][-1] if paths[place - 1] else (-1, Edge.LEFT)
            if not 0 <= source <= len(words) or not known[source]:
                raise ValueError(f"{_named(words, place)}: its path does not begin at ROOT.")
            heads[place] = heads[source] if edge >= Edge.NX_LEFT else source
            known[place] = True
        tree = cls(words, heads[1:], tags, relations)
        for place, (found, path) in enumerate(zip(tree.paths(), paths, strict=True), 1):
            if found != path and found != tuple(map(tuple, path)):
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
        """Whether the words between a word and its head all depend on that head in the end."""
        return not len(_crossing(self.heads))

    def _check_projective(self):
        crossing = _crossing(self.heads)
        if len(crossing):
            raise ValueError(
                f"{_named(self.words, crossing[0])}: between it and its head stand words that do "
                "not depend on that head: the tree is not projective. projectivized() makes it so."
            )

    def projectivized(self) -> tuple["DependencyTree", int]:
        """A projective tree: what stands in the way hangs on a word higher up.

        While there is an arc across a word that does not depend on its head, the shortest of them,
        of equals the leftmost, goes to the head of its head.

        Source: Nivre and Nilsson 2005, "Pseudo-Projective Dependency Parsing",
        https://aclanthology.org/P05-1013.

        Returns:
            `DependencyTree`, and how many times an arc was lifted: 0 where it is the same tree.

        Example:

        >>> from keras_onlstm.dependencies import DependencyTree
        >>> tree = DependencyTree("who did you talk to".split(), [5, 4, 4, 0, 4])
        >>> tree.is_projective, tree.projectivized()[0].heads, tree.projectivized()[1]
        (False, (4, 4, 4, 0, 4), 1)
        """
        heads, lifts = _lifted(self.heads, _crossing(self.heads).tolist())
        if not lifts:
            return self, 0
        return DependencyTree(self.words, heads, self.tags, self.relations), lifts


def chain(words: Sequence[str]) -> DependencyTree:
    """The tree in which every word is the right dependent of the word before.

    Args:
        words: list of strings.

    Returns:
        `DependencyTree`. A top-down model reads it as a sequential one does the words.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> chain("the cat sleeps".split()).heads
    (0, 1, 2)
    """
    return DependencyTree(words, range(len(words)))


def random_tree(words: Sequence[str], seed: int = 0) -> DependencyTree:
    """A projective tree that has nothing to do with the words.

    Of the words of a span any one is its head, as likely as the others; the words on either side
    are cut into spans at random, each of which depends on it.

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
    generator = np.random.default_rng(integer("seed", seed, 0))
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
        raise ValueError(f"{name} is a list of strings, not {reprlib.repr(values)}.")
    if len(values) != count:
        raise ValueError(f"{len(values)} {name} for {count} words.")
    for place, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise ValueError(
                f"{name}[{place}] is a string that is not empty, not {reprlib.repr(value)}."
            )
    return tuple(values)


def _heads(words, heads):
    """The heads as integers, if they make a tree."""
    if len(heads) != len(words):
        raise ValueError(f"{len(heads)} heads for {len(words)} words.")
    found, top = [], None
    for place, head in enumerate(heads, 1):
        number = operator.index(head) if hasattr(head, "__index__") else -1
        if isinstance(head, bool) or not 0 <= number <= len(words):
            raise ValueError(
                f"{_named(words, place)}: its head is an integer from 0 to {len(words)}, not "
                f"{reprlib.repr(head)}."
            )
        if number == place:
            raise ValueError(f"{_named(words, place)}: is its own head.")
        if not number and top:
            raise ValueError(f"{_named(words, place)}: depends on ROOT, as word {top} does.")
        top = top if number else place
        found.append(number)
    if not top:
        raise ValueError(f"{_named(words, 1)}, and no other: depends on ROOT; one has to.")
    reached = {0, *_from_the_top(found)}
    place = next((place for place in range(1, len(words) + 1) if place not in reached), 0)
    while place not in reached:  # up, until a word comes again: that is in the circle
        reached.add(place)
        place = found[place - 1]
        if place in reached:
            raise ValueError(
                f"{_named(words, place)}: depends on itself, by way of the words above it."
            )
    return tuple(found)


def _from_the_top(heads: Sequence[int]) -> Iterator[int]:
    """Places, every word after its head. Those in a circle are left out."""
    below: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for place, head in enumerate(heads, 1):
        below[head].append(place)
    order = [0]
    for place in order:  # which grows
        order += below[place]
    return iter(order[1:])


def _crossing(heads):
    """The places, in order, of the words whose arc stands over one that is not below its head."""
    count = len(heads)
    above, places = np.array([0, *heads]), np.arange(count + 1)
    order = np.fromiter(_from_the_top(heads), "int64", count)
    sizes = np.ones(count + 1, "int64")
    for place in order[::-1].tolist():
        sizes[above[place]] += sizes[place]
    # Words below a head have numbers in a row, counted depth first.
    first = np.zeros(count + 1, "int64")
    free = first + 1
    for place in order.tolist():
        head = above[place]
        first[place] = free[head]
        free[place] = first[place] + 1
        free[head] += sizes[place]
    low, high = np.minimum(places, above) + 1, np.maximum(places, above)  # between: low to high - 1
    lowest, highest = first, first
    least, most = first[above], first[above] + sizes[above] - 1
    inside = np.ones(count + 1, bool)
    width = 1
    # Minima and maxima over stretches of 1, 2, 4, ... words; two of them cover any stretch.
    while width <= count:
        rows = np.flatnonzero((high - low >= width) & (high - low < 2 * width))
        for start in (low[rows], high[rows] - width):
            inside[rows] &= (lowest[start] >= least[rows]) & (highest[start] <= most[rows])
        lowest = np.minimum(lowest[:-width], lowest[width:])
        highest = np.maximum(highest[:-width], highest[width:])
        width *= 2
    inside[0] = True
    return np.flatnonzero(~inside)


def _lifted(heads, crossing):
    """Heads after the lifts of `projectivized`, and how many there were.

    A lift takes a word, and all below it, from below its head, and from below no other word. So an
    arc that stands over a word which is not below its head does so until it is lifted itself; and
    new ones are only among those of the words that hang on that head.
    """
    above = [0, *heads]
    below: list[set[int]] = [set() for _ in above]
    for place, head in enumerate(heads, 1):
        below[head].add(place)
    waiting = set(crossing)
    heap = [(abs(place - above[place]), place) for place in crossing]
    heapq.heapify(heap)
    stretches: dict[int, tuple[int, int]] = {}  # around a head, of words that are all below it

    def all_below(head):
        found, unread = [], [head]
        while unread:
            place = unread.pop()
            found.append(place)
            unread += below[place]
        return found

    def crosses(place):
        head = above[place]
        if not head:
            return False
        if head not in stretches:
            found = set(all_below(head))
            first = last = head
            while first - 1 in found:
                first -= 1
            while last + 1 in found:
                last += 1
            stretches[head] = first, last
        first, last = stretches[head]
        return not first <= place <= last

    lifts = 0
    while heap:
        _, place = heapq.heappop(heap)
        waiting.discard(place)
        head = above[place]
        lost = all_below(place)
        nearest = max((word for word in lost if word < head), default=0)
        following = min((word for word in lost if word > head), default=len(above))
        if head in stretches:
            first, last = stretches[head]
            stretches[head] = max(first, nearest + 1), min(last, following - 1)
        below[head].discard(place)
        above[place] = above[head]
        below[above[head]].add(place)
        lifts += 1
        changed = {word for word in below[head] if not nearest < word < following}
        for word in (*(changed - waiting), *([place] if crosses(place) else ())):
            waiting.add(word)
            heapq.heappush(heap, (abs(word - above[word]), word))
    return above[1:], lifts
