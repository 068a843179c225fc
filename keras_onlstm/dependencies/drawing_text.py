"""Dependency trees as text: arcs for a terminal, and code for tikz-dependency in LaTeX."""

import bisect
import re

from keras_onlstm.dependencies.arcs import Drawing, columns, spread
from keras_onlstm.drawing.svg import drawable

__all__ = [
    "latex_of",
    "text_of",
]

BLANK, ACROSS, UP, CROSSING, TIP = " ─│┼▼"
CORNERS = {1: "┌", -1: "┐"}  # an arc begins here and runs to the right or the left
BRANCHES = {1: "├", -1: "┤"}  # the same, and another arc continues upwards
UPSIDE_DOWN = str.maketrans("┌┐└┘▼▲", "└┘┌┐▲▼")


def text_of(drawn: Drawing, width: int | None = None) -> str:
    """Formats a drawing as lines, cut into pieces of at most `width` columns if possible."""
    words = [_one_word(word) for word in drawn.words]
    numbers = drawn.numbers or [""] * len(words)
    outgoing = [side.outgoing(len(words)) for side in drawn.sides]
    cells = []
    for place, pair in enumerate(zip(words, numbers, strict=True), 1):
        wide = max(map(columns, pair))
        left, right = (any(heights[place][side] for heights in outgoing) for side in (0, 1))
        cells.append((max(_before(wide), left), max(wide - 1 - _before(wide), right)))
    # A blank between two words, and a piece of the arc on both sides of its label.
    spaced = spread(drawn, cells, lambda label: columns(_one_word(label)) + 4, 2)
    middles = [int(x) for x in spaced]
    lines = [*_rows(drawn.above, outgoing[0], middles), _line(words, middles)]
    lines += [_line(numbers, middles)] if drawn.numbers else []
    if drawn.below is not None:
        below = _rows(drawn.below, outgoing[1], middles)
        lines += [row.translate(UPSIDE_DOWN) for row in reversed(below)]
    if width is not None:
        gaps = [x - before - 1 for x, (before, _) in zip(middles, cells, strict=True)][1:]
        lines = _pieces(lines, gaps, width)
    title = [drawable(drawn.title)] if drawn.title else []
    return "\n".join(line.rstrip() for line in (*title, *lines))


def _one_word(word):
    return re.sub(r"\s", "_", drawable(word))


def _before(width):
    """Number of columns to the left of the middle of a text."""
    return (width - 1) // 2


def _line(texts, middles):
    """A line of texts, each centred on its middle."""
    line, reached = [], 0
    for text, middle in zip(texts, middles, strict=True):
        start = middle - _before(columns(text))
        line += [BLANK * (start - reached), text]
        reached = start + columns(text)
    return "".join(line)


def _rows(side, outgoing, middles):
    """The lines above the words, top line first."""
    root = middles[side.root.target - 1]
    legs = [(arc.level, middles[arc.target - 1]) for arc in (*side.arcs, side.root)]
    for middle, (left, right) in zip(middles, outgoing[1:], strict=True):
        legs += [(left, middle - 1), (right, middle + 1)]
    width = max(at for top, at in legs if top) + 1
    rows = [[BLANK] * width for _ in range(side.root.level)]  # level 0 has the tips
    for top, at in legs:
        for row in rows[:top]:
            row[at] = UP
    labels: list[list] = [[] for _ in rows]
    for arc in side.arcs:
        row, go = rows[arc.level], arc.step
        start, end = middles[arc.source - 1] + go, middles[arc.target - 1]
        low, high = min(start, end) + 1, max(start, end)
        row[low:high] = [CROSSING if x == UP else ACROSS for x in row[low:high]]
        row[start] = (BRANCHES if outgoing[arc.source][go > 0] > arc.level else CORNERS)[go]
        row[end] = CORNERS[-go]
        if arc.label:
            labels[arc.level].append((low, high, _one_word(arc.label)))
    for arc in (*side.arcs, side.root):
        rows[0][middles[arc.target - 1]] = TIP
    above = ["ROOT", _one_word(side.root.label)] if side.root.label else ["ROOT"]
    lines = [BLANK * (root - _before(columns(text))) + text for text in above]
    return lines + [_with_labels("".join(row), labels.pop()) for row in reversed(rows)]


