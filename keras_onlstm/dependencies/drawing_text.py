"""Dependency trees as text: arcs for a terminal, and code for tikz-dependency in LaTeX."""

import bisect
import re

from keras_onlstm.dependencies.arc_layout import Layout, display_width, word_centers
from keras_onlstm.drawing.svg import drawable

BLANK, HORIZONTAL, VERTICAL, CROSSING, TIP = " ─│┼▼"
CORNERS = {1: "┌", -1: "┐"}  # an arc begins here and runs to the right or the left
BRANCHES = {1: "├", -1: "┤"}  # the same, and another arc continues upwards
UPSIDE_DOWN = str.maketrans("┌┐└┘▼▲", "└┘┌┐▲▼")


def to_text(layout: Layout, width: int | None = None) -> str:
    """Formats a layout as lines, cut into pieces of at most `width` columns if possible."""
    words = [_without_blanks(word) for word in layout.words]
    numbers = layout.numbers or [""] * len(words)
    outgoing = [group.outgoing_levels(len(words)) for group in layout.groups]
    extents = []
    for position, texts in enumerate(zip(words, numbers, strict=True), 1):
        size = max(map(display_width, texts))
        left, right = (any(levels[position][side] for levels in outgoing) for side in (0, 1))
        extents.append((max(_left_half(size), left), max(size - 1 - _left_half(size), right)))
    # A blank between two words, and a piece of the arc on both sides of its label.
    positions = word_centers(layout, extents, lambda s: display_width(_without_blanks(s)) + 4, 2)
    centers = [int(x) for x in positions]
    lines = [*_arc_lines(layout.above, outgoing[0], centers), _line(words, centers)]
    lines += [_line(numbers, centers)] if layout.numbers else []
    if layout.below is not None:
        below = _arc_lines(layout.below, outgoing[1], centers)
        lines += [line.translate(UPSIDE_DOWN) for line in reversed(below)]
    if width is not None:
        gaps = [x - left - 1 for x, (left, _) in zip(centers, extents, strict=True)][1:]
        lines = _cut(lines, gaps, width)
    title = [drawable(layout.title)] if layout.title else []
    return "\n".join(line.rstrip() for line in (*title, *lines))


def _without_blanks(word):
    return re.sub(r"\s", "_", drawable(word))


def _left_half(width):
    return (width - 1) // 2  # columns to the left of the center


def _line(texts, centers):
    """A line of texts, each at its center."""
    line, end = [], 0
    for text, center in zip(texts, centers, strict=True):
        start = center - _left_half(display_width(text))
        line += [BLANK * (start - end), text]
        end = start + display_width(text)
    return "".join(line)


def _arc_lines(group, outgoing, centers):
    """The lines above the words, top line first."""
    # Vertical lines: their levels and columns.
    legs = [(arc.level, centers[arc.target - 1]) for arc in (*group.arcs, group.root)]
    for center, (left, right) in zip(centers, outgoing[1:], strict=True):
        legs += [(left, center - 1), (right, center + 1)]
    width = max(x for level, x in legs if level) + 1
    rows = [[BLANK] * width for _ in range(group.root.level)]  # level 0 has the tips
    for level, x in legs:
        for row in rows[:level]:
            row[x] = VERTICAL
    labels: list[list] = [[] for _ in rows]
    for arc in group.arcs:
        row, direction = rows[arc.level], arc.direction
        start, end = centers[arc.source - 1] + direction, centers[arc.target - 1]
        low, high = min(start, end) + 1, max(start, end)
        row[low:high] = [CROSSING if x == VERTICAL else HORIZONTAL for x in row[low:high]]
        continues = outgoing[arc.source][direction > 0] > arc.level
        row[start] = (BRANCHES if continues else CORNERS)[direction]
        row[end] = CORNERS[-direction]
        if arc.label:
            labels[arc.level].append((low, high, _without_blanks(arc.label)))
    for center in centers:
        rows[0][center] = TIP
    texts = ["ROOT", _without_blanks(group.root.label)] if group.root.label else ["ROOT"]
    root = centers[group.root.target - 1]
    lines = [BLANK * (root - _left_half(display_width(text))) + text for text in texts]
    return lines + [_with_labels("".join(row), labels.pop()) for row in reversed(rows)]


def _with_labels(row, labels):
    """Centers labels in the longest uncrossed piece of their arcs, if they fit there."""
    parts, end = [], 0
    for low, high, label in sorted(labels):
        width = display_width(label)
        pieces = [piece.span() for piece in re.finditer(f"[^{CROSSING}]+", row[low:high])]
        first, last = max(pieces, key=lambda piece: piece[1] - piece[0], default=(0, 0))
        if last - first < width:  # the label covers crossings of its arc
            first, last = 0, high - low
        start = low + first + (last - first - width) // 2
        parts += [row[end:start], label]
        end = start + width
    return "".join([*parts, row[end:]])


def _cut(lines, gaps, width):
    """Cuts a drawing into pieces, with an empty line between two of them.

    A piece ends at a gap between words: if possible, one in its second half that has no label.
    """
    rows = [_columns(line) for line in lines]
    end = max(map(len, rows))
    pieces: list[str] = []
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
                row[start] = HORIZONTAL
        piece = ["".join(row[start:cut]) for row in rows]
        pieces += [*([""] if pieces else []), *(line for line in piece if line.strip())]
        start = cut
    return pieces


def _columns(line):
    """Splits a line into columns. A wide character is followed by an empty column."""
    row: list[str] = []
    for character in line:
        width = display_width(character)
        if width or not row:
            row += [character, *[""] * (width - 1)]
        else:
            row[-1] += character
    return row


def _is_free(rows, gap):
    return all(row[gap : gap + 1] in ([], [BLANK], [HORIZONTAL]) for row in rows)


LEVEL = 4  # ex
_ESCAPES = {
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
_SPECIAL = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")
_LIGATURE = re.compile(r"(?<=[-`',!?<>])(?=[-`',<>])")  # TeX makes -- a dash


def to_latex(layout: Layout) -> str:
    """Formats a layout as code for a document that loads `tikz-dependency`."""
    lines = [f"% {drawable(layout.title)}"] if layout.title else []
    lines += [
        r"\begin{dependency}[hide label, label style={font=\scriptsize, draw=none, inner sep=1pt}]",
        r"  \begin{deptext}[column sep=1em]",
    ]
    rows = [layout.words, layout.numbers] if layout.numbers else [layout.words]
    lines += [f"    {row} \\\\" for row in (r" \& ".join(map(_escape, row)) for row in rows)]
    lines.append(r"  \end{deptext}")
    for group in layout.groups:
        below = ", edge below" if group is layout.below else ""
        # The arrow from ROOT is four times as high, above and below the words.
        height = f"edge unit distance={(group.root.level + 1) * LEVEL / 4:g}ex"
        label = _escape(f"ROOT {group.root.label}".rstrip())
        lines.append(f"  \\deproot[show label, {height}{below}]{{{group.root.target}}}{{{label}}}")
        for arc in sorted(group.arcs, key=lambda arc: arc.target):
            options = f"edge height={arc.level * LEVEL}ex{below}"
            options += ", show label" if arc.label else ""
            options += ", edge style={densely dashed}" if arc.is_dashed else ""
            ends = f"{{{arc.source}}}{{{arc.target}}}"
            lines.append(f"  \\depedge[{options}]{ends}{{{_escape(arc.label)}}}")
    lines.append(r"\end{dependency}")
    return "\n".join(lines)


def _escape(text):
    text = _LIGATURE.sub("\0", drawable(text))
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text).replace("\0", "{}")
