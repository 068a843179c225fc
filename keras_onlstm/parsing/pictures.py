"""Pictures of trees: the leaves in one line, distances as bars below them.

Branches run across and then straight down: so drawn, no two of a tree ever cross.

SVG is written here, as text without dependencies; PNG needs Matplotlib (the extra `viz`).
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.types import NltkTree, StrPath

__all__ = ["draw", "draw_pair", "drawable", "save_picture"]

Numbers = Sequence[float] | np.ndarray

FONT, CHARACTER, SMALL = 13, 7.4, 6.6  # pixels: font, its widest usual characters, those of labels
GAP, LEVEL = 14, 26
MARGIN, BARS, TITLE = 12, 46, 22
TALLEST = 430  # of the branches; deep trees get flatter levels
GREY, BLUE, RED, BAR = "#666666", "#1b6ca8", "#b23a48", "#9db8cc"

# What XML forbids: control characters, halves of surrogate pairs, U+FFFE and U+FFFF.
_FORBIDDEN = re.compile("[^ -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def drawable(text: object) -> str:
    """A text as a picture or a page can show it.

    Args:
        text: anything, as `str` gives it.

    Returns:
        String: white space as blanks, U+FFFD for each character that XML and HTML forbid.

    Example:

    >>> from keras_onlstm.parsing.pictures import drawable
    >>> drawable("bell\\x07") == "bell\\N{REPLACEMENT CHARACTER}"
    True
    """
    return _FORBIDDEN.sub("\ufffd", re.sub(r"\s", " ", str(text)))


class _Node(NamedTuple):
    x: float
    height: int  # 0 of a word
    start: int
    end: int
    label: str
    children: tuple[int, ...]  # places in the list of nodes


class _Layout(NamedTuple):
    nodes: list[_Node]
    words: list[str]
    positions: list[float]  # of the words
    width: float
    level: float  # pixels

    @property
    def branches(self):
        return self.nodes[-1].height * self.level


def _layout(tree):
    """Where everything is, from below: the root comes last."""
    from nltk import Tree

    nodes: list[_Node] = []
    words: list[str] = []
    positions: list[float] = []
    x: float = MARGIN
    finished: list[int] = []  # places of nodes that wait for their parent
    pending: list[tuple[NltkTree, int | None]] = [(tree, None)]
    wide: float = 0  # the widest label of the constituents around the next word alone
    while pending:
        node, mark = pending.pop()
        if mark is not None:
            children = tuple(finished[mark:])
            del finished[mark:]
            parts = [nodes[child] for child in children]
            middle = (parts[0].x + parts[-1].x) / 2
            height = 1 + max(part.height for part in parts)
            where = middle, height, parts[0].start, parts[-1].end
            nodes.append(_Node(*where, node.label(), children))
            finished.append(len(nodes) - 1)
        elif isinstance(node, Tree):
            # The mark: how many are finished when a node is opened, none of them its child.
            pending.append((node, len(finished)))
            alone = len(node) == 1 and node.label() != "X"
            wide = max(wide, len(node.label()) * SMALL) if alone else 0
            pending += [(child, None) for child in reversed(list(node))]
        else:
            text = str(node)
            width = max(len(text) * CHARACTER, 2 * CHARACTER, wide)
            wide = 0
            positions.append(x + width / 2)
            nodes.append(_Node(x + width / 2, 0, len(words), len(words) + 1, text, ()))
            finished.append(len(nodes) - 1)
            words.append(text)
            x += width + GAP
    level = min(LEVEL, TALLEST / max(nodes[-1].height, 1))
    return _Layout(nodes, words, positions, x - GAP + MARGIN, level)


def _tree_svg(tree, distances, gold_spans, title, left, top):
    """(elements, width, height) of one tree."""
    layout = _layout(tree)
    base = top + TITLE + layout.branches + MARGIN + FONT  # of the words
    width = max(layout.width, len(title) * CHARACTER + 2 * MARGIN)
    elements = [_text(left + MARGIN, top + FONT, title, anchor="start", weight="bold")]

    def place(node):
        return left + node.x, base - FONT - 3 - node.height * layout.level

    for node in layout.nodes:
        x, y = place(node)
        for child in node.children:
            cx, cy = place(layout.nodes[child])
            path = f"M{x:.1f} {y:.1f}H{cx:.1f}V{cy:.1f}"
            elements.append(f'<path d="{path}" fill="none" stroke="{GREY}"/>')
    for node in layout.nodes:
        x, y = place(node)
        if not node.children:
            continue
        if node.label != "X":
            elements.append(_text(x, y + 4, node.label, size=10, halo=True))
        elif node.end - node.start < len(layout.words):
            right = gold_spans is None or (node.start, node.end) in gold_spans
            colour = GREY if gold_spans is None else BLUE if right else RED
            elements.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    for place_of_word, x in enumerate(layout.positions):
        elements.append(_text(left + x, base, layout.words[place_of_word]))
        if distances is not None:
            tall = max(float(distances[place_of_word]) * BARS, 0.5)
            elements.append(
                f'<rect x="{left + x - 5:.1f}" y="{base + 8:.1f}" width="10" height="{tall:.1f}" '
                f'fill="{BAR}"><title>{float(distances[place_of_word]):.3f}</title></rect>'
            )
    below = 8 + BARS if distances is not None else 8
    return elements, width, base - top + below + MARGIN


def _text(x, y, text, anchor="middle", size=FONT, weight="normal", halo=False):
    behind = ' stroke="white" stroke-width="4" paint-order="stroke"' if halo else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}"{behind}>{escape(drawable(text))}</text>'
    )


def _page(elements, width, height):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(elements)}</svg>'
    )


def _spans(tree):
    return {(node.start, node.end) for node in _layout(tree).nodes if node.children}


def draw(tree: NltkTree, distances: Numbers | None = None, title: str = "") -> str:
    """A tree as SVG.

    Args:
        tree: `nltk.Tree`.
        distances: one number in [0, 1] a word, drawn as bars below the words, or `None`.
        title: text above it.

    Returns:
        String.

    Raises:
        ValueError: if there are not as many distances as words.

    Example:

    >>> from keras_onlstm.parsing import draw, right_branching
    >>> draw(right_branching("the cat saw a dog".split()))[:39]
    '<svg xmlns="http://www.w3.org/2000/svg"'
    """
    _check(tree, distances)
    return _page(*_tree_svg(tree, distances, None, title, 0, 0))


def draw_pair(
    predicted: NltkTree, gold: NltkTree, distances: Numbers | None = None, title: str = "predicted"
) -> str:
    """Predicted and gold tree side by side, one above the other if they are wide.

    Constituents of the predicted tree that the gold tree has are blue, others are red.

    Args:
        predicted: `nltk.Tree`.
        gold: `nltk.Tree` over as many words.
        distances: as in `draw`, of the predicted tree.
        title: text above the predicted tree.

    Returns:
        String, SVG.

    Raises:
        ValueError: if the numbers of words and distances differ.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import draw_pair, right_branching
    >>> gold = Tree.fromstring("(S (NP the cat) (VP saw (NP a dog)))")
    >>> draw_pair(right_branching(gold.leaves()), gold)[:4]
    '<svg'
    """
    _check(predicted, distances)
    elements, width, height = _tree_svg(predicted, distances, _spans(gold), title, 0, 0)
    beside = width <= 640
    left, top = (width + MARGIN, 0) if beside else (0, height)
    more, gold_width, gold_height = _tree_svg(gold, None, None, "gold", left, top)
    if beside:
        return _page(elements + more, left + gold_width, max(height, gold_height))
    return _page(elements + more, max(width, gold_width), top + gold_height)


def _check(tree, distances):
    words = len(_layout(tree).words)
    if distances is not None and len(distances) != words:
        raise ValueError(f"{words} words need as many distances, not {len(distances)}.")


def save_picture(
    path: StrPath,
    predicted: NltkTree,
    gold: NltkTree | None = None,
    distances: Numbers | None = None,
    title: str = "",
) -> None:
    """Writes a picture of one tree, or of two side by side.

    Args:
        path: ends in `.svg` or `.png`. PNG needs the extra `viz`.
        predicted: `nltk.Tree`.
        gold: another one, or `None`.
        distances: as in `draw`.
        title: text above the predicted tree.

    Raises:
        ValueError: if the file has another ending.
        ImportError: if Matplotlib is needed and not installed.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm.parsing import right_branching, save_picture
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "tree.svg"
    ...     save_picture(path, right_branching("the cat saw a dog".split()))
    ...     path.read_text()[:4]
    '<svg'
    """
    path = Path(path)
    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"{path}: a picture ends in .svg or .png.")
    if path.suffix == ".svg":
        text = draw(predicted, distances, title)
        if gold is not None:
            text = draw_pair(predicted, gold, distances, title)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return
    figure = _figure(predicted, gold, distances, title)
    with replacing(path) as temporary:
        # Matplotlib paints fewer than 2^16 pixels a side.
        figure.savefig(temporary, dpi=min(150, 65_000 / max(figure.get_size_inches())))


def _figure(predicted, gold, distances, title):
    """The same with Matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("PNG needs Matplotlib: pip install 'keras-onlstm[viz]'") from error
    trees = [(predicted, distances, title)] + ([] if gold is None else [(gold, None, "gold")])
    layouts = [_layout(tree) for tree, _, _ in trees]
    beside = len(trees) == 2 and layouts[0].width <= 640
    below = 60 if distances is not None else 20
    tall = [layout.branches + below + TITLE + 2 * FONT for layout in layouts]
    wide = [layout.width for layout in layouts]
    size = (sum(wide), max(tall)) if beside else (max(wide), sum(tall))
    figure = Figure(figsize=(size[0] / 72, size[1] / 72))
    grid = figure.add_gridspec(
        *((1, len(trees)) if beside else (len(trees), 1)),
        **({"width_ratios": wide} if beside else {"height_ratios": tall}),
        left=0, right=1, top=1, bottom=0, wspace=0, hspace=0,
    )  # fmt: skip
    spans = None if gold is None else _spans(gold)
    for place, ((_, numbers, name), layout) in enumerate(zip(trees, layouts, strict=True)):
        axes = figure.add_subplot(grid[place])
        axes.set(xlim=(0, size[0] if not beside else layout.width))
        axes.set(ylim=(-below, tall[place] - below))
        axes.axis("off")
        _paint(axes, layout, numbers, spans if place == 0 else None)
        _write(axes, MARGIN, tall[place] - below - FONT, name, weight="bold", size=9)
    return figure


def _paint(axes, layout, distances, gold_spans):
    def place(node):
        return node.x, FONT + node.height * layout.level

    for node in layout.nodes:
        for child in node.children:
            (x, y), (child_x, child_y) = place(node), place(layout.nodes[child])
            axes.plot([x, child_x, child_x], [y, y, child_y], color=GREY, linewidth=0.8)
    for node in layout.nodes:
        if node.children and node.label != "X":
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            x, y = place(node)
            _write(axes, x, y, node.label, size=7, ha="center", va="center", bbox=box)
        elif node.children and node.end - node.start < len(layout.words):
            right = gold_spans is None or (node.start, node.end) in gold_spans
            colour = GREY if gold_spans is None else BLUE if right else RED
            axes.plot(*place(node), "o", color=colour, markersize=4)
    for number, (word, x) in enumerate(zip(layout.words, layout.positions, strict=True)):
        _write(axes, x, 0, word, size=9, ha="center")
        if distances is not None:
            axes.bar(x, -float(distances[number]) * BARS, 10, bottom=-8, color=BAR)


def _write(axes, x, y, text, **style):
    # As it stands: dollars are no formulas.
    axes.text(x, y, drawable(text), parse_math=False, **style)
