"""Pictures of trees: the leaves in one line, distances as bars below them.

Branches run across and then straight down: so drawn, no two of a tree ever cross.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.parsing.scores import walk
from keras_onlstm.utils.svg import CHARACTER, FONT, MARGIN, save_svg, svg_page, svg_text
from keras_onlstm.utils.types import NltkTree, StrPath

__all__ = ["draw", "draw_pair", "laid_out", "save_picture"]

Numbers = Sequence[float] | np.ndarray

SMALL = 6.6  # pixels: the widest usual characters of labels
GAP, LEVEL = 14, 26
BARS, TITLE = 46, 22
TALLEST = 430  # of the branches; deep trees get flatter levels
BESIDE = 640  # the widest tree that has another one at its side
GREY, BLUE, RED, BAR = "#666666", "#1b6ca8", "#b23a48", "#9db8cc"


class _Node(NamedTuple):
    x: float
    height: int  # 0 of a word
    start: int
    end: int
    label: str
    children: tuple[int, ...]  # places in the list of nodes


class _Layout(NamedTuple):
    nodes: list[_Node]  # the root comes last
    width: float
    level: float  # pixels

    @property
    def branches(self):
        return self.nodes[-1].height * self.level

    @property
    def beside(self):
        return self.width <= BESIDE

    @property
    def words(self):
        return [node for node in self.nodes if not node.children]

    @property
    def labelled(self):
        return [node for node in self.nodes if node.children and node.label != "X"]

    def dots(self, gold_spans):
        """(node, colour) of what has no label; the whole sentence needs no dot."""
        for node in self.nodes:
            if node.children and node.label == "X" and node.end - node.start < self.nodes[-1].end:
                found = gold_spans is not None and (node.start, node.end) in gold_spans
                yield node, BLUE if found else GREY if gold_spans is None else RED


def laid_out(tree: NltkTree, title: str = "") -> _Layout:
    """Where everything of a tree is.

    Args:
        tree: `nltk.Tree`.
        title: text above it.

    Returns:
        Record of `nodes`, words and constituents, children before their parents, each with `x` in
        pixels, `height` in levels above the words, its words `start` to `end`, `label` and places
        of `children`; of the `width` of all, and of the pixels of a `level`.

    Example:

    >>> from keras_onlstm.parsing import right_branching
    >>> from keras_onlstm.parsing.pictures import laid_out
    >>> [(node.label, node.height) for node in laid_out(right_branching(["a", "cat"])).nodes]
    [('a', 0), ('cat', 0), ('X', 1)]
    """
    from nltk import Tree

    nodes: list[_Node] = []
    words = 0  # so far
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
            nodes.append(_Node(x + width / 2, 0, words, words + 1, text, ()))
            finished.append(len(nodes) - 1)
            words += 1
            x += width + GAP
    level = min(LEVEL, TALLEST / nodes[-1].height)
    wide = len(title) * CHARACTER + 2 * MARGIN
    return _Layout(nodes, max(x - GAP + MARGIN, wide), level)


def _tree_svg(layout, distances, gold_spans, title, left, top):
    """(elements, height) of one tree."""
    base = top + TITLE + layout.branches + MARGIN + FONT  # of the words
    elements = [svg_text(left + MARGIN, top + FONT, title, anchor="start", weight="bold")]

    def place(node):
        return left + node.x, base - FONT - 3 - node.height * layout.level

    for node in layout.nodes:
        x, y = place(node)
        for child in node.children:
            cx, cy = place(layout.nodes[child])
            path = f"M{x:.1f} {y:.1f}H{cx:.1f}V{cy:.1f}"
            elements.append(f'<path d="{path}" fill="none" stroke="{GREY}"/>')
    for node in layout.labelled:
        x, y = place(node)
        elements.append(svg_text(x, y + 4, node.label, size=10, halo=True))
    for node, colour in layout.dots(gold_spans):
        x, y = place(node)
        elements.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    for word in layout.words:
        x = left + word.x
        elements.append(svg_text(x, base, word.label))
        if distances is not None:
            distance = float(distances[word.start])
            elements.append(
                f'<rect x="{x - 5:.1f}" y="{base + 8:.1f}" width="10" '
                f'height="{max(distance * BARS, 0.5):.1f}" fill="{BAR}">'
                f"<title>{distance:.3f}</title></rect>"
            )
    below = 8 + BARS if distances is not None else 8
    return elements, base - top + below + MARGIN


def _spans(tree):
    return {(start, end) for _, start, end in walk(tree)[0]}


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
    layout = _checked(tree, distances, title)
    elements, height = _tree_svg(layout, distances, None, title, 0, 0)
    return svg_page(elements, layout.width, height)


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
    layout, other = _checked(predicted, distances, title), laid_out(gold, "gold")
    elements, height = _tree_svg(layout, distances, _spans(gold), title, 0, 0)
    left, top = (layout.width + MARGIN, 0) if layout.beside else (0, height)
    more, gold_height = _tree_svg(other, None, None, "gold", left, top)
    if layout.beside:
        return svg_page(elements + more, left + other.width, max(height, gold_height))
    return svg_page(elements + more, max(layout.width, other.width), top + gold_height)


def _checked(tree, distances, title):
    """The layout of a tree, if there are as many distances as words."""
    layout = laid_out(tree, title)
    words = layout.nodes[-1].end
    if distances is not None and len(distances) != words:
        raise ValueError(f"{words} words need as many distances, not {len(distances)}.")
    return layout


def save_picture(
    path: StrPath,
    predicted: NltkTree,
    gold: NltkTree | None = None,
    distances: Numbers | None = None,
    title: str = "",
) -> None:
    """Writes a picture of one tree, or of two side by side.

    Args:
        path: ends in `.svg` or `.png`. PNG needs `pip install resvg-py font-source-sans-pro`, and
            leaves out characters that no installed font has.
        predicted: `nltk.Tree`.
        gold: another one, or `None`.
        distances: as in `draw`.
        title: text above the predicted tree.

    Raises:
        ValueError: if the file has another ending, or the numbers of words and distances differ.
        ImportError: if PNG is asked for, and its libraries are not installed.

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
    if gold is None:
        svg = draw(predicted, distances, title)
    else:
        svg = draw_pair(predicted, gold, distances, title)
    save_svg(path, svg)
