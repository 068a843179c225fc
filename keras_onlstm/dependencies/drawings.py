"""Drawings of dependency trees: text for a terminal, SVG, PNG, LaTeX, HTML pages."""

from collections.abc import Sequence

from keras_onlstm.dependencies.arc_layout import Layout, display_width, make_layout, word_centers
from keras_onlstm.dependencies.drawing_text import to_latex, to_text
from keras_onlstm.dependencies.tree import DependencyTree, Edge
from keras_onlstm.drawing.svg import (
    CHARACTER,
    FONT,
    MARGIN,
    drawable,
    escaped,
    pictures_page,
    save_svg,
    svg_page,
    svg_text,
)
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.validation import check_choice, check_integer

# Pixels.
SMALL, LABEL = 10, 6.2  # font size of labels and numbers, its widest usual character
GAP, LEVEL, PORT = 14, 24, 5  # between words or levels, from a center to outgoing arcs
MAX_HEIGHT = 430  # of a group of arcs; levels are lower if many arcs are nested
TIP, RADIUS = 7, 8  # of arrow tips, of corners
GREY, BLUE, RED = "#444444", "#1b6ca8", "#b23a48"
COLOURS = {None: GREY, Edge.LEFT: BLUE, Edge.NX_LEFT: BLUE, Edge.RIGHT: RED, Edge.NX_RIGHT: RED}


def _width(text, character=CHARACTER):
    return display_width(drawable(text)) * character


def _level_height(group):
    return min(LEVEL, MAX_HEIGHT / group.root.level)


def _height(group):  # including the arrow from ROOT
    return group.root.level * _level_height(group) + (SMALL if group.root.label else 0)


def to_svg(layout: Layout) -> str:
    """Formats a layout as SVG, with a description, and titles of arcs that browsers show."""
    numbers = layout.numbers or [""] * len(layout.words)
    half = [  # half the widths of the words
        max(_width(word), _width(number, LABEL), 2 * PORT) / 2
        for word, number in zip(layout.words, numbers, strict=True)
    ]
    root_half = max(_width(f"ROOT{group.root.label}") / 2 for group in layout.groups)
    start = MARGIN + max(0, root_half - half[0])
    positions = word_centers(
        layout, [(x, x) for x in half], lambda label: _width(label, LABEL) + 10 + PORT, GAP
    )
    centers = [start + x for x in positions]
    top, texts = MARGIN, []
    if layout.title:
        top += FONT + MARGIN
        texts.append(svg_text(MARGIN, MARGIN + FONT, layout.title, weight="bold", anchor="start"))
    bottom = top + FONT + _height(layout.above)  # where the arcs above end
    baseline = bottom + 3 + FONT  # of the words
    end = baseline + 6
    texts += [svg_text(x, baseline, word) for x, word in zip(centers, layout.words, strict=True)]
    if layout.numbers:
        y = end + SMALL
        texts += [svg_text(x, y, n, size=SMALL) for x, n in zip(centers, numbers, strict=True)]
        end = y + 6
    lines, labels = _arcs(layout.above, centers, bottom, 1)
    texts += labels
    if layout.below is not None:
        more, labels = _arcs(layout.below, centers, end, -1)
        lines, texts = lines + more, texts + labels
        end += _height(layout.below) + FONT
    width = max(centers[-1] + max(half[-1], root_half) + MARGIN, _width(layout.title) + 2 * MARGIN)
    arcs = [arc for group in layout.groups for arc in (*group.arcs, group.root)]
    descriptions = [_describe(arc, layout.words) for arc in arcs]
    elements = [
        f"<g><title>{escaped(description)}</title>{line}</g>"
        for description, line in zip(descriptions, lines, strict=True)
    ]
    title = layout.title or " ".join(layout.words)
    return svg_page(elements + texts, width, end + MARGIN, title, "; ".join(descriptions))


def _arcs(group, centers, start, up):
    """Lines and their labels; `up` is -1 below the words, else 1."""
    level = _level_height(group)
    lines, texts = [], []
    for arc in group.arcs:
        x, end, y = centers[arc.source - 1] + arc.direction * PORT, centers[arc.target - 1], start
        y -= up * arc.level * level
        radius = min(RADIUS, level, abs(end - x) / 2)
        pieces = [
            ("M", (x, start)),
            ("L", (x, y + up * radius)),
            ("Q", (x, y, x + arc.direction * radius, y)),
            ("L", (end - arc.direction * radius, y)),
            ("Q", (end, y, end, y + up * radius)),
        ]
        lines.append(_arrow(pieces, end, start, up, arc))
        texts += _label((x + end) / 2, y, arc)
    x, y = centers[group.root.target - 1], start - up * _height(group)
    lines.append(_arrow([("M", (x, y))], x, start, up, group.root))
    texts.append(svg_text(x, y - 3 if up > 0 else y + FONT - 1, "ROOT", size=SMALL, weight="bold"))
    return lines, texts + _label(x, y + up * (SMALL / 2 + 4), group.root)


