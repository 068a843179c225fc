"""Dependency trees in characters, for a terminal: arcs over the words.

An arc goes up at a side of its head, where others may do so too, across, and down to the
middle of its dependent. So `┼` is always a crossing, which only trees that are not projective have.
"""

import bisect
import itertools
import re
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.arcs import Cell, Drawing, spread
from keras_onlstm.utils.columns import columns
from keras_onlstm.utils.svg import drawable

__all__ = ["text_of"]

ROOT = "ROOT"
BLANK, ACROSS, UP, CROSSING, TIP = " ─│┼▼"
CORNERS = {1: "┌", -1: "┐"}  # of an arc that begins here, and runs to the right or the left
BRANCHES = {1: "├", -1: "┤"}  # the same where another one goes on upwards
UPSIDE_DOWN = str.maketrans("┌┐└┘▼▲", "└┘┌┐▲▼")


def text_of(drawn: Drawing, width: int | None = None) -> str:
    """Draws it.

    Args:
        drawn: `Drawing`.
        width: columns of the terminal, or `None`, for as many as there are. What is wider comes in
            pieces, one below the other, cut between two words.

    Returns:
        String of many lines without blanks at their ends.
    """
    words = [_one_word(word) for word in drawn.words]
    numbers = drawn.numbers or [""] * len(words)
    outgoing = [side.outgoing(len(words)) for side in drawn.sides]
    cells = []
    for place, pair in enumerate(zip(words, numbers, strict=True), 1):
        wide = max(map(columns, pair))
        left, right = (any(heights[place][side] for heights in outgoing) for side in (0, 1))
        before = max(_before(wide), left)
        cells.append(Cell(before, max(wide - 1 - _before(wide), right)))
    # A blank between two words; around a label at least one piece of its arc on both sides.
    rooms = [
        (arc, columns(_one_word(arc.label)) + 4)
        for side in drawn.sides
        for arc in side.arcs
        if arc.label
    ]
    middles = [int(middle) for middle in spread(cells, rooms, 2)]
    above = _rows(drawn.above, outgoing[0], middles)
    lines = [*above, _line(words, middles)]
    lines += [_line(numbers, middles)] if drawn.numbers else []
    if drawn.below is not None:
        below = _rows(drawn.below, outgoing[1], middles)
        lines += [row.translate(UPSIDE_DOWN) for row in reversed(below)]
    if width is not None:
        gaps = [int(x - cell.before) - 1 for x, cell in zip(middles, cells, strict=True)][1:]
        lines = _pieces(lines, gaps, width)
    title = [drawable(drawn.title)] if drawn.title else []
    return "\n".join(line.rstrip() for line in (*title, *lines))


def _one_word(word):
    return re.sub(r"\s", "_", drawable(word))


def _before(width):
    """The columns of a text on the left of its middle."""
    return (width - 1) // 2


def _line(texts, middles):
    """Texts around their middles."""
    line, reached = [], 0
    for text, middle in zip(texts, middles, strict=True):
        start = middle - _before(columns(text))
        line += [BLANK * (start - reached), text]
        reached = start + columns(text)
    return "".join(line)


class _Legs(NamedTuple):
    """What stands upright, highest first."""

    tops: np.ndarray  # levels, in descending order
    at: np.ndarray  # columns


def _legs(side, outgoing, middles):
    found = [(side.height + 1, middles[side.root.target - 1])]
    found += [(arc.level, middles[arc.target - 1]) for arc in side.arcs]
    for place, heights in enumerate(outgoing[1:]):
        found += [
            (top, middles[place] + go) for top, go in zip(heights, (-1, 1), strict=True) if top
        ]
    found.sort(key=lambda leg: -leg[0])
    tops, at = np.array(found).T
    return _Legs(tops, at)


def _rows(side, outgoing, middles):
    """The lines above the words, from the top."""
    legs = _legs(side, outgoing, middles)
    width = int(legs.at.max()) + 1
    root = middles[side.root.target - 1]
    lines = [BLANK * (root - _before(columns(text))) + text for text in _named_root(side)]
    by_level: list[list] = [[] for _ in range(side.height + 1)]
    for arc in side.arcs:
        by_level[arc.level].append(arc)
    for level in range(side.height, -1, -1):
        upright = legs.at[: int(np.searchsorted(-legs.tops, -level))]  # those with a higher top
        row = np.full(width, BLANK)
        row[upright] = UP
        labels = []
        for arc in by_level[level]:
            go = arc.step
            start, end = middles[arc.source - 1] + go, middles[arc.target - 1]
            inner = row[min(start, end) + 1 : max(start, end)]
            inner[:] = np.where(inner == UP, CROSSING, ACROSS)
            rises = outgoing[arc.source][go > 0] > level
            row[start] = BRANCHES[go] if rises else CORNERS[go]
            row[end] = CORNERS[-go]
            if arc.label:
                labels.append((min(start, end) + 1, inner, _one_word(arc.label)))
        if not level:
            row[[middles[arc.target - 1] for arc in (*side.arcs, side.root)]] = TIP
        lines.append(_with_labels(row, labels))
    return lines


def _named_root(side):
    """ROOT, and the name of its arc."""
    return [ROOT, _one_word(side.root.label)] if side.root.label else [ROOT]


def _with_labels(row, labels):
    """A line with labels in the middle of the longest pieces of their arcs, if these are enough."""
    drawn = str(row.view(f"U{len(row)}")[0])  # at once: a row of many words is long
    parts, reached = [], 0
    for start, inner, label in sorted(labels, key=lambda label: label[0]):
        width = columns(label)
        cuts = [-1, *np.flatnonzero(inner == CROSSING).tolist(), len(inner)]
        pieces = [(high - low - 1, low + 1) for low, high in itertools.pairwise(cuts)]
        length, first = max(pieces, key=lambda piece: piece[0])
        if length < width:  # what crosses the arc passes behind its label
            length, first = len(inner), 0
        at = start + first + (length - width) // 2
        parts += [drawn[reached:at], label]
        reached = at + width
    return "".join([*parts, drawn[reached:]])


def _pieces(lines, gaps, width):
    """The lines of the pieces of a drawing, with an empty one between two pieces.

    A piece ends at a gap between words, one where no label stands if there is such a one in its
    second half.
    """
    rows = [_characters(line) for line in lines]
    end = max(map(len, rows))
    found: list[str] = []
    start = 0
    while start < end:
        rest = gaps[bisect.bisect(gaps, start) :]
        within = rest[: bisect.bisect(rest, start + width - 1)]
        cut = end
        if end - start > width and rest:
            good = [gap for gap in within if gap >= start + width // 2 and _is_free(rows, gap)]
            cut = (good[-1:] or within[-1:] or rest[:1])[0] + 1
        for row in rows:
            if row[start : start + 1] == [""]:  # half of a character of a label
                row[start] = ACROSS
        piece = ["".join(row[start:cut]) for row in rows]
        found += [*([""] if found else []), *(line for line in piece if line.strip())]
        start = cut
    return found


def _characters(line):
    """A line as columns: after a wide character an empty one, others join the one before."""
    if columns(line) == len(line):
        return list(line)
    row: list[str] = []
    for character in line:
        wide = columns(character)
        if wide or not row:
            row += [character, *[""] * (wide - 1)]
        else:
            row[-1] += character
    return row


def _is_free(rows, gap):
    return all(row[gap : gap + 1] in ([], [BLANK], [ACROSS]) for row in rows)
