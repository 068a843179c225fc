"""Layout of drawings of dependency trees: levels of the arcs, positions of the words.

An arc covers the gaps between its two words. Its level is one above all arcs that it covers, so the
height of a drawing depends on the nesting of its arcs, not on the length of the sentence. The
incoming arc of a word ends over its middle, outgoing arcs begin at its sides. So two arcs of a
projective tree meet only at a word from which both begin.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree, Edge
from keras_onlstm.utils.validation import check_choice


class Arc(NamedTuple):
    """An arc between the positions of two words, which are counted from 1."""

    source: int
    target: int
    label: str
    edge: Edge | None  # of a generation path; `None`: from head to dependent
    level: int  # 1 is the lowest

    @property
    def direction(self) -> int:
        """1 to the right, -1 to the left."""
        return 1 if self.source < self.target else -1

    @property
    def is_dashed(self) -> bool:
        """Whether it leads from a dependent to the next one."""
        return self.edge in (Edge.NX_LEFT, Edge.NX_RIGHT)


class ArcGroup(NamedTuple):
    """The arcs above the words, or below them."""

    arcs: list[Arc]
    root: Arc  # the vertical arrow from ROOT

    def outgoing_levels(self, count: int) -> list[list[int]]:
        """Highest levels of the arcs that leave n + 1 positions to the left and the right."""
        levels = [[0, 0] for _ in range(count + 1)]
        for arc in self.arcs:
            sides = levels[arc.source]
            sides[arc.direction > 0] = max(sides[arc.direction > 0], arc.level)
        return levels


class Layout(NamedTuple):
    """The content of a drawing in any format."""

    words: tuple[str, ...]
    numbers: list[str]  # a number below each word, or empty
    above: ArcGroup
    below: ArcGroup | None
    title: str

    @property
    def groups(self) -> list[ArcGroup]:
        return [group for group in (self.above, self.below) if group]


def make_layout(tree: DependencyTree, arcs: str, numbers: bool, title: str) -> Layout:
    """Computes the layout of a tree. `dependencies.draw` describes the arguments."""
    check_choice("arcs", arcs, ("heads", "edges", "both"))
    if not isinstance(tree, DependencyTree):
        raise ValueError(f"tree must be a DependencyTree, got the type {type(tree).__name__}.")
    steps = tree.steps() if numbers or arcs != "heads" else []
    labels = tree.relations or [""] * len(tree)
    heads = [(head, i, labels[i - 1], None) for i, head in enumerate(tree.heads, 1)]
    edges = [(step.source, step.position, str(step.edge), step.edge) for step in steps]
    order = {step.position: str(number) for number, step in enumerate(steps, 1)}
    return Layout(
        tree.words,
        [order[position] for position in range(1, len(tree) + 1)] if numbers else [],
        _arc_group(edges if arcs == "edges" else heads, len(tree)),
        _arc_group(edges, len(tree)) if arcs == "both" else None,
        title,
    )


def _arc_group(arcs, count):
    """Assigns levels to arcs, shorter ones first: an arc covers only shorter ones."""
    heights = np.zeros(count + 1, "int64")  # over the gap after each word
    group = []
    for source, target, label, edge in sorted(arcs, key=lambda arc: (abs(arc[0] - arc[1]), arc[1])):
        if source:
            covered = heights[min(source, target) : max(source, target)]
            covered[:] = level = int(covered.max()) + 1
            group.append(Arc(source, target, label, edge, level))
    ((target, label, edge),) = [arc[1:] for arc in arcs if not arc[0]]
    return ArcGroup(group, Arc(0, target, label, edge, int(heights.max()) + 1))


def word_centers(
    layout: Layout,
    extents: Sequence[tuple[float, float]],
    min_distance: Callable[[str], float],
    gap: float,
) -> list[float]:
    """The centers of the words, as close together as texts and labels allow; they begin at 0.

    `extents` has how far each word extends to the left and right of its center, `min_distance` is a
    function from a label to the minimum distance of its two words.
    """
    distances: list[list[tuple[int, float]]] = [[] for _ in extents]  # to words on the left
    for arc in (arc for group in layout.groups for arc in group.arcs if arc.label):
        low, high = sorted((arc.source, arc.target))
        distances[high - 1].append((low - 1, min_distance(arc.label)))
    centers: list[float] = []
    start = 0.0
    for (left, right), minima in zip(extents, distances, strict=True):
        centers.append(max([start + left, *(centers[other] + least for other, least in minima)]))
        start = centers[-1] + right + gap
    return centers


def display_width(text: str) -> int:
    """Number of terminal columns that a text without control characters takes.

    Source: Unicode Standard Annex 11, "East Asian Width", https://www.unicode.org/reports/tr11/.
    Each character counts by itself, as in most terminals.
    """
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character):
    if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\xad":
        return 0
    if "\u1160" <= character <= "\u11ff":  # second and third letters of a Korean syllable
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