def _label(x, y, arc):
    return [svg_text(x, y + SMALL / 3, arc.label, size=SMALL, halo=True)] if arc.label else []


def _arrow(pieces, x, y, up, arc):
    """A line of pieces, then straight to (x, y), with a tip there."""
    colour, dashed = COLOURS[arc.edge], ' stroke-dasharray="4 3"' if arc.is_dashed else ""
    line = _path([*pieces, ("L", (x, y - up * TIP / 2))])
    back = y - up * TIP
    tip = _path([("M", (x, y)), ("L", (x - TIP / 2, back)), ("L", (x + TIP / 2, back))])
    line = f'<path d="{line}" fill="none" stroke="{colour}"{dashed}/>'
    return f'{line}<path d="{tip}Z" fill="{colour}"/>'


def _path(pieces):
    return "".join(kind + " ".join(f"{n:.1f}" for n in numbers) for kind, numbers in pieces)


def _describe(arc, words):
    source = words[arc.source - 1] if arc.source else "ROOT"
    label = f" ({arc.label})" if arc.label else ""
    return f"{source} \N{RIGHTWARDS ARROW} {words[arc.target - 1]}{label}"


FORMATS = {"text": to_text, "svg": to_svg, "latex": to_latex}


def draw(
    tree: DependencyTree,
    format: str = "text",
    arcs: str = "heads",
    numbers: bool = False,
    title: str = "",
    width: int | None = None,
) -> str:
    """Draws a dependency tree with arcs over its words.

    An arc is one level above all arcs that it covers. Arcs cross if the tree is not projective.

    Args:
        tree: `DependencyTree`. Its relations, if any, label the arcs.
        format: `"text"` for a terminal, with `_` for white space in words; `"svg"`; or `"latex"`,
            code for the package `tikz-dependency`.
        arcs: `"heads"`, from heads to dependents; `"edges"`, the steps in which a top-down model
            generates the words (`DependencyTree.steps`), labelled with their types; or `"both"`,
            with the edges below the words.
        numbers: whether to show each word's number in breadth-first order below it.
        title: text above the tree; a comment in LaTeX.
        width: integer, columns of the terminal. Wider text is cut between words into pieces, one
            below the other. `None` does not cut.

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
    """
    check_choice("format", format, FORMATS)
    layout = make_layout(tree, arcs, numbers, title)
    if width is None:
        return FORMATS[format](layout)
    if format != "text":
        raise ValueError(f"width is for format='text', got format={format!r}.")
    return to_text(layout, check_integer("width", width))


def save_picture(
    path: StrPath, tree: DependencyTree, arcs: str = "heads", numbers: bool = False, title: str = ""
) -> None:
    """Writes a picture of a dependency tree, with the arguments of `draw`.

    The path ends in `.svg` or `.png`; other extensions are a `ValueError`. PNG needs `pip install
    resvg-py font-source-sans-pro`, and leaves out characters that no installed font has.

    >>> from keras_onlstm.dependencies import chain, save_picture
    >>> save_picture("tree.svg", chain(["the", "cat", "sleeps"]))
    """
    save_svg(path, draw(tree, "svg", arcs, numbers, title))


def page(
    trees: Sequence[DependencyTree],
    arcs: str = "heads",
    numbers: bool = False,
    title: str = "Dependency trees",
    captions: Sequence[str] | None = None,
) -> str:
    """Makes an HTML page of dependency trees, which works offline.

    `captions` are texts above the trees, one for each. The other arguments are those of `draw`.

    >>> from keras_onlstm.dependencies import page, random_tree
    >>> trees = [random_tree("the cat sleeps".split(), seed) for seed in range(3)]
    >>> page(trees, captions=["one", "two", "three"]).count("<svg")
    3
    """
    titles = [""] * len(trees) if captions is None else captions
    if len(titles) != len(trees):
        raise ValueError(
            f"captions must have {len(trees)} items, one for each tree, got {len(titles)}."
        )
    pairs = zip(trees, titles, strict=True)
    return pictures_page(title, (draw(tree, "svg", arcs, numbers, text) for tree, text in pairs))
