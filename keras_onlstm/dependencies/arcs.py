"""Layout of drawings of dependency trees: levels of the arcs, positions of the words.

An arc covers the gaps between its two words. Its level is one above all arcs that it covers, so
the height of a drawing depends on the nesting of its arcs, not on the length of the sentence.

The incoming arc of a word ends over its middle, outgoing arcs begin at its sides. So two arcs of a
projective tree meet only at a word from which both begin.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree, Edge
from keras_onlstm.utils.validation import check_choice

__all__ = ["ARCS", "Arc", "Drawing", "Side", "columns", "drawing", "spread"]

ARCS = ("heads", "edges", "both")


class Arc(NamedTuple):
    """An arc between the positions of two words, which are counted from 1."""

    source: int
    target: int
    label: str
    edge: Edge | None  # of a generation path; `None`: from head to dependent
    level: int  # 1 is the lowest

    @property
    def step(self) -> int:
        """Direction: 1 to the right, -1 to the left."""
        return 1 if self.source < self.target else -1


class Side(NamedTuple):
    """The arcs above the words, or below them."""

    arcs: tuple[Arc, ...]
    root: Arc  # the vertical arrow from ROOT

    def outgoing(self, count: int) -> list[list[int]]:
        """Highest levels of the arcs that leave n + 1 positions to the left and the right."""
        heights = [[0, 0] for _ in range(count + 1)]
        for arc in self.arcs:
            side = heights[arc.source]
            side[arc.step > 0] = max(side[arc.step > 0], arc.level)
        return heights


class Drawing(NamedTuple):
    """The content of a drawing in any format."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]  # below the words: one each, or none
    above: Side
    below: Side | None
    title: str

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.above,) if self.below is None else (self.above, self.below)


def drawing(tree: DependencyTree, arcs: str, numbers: bool, title: str) -> Drawing:
    """Lays out a tree. `dependencies.draw` describes the arguments."""
    check_choice("arcs", arcs, ARCS)
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
    """Assigns levels to arcs, shorter ones first: an arc covers only shorter ones."""
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
    """Places words as close together as the texts and the labels of the arcs allow.

    Args:
        drawn: `Drawing`.
        cells: how far each word extends to the left and to the right of its middle.
        room: function from a label to the minimum distance of the middles of its two words.
        gap: minimum space between two words.

    Returns:
        List of positions of the n middles. The first word begins at 0.
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
    """Number of terminal columns that a text takes.

    East Asian wide characters, including emoji, take two; combining and invisible characters take
    none. Each character counts by itself, as in most terminals.

    Args:
        text: string without control characters.

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
