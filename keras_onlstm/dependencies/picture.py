"""Dependency trees as SVG."""

from html import escape

from keras_onlstm.dependencies.arcs import Drawing, Side, columns, spread
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.utils.svg import CHARACTER, FONT, MARGIN, drawable, svg_page, svg_text

__all__ = ["svg_of"]

SMALL, LABEL = 10, 6.2  # pixels: font size of labels and numbers, its widest usual character
GAP, LEVEL, PORT = 14, 24, 5  # between words or levels, from a middle to outgoing arcs
TALLEST = 430  # height of one side; levels are lower if many arcs are nested
TIP, ROUND = 7, 8  # of arrow tips, of corners
GREY, BLUE, RED = "#444444", "#1b6ca8", "#b23a48"
COLOURS = {None: GREY, Edge.LEFT: BLUE, Edge.NX_LEFT: BLUE, Edge.RIGHT: RED, Edge.NX_RIGHT: RED}


def _wide(text, character=CHARACTER):
    return columns(drawable(text)) * character


def _level(side):
    return min(LEVEL, TALLEST / side.root.level)


def _tall(side: Side) -> float:
    """Height of the arcs of a side, including the arrow from ROOT."""
    return side.root.level * _level(side) + (SMALL if side.root.label else 0)


def svg_of(drawn: Drawing) -> str:
    """Formats a drawing as SVG, with a description, and titles of arcs that browsers show."""
    numbers = drawn.numbers or [""] * len(drawn.words)
    half = [
        max(_wide(word), _wide(number, LABEL), 2 * PORT) / 2
        for word, number in zip(drawn.words, numbers, strict=True)
    ]
    beside = max(_wide(f"ROOT{side.root.label}") / 2 for side in drawn.sides)
    start = MARGIN + max(0, beside - half[0])  # room for the label of ROOT
    spaced = spread(
        drawn, [(x, x) for x in half], lambda label: _wide(label, LABEL) + 10 + PORT, GAP
    )
    middles = [start + x for x in spaced]
    top = MARGIN + (FONT + MARGIN if drawn.title else 0)
    bottom = top + FONT + _tall(drawn.above)  # where the arcs above end
    base = bottom + 3 + FONT  # baseline of the words
    end = base + 6
    texts = []
    if drawn.title:
        texts.append(svg_text(MARGIN, MARGIN + FONT, drawn.title, weight="bold", anchor="start"))
    texts += [svg_text(x, base, word) for x, word in zip(middles, drawn.words, strict=True)]
    if drawn.numbers:
        y = end + SMALL
        texts += [svg_text(x, y, n, size=SMALL) for x, n in zip(middles, numbers, strict=True)]
        end = y + 6
    lines, labels = _side(drawn.above, middles, bottom, 1)
    texts += labels
    if drawn.below is not None:
        more, labels = _side(drawn.below, middles, end, -1)
        lines, texts = lines + more, texts + labels
        end += _tall(drawn.below) + FONT
    width = max(middles[-1] + max(half[-1], beside) + MARGIN, _wide(drawn.title) + 2 * MARGIN)
    said = [_said(arc, drawn.words) for side in drawn.sides for arc in (*side.arcs, side.root)]
    elements = [
        f"<g><title>{escape(drawable(title))}</title>{line}</g>"
        for title, line in zip(said, lines, strict=True)
    ]
    title = drawn.title or " ".join(drawn.words)
    return svg_page(elements + texts, width, end + MARGIN, title, "; ".join(said))


def _side(side, middles, start, up):
    """Lines and their labels; `up` is -1 below the words, else 1."""
    level = _level(side)
    lines, texts = [], []
    for arc in side.arcs:
        x, end, y = middles[arc.source - 1] + arc.step * PORT, middles[arc.target - 1], start
        y -= up * arc.level * level
        bow = min(ROUND, level, abs(end - x) / 2)
        pieces = [
            ("M", (x, start)),
            ("L", (x, y + up * bow)),
            ("Q", (x, y, x + arc.step * bow, y)),
            ("L", (end - arc.step * bow, y)),
            ("Q", (end, y, end, y + up * bow)),
        ]
        lines.append(_arrow(pieces, end, start, up, arc.edge))
        if arc.label:
            texts.append(_label((x + end) / 2, y + SMALL / 3, arc))
    x, y = middles[side.root.target - 1], start - up * _tall(side)
    lines.append(_arrow([("M", (x, y))], x, start, up, side.root.edge))
    texts.append(svg_text(x, y - 3 if up > 0 else y + FONT - 1, "ROOT", size=SMALL, weight="bold"))
    if side.root.label:
        texts.append(_label(x, y + up * (SMALL / 2 + 4) + SMALL / 3, side.root))
    return lines, texts


def _label(x, y, arc):
    return svg_text(x, y, arc.label, size=SMALL, halo=True)


def _arrow(pieces, x, y, up, edge):
    """A line of pieces, then straight to (x, y), with a tip there."""
    dashed = ' stroke-dasharray="4 3"' if edge in (Edge.NX_LEFT, Edge.NX_RIGHT) else ""
    line = _path([*pieces, ("L", (x, y - up * TIP / 2))])
    back = y - up * TIP
    tip = _path([("M", (x, y)), ("L", (x - TIP / 2, back)), ("L", (x + TIP / 2, back))])
    return (
        f'<path d="{line}" fill="none" stroke="{COLOURS[edge]}"{dashed}/>'
        f'<path d="{tip}Z" fill="{COLOURS[edge]}"/>'
    )


def _path(pieces):
    return "".join(kind + " ".join(f"{n:.1f}" for n in numbers) for kind, numbers in pieces)


def _said(arc, words):
    """Describes an arc."""
    source = words[arc.source - 1] if arc.source else "ROOT"
    return f"{source} \N{RIGHTWARDS ARROW} {words[arc.target - 1]}" + (
        f" ({arc.label})" if arc.label else ""
    )
