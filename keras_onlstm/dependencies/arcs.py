"""What drawings of a dependency tree share: the arcs, how high they are, and how far words stand.

An arc covers the gaps between its two words. It stands one level above all that it covers, so a
drawing is as high as arcs are nested, however long the sentence is.

The arc that leads to a word ends over its middle, those that go out begin at its sides, so that no
two arcs of a projective tree meet anywhere but at the word from which both begin.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree, Edge
from keras_onlstm.utils.arguments import one_of

__all__ = ["ARCS", "Arc", "Drawing", "Side", "columns", "drawing", "spread"]

ARCS = ("heads", "edges", "both")


class Arc(NamedTuple):
    """From the place of a word, from 1 on, to that of another one."""

    source: int
    target: int
    label: str
    edge: Edge | None  # of the path on which words are generated; `None`: from head to dependent
    level: int  # from 1 on

    @property
    def step(self) -> int:
        """The direction, 1 or -1."""
        return 1 if self.source < self.target else -1


class Side(NamedTuple):
    """The arcs above the words, or below them."""

    arcs: tuple[Arc, ...]
    root: Arc  # which comes straight down, through all others

    def outgoing(self, count: int) -> list[list[int]]:
        """Of n + 1 places, how high the arcs rise that go out to the left and to the right."""
        heights = [[0, 0] for _ in range(count + 1)]
        for arc in self.arcs:
            side = heights[arc.source]
            side[arc.step > 0] = max(side[arc.step > 0], arc.level)
        return heights


class Drawing(NamedTuple):
    """What is drawn, whatever the format."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]  # below the words: none, or as many
    above: Side
    below: Side | None
    title: str

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.above,) if self.below is None else (self.above, self.below)


def drawing(tree: DependencyTree, arcs: str, numbers: bool, title: str) -> Drawing:
    """Decides what is drawn, as `dependencies.draw` documents it."""
    one_of("arcs", arcs, ARCS)
    if not isinstance(tree, DependencyTree):
        raise ValueError(f"a DependencyTree is drawn, not {type(tree).__name__}.")
    steps = tree.steps() if numbers or arcs != "heads" else []
    labels = tree.relations or [""] * len(tree)
    heads = [(head, place, labels[place - 1], None) for place, head in enumerate(tree.heads, 1)]
    edges = [(step.source, step.place, str(step.edge), step.edge) for step in steps]
    order = {step.place: str(number) for number, step in enumerate(steps, 1)}
    return Drawing(
        tree.words,
        tuple(order[place] for place in range(1, len(tree) + 1)) if numbers else (),
        _side(edges if arcs == "edges" else heads, len(tree)),
        _side(edges, len(tree)) if arcs == "both" else None,
        title,
    )


def _side(arcs, count):
    """The levels, shorter arcs first: what an arc covers is shorter than it is."""
    heights = np.zeros(count + 1, "int64")  # over the gap after each word
    found = []
    for source, target, label, edge in sorted(arcs, key=lambda arc: (abs(arc[0] - arc[1]), arc[1])):
        if source:
            covered = heights[min(source, target) : max(source, target)]
            covered[:] = level = int(covered.max()) + 1
            found.append(Arc(source, target, label, edge, level))
    ((target, label, edge),) = [arc[1:] for arc in arcs if not arc[0]]
    return Side(tuple(found), Arc(0, target, label, edge, int(heights.max()) + 1))


def spread(
    drawn: Drawing,
    cells: Sequence[tuple[float, float]],
    room: Callable[[str], float],
    gap: float,
) -> list[float]:
    """Puts words as close to each other as what stands over them allows.

    Args:
        drawn: what is drawn.
        cells: how far each word reaches to the left and to the right of its middle.
        room: function from a label to the least distance between the middles of its two words.
        gap: between two words at the least.

    Returns:
        List of n middles; the first word begins at 0.
    """
    to_the_left: list[list[tuple[int, float]]] = [[] for _ in cells]
    for side in drawn.sides:
        for arc in side.arcs:
            if arc.label:
                low, high = sorted((arc.source, arc.target))
                to_the_left[high - 1].append((low - 1, room(arc.label)))
    middles: list[float] = []
    for place, (before, _) in enumerate(cells):
        least = [middles[other] + wide for other, wide in to_the_left[place]]
        start = middles[-1] + cells[place - 1][1] + gap if place else 0
        middles.append(max([start + before, *least]))
    return middles


def columns(text: str) -> int:
    """The columns that a terminal needs for a text.

    East Asian wide characters, emoji among them, take two; what is put onto other characters, and
    what nobody sees, takes none. Each character counts by itself, as most terminals have it.

    Args:
        text: without control characters.

    Returns:
        Integer.

    Source: Unicode Standard Annex 11, "East Asian Width", https://www.unicode.org/reports/tr11/.

    Example:

    >>> from keras_onlstm.dependencies.arcs import columns
    >>> columns("cat"), columns("\\N{CJK UNIFIED IDEOGRAPH-732B}"), columns("e\\u0301")
    (3, 2, 1)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character):
    if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\xad":
        return 0
    if "\u1160" <= character <= "\u11ff":  # second and third letters of a Korean syllable
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
