"""Drawings of dependency trees: text for a terminal, SVG, PNG, LaTeX, HTML pages."""

from collections.abc import Sequence
from html import escape

from keras_onlstm.dependencies.arcs import Drawing, Side, columns, drawing, spread
from keras_onlstm.dependencies.drawing_text import latex_of, text_of
from keras_onlstm.dependencies.tree import DependencyTree, Edge
from keras_onlstm.drawing.svg import (
    CHARACTER,
    FONT,
    MARGIN,
    drawable,
    pictures_page,
    save_svg,
    svg_page,
    svg_text,
)
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.validation import check_choice, check_integer

__all__ = [
    "draw",
    "page",
    "save_picture",
    "svg_of",
]

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


FORMATS = {"text": text_of, "svg": svg_of, "latex": latex_of}


def draw(
    tree: DependencyTree,
    format: str = "text",
    arcs: str = "heads",
    numbers: bool = False,
    title: str = "",
    width: int | None = None,
) -> str:
    """Draws a dependency tree with arcs over its words.

    An arc is one level above all arcs that it covers. It begins at a side of its head and ends,
    with an arrow, at the middle of its dependent. Arcs cross if the tree is not projective.

    Args:
        tree: `DependencyTree`. Its relations, if any, label the arcs.
        format: `"text"` for a terminal, with `_` for white space in words; `"svg"`; or `"latex"`,
            code for the package `tikz-dependency`.
        arcs: `"heads"`, from heads to dependents; `"edges"`, the steps in which a top-down model
            generates the words (`DependencyTree.steps`), labelled with their types; or `"both"`,
            with the edges below the words.
        numbers: whether to show each word's number in breadth-first order below it.
        title: text above the tree; a comment in LaTeX.
        width: columns of the terminal. Wider text is cut between words into pieces, one below the
            other. `None` cuts nothing.

    Returns:
        String.

    Raises:
        ValueError: if `format` or `arcs` is unknown, a tree with edges or numbers is not
            projective, or `width` is given for another format than text.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree, draw
    >>> tree = DependencyTree("the cat saw a dog".split(), [2, 3, 0, 5, 3])
    >>> for line in draw(tree).split("\\n"):
    ...     print("|", line)
    |         ROOT
    |          │┌────┐
    |  ┌──┐┌──┐││ ┌─┐│
    |  ▼  │▼  │▼│ ▼ │▼
    | the cat saw a dog
    >>> for line in draw(tree, arcs="edges", numbers=True).split("\\n"):
    ...     print("|", line)
    |                 ROOT
    |                RIGHT
    |                  │┌──RIGHT──┐
    |  ┌─LEFT─┐┌─LEFT─┐││ ┌─LEFT─┐│
    |  ▼      │▼      │▼│ ▼      │▼
    | the     cat     saw a      dog
    |  4       2       1  5       3
    """
    check_choice("format", format, FORMATS)
    drawn = drawing(tree, arcs, numbers, title)
    if width is None:
        return FORMATS[format](drawn)
    if format != "text":
        raise ValueError(f"width is of the format 'text', not of {format!r}.")
    return text_of(drawn, check_integer("width", width))


def save_picture(
    path: StrPath,
    tree: DependencyTree,
    arcs: str = "heads",
    numbers: bool = False,
    title: str = "",
) -> None:
    """Writes a picture of a dependency tree.

    Args:
        path: ends in `.svg` or `.png`. PNG needs `pip install resvg-py font-source-sans-pro`, and
            leaves out characters that no installed font has.
        tree: `DependencyTree`.
        arcs: `"heads"`, `"edges"` or `"both"`.
        numbers: whether to number words in breadth-first order.
        title: text above the tree.

    Raises:
        ValueError: for other endings, or if `draw` raises it.
        ImportError: if the libraries for PNG are not installed.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm.dependencies import DependencyTree, save_picture
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "tree.svg"
    ...     save_picture(path, DependencyTree("the cat sleeps".split(), [2, 3, 0]))
    ...     path.read_text()[:4]
    '<svg'
    """
    save_svg(path, draw(tree, "svg", arcs, numbers, title))


def page(
    trees: Sequence[DependencyTree],
    arcs: str = "heads",
    numbers: bool = False,
    title: str = "Dependency trees",
    captions: Sequence[str] | None = None,
) -> str:
    """Makes an HTML page of dependency trees. It works offline.

    Args:
        trees: list of `DependencyTree`.
        arcs: `"heads"`, `"edges"` or `"both"`.
        numbers: whether to number words in breadth-first order.
        title: title of the page.
        captions: list of a text above each tree, or `None`.

    Returns:
        String.

    Raises:
        ValueError: if the number of captions is wrong, or `draw` raises it.

    Example:

    >>> from keras_onlstm.dependencies import page, random_tree
    >>> trees = [random_tree("the cat sleeps".split(), seed) for seed in range(3)]
    >>> page(trees, captions=["one", "two", "three"]).count("<svg")
    3
    """
    if captions is not None and len(captions) != len(trees):
        raise ValueError(f"{len(trees)} trees need as many captions, not {len(captions)}.")
    above = [""] * len(trees) if captions is None else captions
    pictures = [
        draw(tree, "svg", arcs, numbers, text) for tree, text in zip(trees, above, strict=True)
    ]
    return pictures_page(title, pictures)
