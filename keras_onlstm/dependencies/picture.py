"""Dependency trees as pictures: one geometry, painted as SVG or by Matplotlib."""

from html import escape
from typing import Any, NamedTuple

from keras_onlstm.dependencies.arcs import Arc, Cell, Drawing, Side, spread
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.utils.columns import columns
from keras_onlstm.utils.png import Curve, add_curves, new_figure, write_text
from keras_onlstm.utils.svg import (
    CHARACTER,
    FONT,
    MARGIN,
    drawable,
    svg_page,
    svg_text,
)

__all__ = ["figure_of", "svg_of"]

SMALL, LABEL = 10, 6.2  # pixels: font of labels and numbers, its widest usual characters
GAP, LEVEL, PORT = 14, 24, 5  # between words, between levels, from a word's middle to its side
TALLEST = 430  # of the arcs on one side; where many are nested levels are lower
TIP, ROUND = 7, 8  # of arrows, of corners
GREY, BLUE, RED = "#444444", "#1b6ca8", "#b23a48"
COLOURS = {None: GREY, Edge.LEFT: BLUE, Edge.NX_LEFT: BLUE, Edge.RIGHT: RED, Edge.NX_RIGHT: RED}


class _Line(NamedTuple):
    pieces: Curve
    tip: Curve  # the arrow head
    arc: Arc


class _Text(NamedTuple):
    x: float
    y: float
    text: str
    size: int = FONT
    weight: str = "normal"
    anchor: str = "middle"
    halo: bool = False


class _Picture(NamedTuple):
    lines: list[_Line]
    texts: list[_Text]
    width: float
    height: float


def _wide(text, character=CHARACTER):
    return columns(drawable(text)) * character


def _picture(drawn: Drawing) -> _Picture:
    """Where everything is."""
    numbers = drawn.numbers or [""] * len(drawn.words)
    half = [
        max(_wide(word), _wide(number, LABEL), 2 * PORT) / 2
        for word, number in zip(drawn.words, numbers, strict=True)
    ]
    rooms = [
        (arc, _wide(arc.label, LABEL) + 10 + PORT)
        for side in drawn.sides
        for arc in side.arcs
        if arc.label
    ]
    beside = max(_wide(f"ROOT{side.root.label}") / 2 for side in drawn.sides)
    start = MARGIN + max(0, beside - half[0])  # where the first word depends on ROOT
    middles = [start + x for x in spread([Cell(x, x) for x in half], rooms, GAP)]
    heading = FONT + MARGIN if drawn.title else 0
    top = MARGIN + heading
    bottom = top + FONT + _tall(drawn.above)  # where the arcs above end
    base = bottom + 3 + FONT  # of the words
    texts = [_Text(MARGIN, MARGIN + FONT, drawn.title, weight="bold", anchor="start")]
    texts = texts if drawn.title else []
    texts += [_Text(x, base, word) for x, word in zip(middles, drawn.words, strict=True)]
    end = base + 6
    if drawn.numbers:
        texts += [_Text(x, end + SMALL, n, SMALL) for x, n in zip(middles, numbers, strict=True)]
        end += SMALL + 6
    lines, labels = _side(drawn.above, middles, bottom, 1)
    texts += labels
    if drawn.below is not None:
        more, labels = _side(drawn.below, middles, end, -1)
        lines, texts = lines + more, texts + labels
        end += _tall(drawn.below) + FONT
    width = max(middles[-1] + max(half[-1], beside) + MARGIN, _wide(drawn.title) + 2 * MARGIN)
    return _Picture(lines, texts, width, end + MARGIN)


def _level(side):
    return min(LEVEL, TALLEST / side.root.level)


def _tall(side: Side) -> float:
    """How high the arcs of a side stand, with the arrow that comes from ROOT."""
    return side.root.level * _level(side) + (SMALL if side.root.label else 0)


def _side(side, middles, start, up):
    """Lines and their labels; `up` is -1 for what stands below the words."""
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
            ("L", (end, start - up * TIP / 2)),
        ]
        lines.append(_Line(pieces, _tip(end, start, up), arc))
        if arc.label:
            texts.append(_Text((x + end) / 2, y + SMALL / 3, arc.label, SMALL, halo=True))
    x, y = middles[side.root.target - 1], start - up * _tall(side)
    pieces = [("M", (x, y)), ("L", (x, start - up * TIP / 2))]
    lines.append(_Line(pieces, _tip(x, start, up), side.root))
    texts.append(_Text(x, y - 3 if up > 0 else y + FONT - 1, "ROOT", SMALL, "bold"))
    if side.root.label:
        at = y + up * (SMALL / 2 + 4) + SMALL / 3
        texts.append(_Text(x, at, side.root.label, SMALL, halo=True))
    return lines, texts


def _tip(x, y, up):
    back = y - up * TIP
    return [("M", (x, y)), ("L", (x - TIP / 2, back)), ("L", (x + TIP / 2, back))]


def svg_of(drawn: Drawing) -> str:
    """Draws it as SVG.

    Args:
        drawn: `Drawing`.

    Returns:
        String. Every arc has a title, which browsers show, and the picture a description.
    """
    picture = _picture(drawn)
    elements, said = [], []
    for line in picture.lines:
        colour = COLOURS[line.arc.edge]
        dashed = ' stroke-dasharray="4 3"' if _is_dashed(line.arc) else ""
        said.append(_said(line.arc, drawn.words))
        elements.append(
            f"<g><title>{escape(drawable(said[-1]))}</title>"
            f'<path d="{_path(line.pieces)}" fill="none" stroke="{colour}"{dashed}/>'
            f'<path d="{_path(line.tip)}Z" fill="{colour}"/></g>'
        )
    for text in picture.texts:
        style = text.anchor, text.size, text.weight, text.halo
        elements.append(svg_text(text.x, text.y, text.text, *style))
    title = drawn.title or " ".join(drawn.words)
    return svg_page(elements, picture.width, picture.height, title, "; ".join(said))


def _path(pieces):
    return "".join(kind + " ".join(f"{n:.1f}" for n in numbers) for kind, numbers in pieces)


def _is_dashed(arc):
    return arc.edge in (Edge.NX_LEFT, Edge.NX_RIGHT)


def _said(arc, words):
    """An arc in words."""
    source = words[arc.source - 1] if arc.source else "ROOT"
    return f"{source} \N{RIGHTWARDS ARROW} {words[arc.target - 1]}" + (
        f" ({arc.label})" if arc.label else ""
    )


def figure_of(drawn: Drawing) -> tuple[Any, frozenset[str]]:
    """The same with Matplotlib.

    Args:
        drawn: `Drawing`.

    Returns:
        Figure, and the set of the characters that no font has.

    Raises:
        ImportError: if Matplotlib is not installed.
    """
    picture = _picture(drawn)
    figure = new_figure(picture.width / 72, picture.height / 72)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.axis("off")
    for edge, colour in COLOURS.items():
        lines = [line for line in picture.lines if line.arc.edge is edge]
        dashed = any(_is_dashed(line.arc) for line in lines)
        add_curves(axes, [line.pieces for line in lines], colour, dashed=dashed)
        add_curves(axes, [line.tip for line in lines], colour, filled=True)
    missing = [_write(axes, text) for text in picture.texts]
    return figure, frozenset().union(*missing)


def _write(axes, text):
    style = {"size": 0.7 * text.size, "ha": "left" if text.anchor == "start" else "center"}
    if text.halo:
        style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    return write_text(axes, text.x, text.y, text.text, text.weight, **style)