def _with_labels(row, labels):
    """Centres labels in the longest uncrossed piece of their arcs, if they fit there."""
    parts, reached = [], 0
    for low, high, label in sorted(labels):
        width = columns(label)
        pieces = [piece.span() for piece in re.finditer(f"[^{CROSSING}]+", row[low:high])]
        first, last = max(pieces, key=lambda piece: piece[1] - piece[0], default=(0, 0))
        if last - first < width:  # the label covers crossings of its arc
            first, last = 0, high - low
        at = low + first + (last - first - width) // 2
        parts += [row[reached:at], label]
        reached = at + width
    return "".join([*parts, row[reached:]])


def _pieces(lines, gaps, width):
    """Cuts a drawing into pieces, with an empty line between two of them.

    A piece ends at a gap between words: if possible, one in its second half that has no label.
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
            if row[start : start + 1] == [""]:  # the cut splits a wide character of a label
                row[start] = ACROSS
        piece = ["".join(row[start:cut]) for row in rows]
        found += [*([""] if found else []), *(line for line in piece if line.strip())]
        start = cut
    return found


def _characters(line):
    """Splits a line into columns. A wide character is followed by an empty column."""
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


LEVEL = 4  # ex
_WRITTEN = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "&": r"\symbol{38}",  # \& separates words
    '"': r"\symbol{34}",
    " ": r"\ ",
    "\N{REPLACEMENT CHARACTER}": r"\rule{1ex}{1ex}",  # not in fonts of LaTeX
    **{character: f"\\{character}" for character in "#$%_{}"},
}
_SPECIAL = re.compile("[" + re.escape("".join(_WRITTEN)) + "]")
_LIGATURE = re.compile(r"(?<=[-`',!?<>])(?=[-`',<>])")  # TeX makes -- a dash


def latex_of(drawn: Drawing) -> str:
    """Formats a drawing for a document that loads `tikz-dependency`."""
    lines = [f"% {drawable(drawn.title)}"] if drawn.title else []
    lines += [
        r"\begin{dependency}[hide label, label style={font=\scriptsize, draw=none, inner sep=1pt}]",
        r"  \begin{deptext}[column sep=1em]",
    ]
    rows = [drawn.words, drawn.numbers] if drawn.numbers else [drawn.words]
    lines += [f"    {row} \\\\" for row in (r" \& ".join(map(_written, row)) for row in rows)]
    lines.append(r"  \end{deptext}")
    for side in drawn.sides:
        below = ", edge below" if side is drawn.below else ""
        # The arrow from ROOT is four times as high, above and below the words.
        height = f"edge unit distance={(side.root.level + 1) * LEVEL / 4:g}ex"
        label = _written(f"ROOT {side.root.label}".rstrip())
        lines.append(f"  \\deproot[show label, {height}{below}]{{{side.root.target}}}{{{label}}}")
        for arc in sorted(side.arcs, key=lambda arc: arc.target):
            options = f"edge height={arc.level * LEVEL}ex{below}"
            options += ", show label" if arc.label else ""
            options += (
                ", edge style={densely dashed}" if arc.edge is not None and arc.edge > 1 else ""
            )
            ends = f"{{{arc.source}}}{{{arc.target}}}"
            lines.append(f"  \\depedge[{options}]{ends}{{{_written(arc.label)}}}")
    lines.append(r"\end{dependency}")
    return "\n".join(lines)


def _written(text):
    text = _LIGATURE.sub("\0", drawable(text))
    return _SPECIAL.sub(lambda found: _WRITTEN[found[0]], text).replace("\0", "{}")
