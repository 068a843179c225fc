"""Pictures of trees: leaves in one line and distances as bars below, as SVG or as text."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.drawing.svg import CHARACTER, FONT, MARGIN, save_svg, svg_page, svg_text
from keras_onlstm.parsing.scores import walk
from keras_onlstm.parsing.trees import escape
from keras_onlstm.utils import NltkTree, StrPath


def outline(tree: NltkTree) -> str:
    """Draws a tree as text, with the root at the left and a word at the end of each line.

    Labels are not written. White space in words, and an empty word, is written as `_`.

    >>> from keras_onlstm.parsing import build_tree, outline
    >>> print(outline(build_tree([0.9, 0.1, 0.8, 0.3, 0.2], "the cat saw a dog".split(), "binary")))
    ─┬─┬─ the
     │ └─ cat
     └─┬─ saw
       └─┬─ a
         └─ dog
    """
    from nltk import Tree

    # Stack of (node, prefix of its first line, prefix of its other lines).
    lines, pending = [], [(tree, "", "")]
    while pending:
        node, before, below = pending.pop()
        if not isinstance(node, Tree):
            lines.append(f"{before}─ {_without_blanks(node)}")
        elif not node:
            lines.append(f"{before}─")
        else:
            last = len(node) - 1
            starts = [f"{before}─{'┬' if last else '─'}", *[f"{below} ├"] * (last - 1)]
            starts += [f"{below} └"] * (last > 0)
            belows = [f"{below} │"] * last + [f"{below}  "]
            pending += reversed([*zip(node, starts, belows, strict=True)])
    return "\n".join(lines)


def _without_blanks(word):
    return re.sub(r"\s", "_", str(word)) or "_"


def conll(tree: NltkTree) -> str:
    """Writes a tree in the column format of the CoNLL shared tasks of 2005 and 2012.

    The columns, separated by tabs, are the 0-based number of the word, the word, and its part of
    the bracketed tree, where `*` marks the word. White space in words, an empty word, and `*` in
    labels are written as `_`. A constituent without words is a `ValueError`.

    >>> from keras_onlstm.parsing import build_tree, conll
    >>> tree = build_tree([0.9, 0.1, 0.8, 0.3, 0.2], "the cat saw a dog".split(), "binary")
    >>> print(conll(tree).expandtabs(6))
    0     the   (X(X*
    1     cat   *)
    2     saw   (X*
    3     a     (X*
    4     dog   *)))
    """
    from nltk import Tree

    lines: list[str] = []
    opening, pending = "", [tree]
    while pending:
        node = pending.pop()
        if node is None:
            lines[-1] += ")"
        elif isinstance(node, Tree):
            if not node:
                raise ValueError("tree has a constituent without words, unlike the CoNLL format.")
            opening += "(" + escape(node.label()).replace("*", "_")
            pending += [None, *reversed(list(node))]
        else:
            lines.append(f"{len(lines)}\t{_without_blanks(node)}\t{opening}*")
            opening = ""
    return "\n".join(lines)


Numbers = Sequence[float] | np.ndarray

SMALL = 6.6  # pixels: the widest common characters of labels
GAP, LEVEL = 14, 26
BARS, TITLE = 46, 22
TALLEST = 430  # of the branches; deep trees get flatter levels
SIDE_BY_SIDE = 640  # pixels: wider predicted trees have the gold tree below them
GREY, BLUE, RED, BAR = "#666666", "#1b6ca8", "#b23a48", "#9db8cc"


class _Node(NamedTuple):
    x: float  # pixels
    height: int  # levels above the words
    start: int  # its words are [start, end)
    end: int
    label: str
    children: tuple["_Node", ...]


class _Layout(NamedTuple):
    nodes: list[_Node]  # the root comes last
    width: float


def layout_tree(tree: NltkTree, title: str = "") -> _Layout:
    """The positions of the nodes of a tree, children before parents."""
    from nltk import Tree

    nodes: list[_Node] = []
    words, x = 0, float(MARGIN)  # of the words so far
    finished: list[_Node] = []  # nodes that wait for their parent
    pending: list[tuple[NltkTree, int | None]] = [(tree, None)]
    label_width = 0.0  # of the constituents that contain only the next word
    while pending:
        node, first = pending.pop()
        if first is None and isinstance(node, Tree):
            # Nodes that are finished before a node is opened are not its children.
            pending.append((node, len(finished)))
            is_labelled_unary = len(node) == 1 and node.label() != "X"
            width = len(node.label()) * SMALL
            label_width = max(label_width, width) if is_labelled_unary else 0
            pending += [(child, None) for child in reversed(list(node))]
            continue
        if first is not None:
            parts = tuple(finished[first:])
            del finished[first:]
            middle = (parts[0].x + parts[-1].x) / 2
            height = 1 + max(part.height for part in parts)
            done = _Node(middle, height, parts[0].start, parts[-1].end, node.label(), parts)
        else:
            width = max(len(str(node)) * CHARACTER, 2 * CHARACTER, label_width)
            done = _Node(x + width / 2, 0, words, words + 1, str(node), ())
            x += width + GAP
            label_width, words = 0, words + 1
        nodes.append(done)
        finished.append(done)
    return _Layout(nodes, max(x - GAP + MARGIN, len(title) * CHARACTER + 2 * MARGIN))


def _tree_svg(layout, distances, gold_spans, title, left=0, top=0):
    """Returns (elements, height) of one tree."""
    count = layout.nodes[-1].end
    if distances is not None and len(distances) != count:
        raise ValueError(
            f"distances must have a number for each of {count} words, got {len(distances)}."
        )
    level = min(LEVEL, TALLEST / layout.nodes[-1].height)
    base = top + TITLE + layout.nodes[-1].height * level + MARGIN + FONT  # baseline of the words
    elements = [svg_text(left + MARGIN, top + FONT, title, anchor="start", weight="bold")]
    labels, dots, words = [], [], []
    for node in layout.nodes:
        x, y = left + node.x, base - FONT - 3 - node.height * level
        for child in node.children:
            cx, cy = left + child.x, base - FONT - 3 - child.height * level
            path = f"M{x:.1f} {y:.1f}H{cx:.1f}V{cy:.1f}"
            elements.append(f'<path d="{path}" fill="none" stroke="{GREY}"/>')
        if not node.children:
            words.append(svg_text(x, base, node.label))
            if distances is not None:
                distance = float(distances[node.start])
                words.append(
                    f'<rect x="{x - 5:.1f}" y="{base + 8:.1f}" width="10" '
                    f'height="{max(distance * BARS, 0.5):.1f}" fill="{BAR}">'
                    f"<title>{distance:.3f}</title></rect>"
                )
        elif node.label != "X":
            labels.append(svg_text(x, y + 4, node.label, size=10, halo=True))
        elif node.end - node.start < count:  # the whole sentence needs no dot
            colour = GREY
            if gold_spans is not None:
                colour = BLUE if (node.start, node.end) in gold_spans else RED
            dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    below = 8 + BARS if distances is not None else 8
    return elements + labels + dots + words, base - top + below + MARGIN


def draw(tree: NltkTree, distances: Numbers | None = None, title: str = "") -> str:
    """Draws a tree as SVG.

    Args:
        tree: `nltk.Tree`.
        distances: a number in [0, 1] for each word, drawn as bars below the words, or `None`.
        title: text above the tree.

    >>> from keras_onlstm.parsing import draw, right_branching
    >>> draw(right_branching("the cat saw a dog".split()))[:39]
    '<svg xmlns="http://www.w3.org/2000/svg"'
    """
    layout = layout_tree(tree, title)
    elements, height = _tree_svg(layout, distances, None, title)
    return svg_page(elements, layout.width, height)


def draw_pair(
    predicted: NltkTree, gold: NltkTree, distances: Numbers | None = None, title: str = "predicted"
) -> str:
    """Draws the predicted and the gold tree side by side, or one above the other if wide.

    Constituents of the predicted tree that the gold tree has are blue, others are red.

    `distances` and `title` are those of the predicted tree, as in `draw`.

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import draw_pair, right_branching
    >>> gold = Tree.fromstring("(S (NP the cat) (VP saw (NP a dog)))")
    >>> draw_pair(right_branching(gold.leaves()), gold)[:4]
    '<svg'
    """
    layout, gold_layout = layout_tree(predicted, title), layout_tree(gold, "gold")
    spans = {(start, end) for _, start, end in walk(gold)[0]}
    elements, height = _tree_svg(layout, distances, spans, title)
    side_by_side = layout.width <= SIDE_BY_SIDE
    left, top = (layout.width + MARGIN, 0) if side_by_side else (0, height)
    gold_elements, gold_height = _tree_svg(gold_layout, None, None, "gold", left, top)
    elements += gold_elements
    if side_by_side:
        return svg_page(elements, left + gold_layout.width, max(height, gold_height))
    return svg_page(elements, max(layout.width, gold_layout.width), top + gold_height)


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
            shows characters that no installed font has as boxes.
        predicted: `nltk.Tree`.
        gold: `nltk.Tree` to draw beside it, or `None`.
        distances: a number in [0, 1] for each word of the predicted tree, or `None`.
        title: text above the predicted tree.

    Raises:
        ValueError: if the file has another suffix, or the numbers of words and distances differ.
        ImportError: if the file is a PNG and its libraries are not installed.

    >>> from keras_onlstm.parsing import right_branching, save_picture
    >>> save_picture("tree.svg", right_branching("the cat saw a dog".split()))
    """
    if gold is None:
        svg = draw(predicted, distances, title)
    else:
        svg = draw_pair(predicted, gold, distances, title)
    save_svg(path, svg)
