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
    """Draws a tree with box-drawing characters, with the root at the left and a word in each line.

    Words come last in their lines, so that wide characters do not shift the drawing.

    Args:
        tree: `nltk.Tree`. Its labels are not written. White space in its words is written as `_`,
            and an empty word as `_`.

    Returns:
        String with a line for each word and each constituent without children.

    Example:

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
            word = re.sub(r"\s", "_", str(node)) or "_"
            lines.append(f"{before}─ {word}")
            continue
        if not node:
            lines.append(f"{before}─")
            continue
        last = len(node) - 1
        children = []
        for i, child in enumerate(node):
            if i == 0:
                first = f"{before}─┬" if last else f"{before}──"
            else:
                first = f"{below} {'├' if i < last else '└'}"
            children.append((child, first, f"{below} {'│' if i < last else ' '}"))
        pending += reversed(children)
    return "\n".join(lines)


def conll(tree: NltkTree) -> str:
    """Writes a tree in the column format of the CoNLL shared tasks of 2005 and 2012.

    The three columns, separated by tabs, are the 0-based number of the word, the word, and its part
    of the bracketed tree, where `*` marks the word.

    Args:
        tree: `nltk.Tree`. White space in its words is written as `_`, and an empty word as `_`. In
            its labels `*` is written as `_`, and other characters as by `brackets`.

    Returns:
        String with a line for each word. Replacing each `*` by its word gives the bracketed tree.

    Raises:
        ValueError: if a constituent has no words.

    Example:

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

    words: list[str] = []
    before: list[str] = []  # the brackets before and after each word
    after: list[str] = []
    opening = ""
    pending = [tree]
    while pending:
        node = pending.pop()
        if node is None:
            after[-1] += ")"
        elif isinstance(node, Tree):
            if not node:
                raise ValueError(
                    "tree has a constituent without words, which the CoNLL format cannot hold."
                )
            opening += "(" + escape(node.label()).replace("*", "_")
            pending += [None, *reversed(list(node))]
        else:
            words.append(re.sub(r"\s", "_", str(node)) or "_")
            before.append(opening)
            after.append("")
            opening = ""
    return "\n".join(
        f"{number}\t{word}\t{start}*{end}"
        for number, (word, start, end) in enumerate(zip(words, before, after, strict=True))
    )


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
    words = 0  # so far
    x: float = MARGIN
    finished: list[_Node] = []  # nodes that wait for their parent
    pending: list[tuple[NltkTree, int | None]] = [(tree, None)]
    label_width: float = 0  # of the constituents that contain only the next word
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


def _tree_svg(layout, distances, gold_spans, title, left, top):
    """Returns (elements, height) of one tree."""
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
        elif node.end - node.start < layout.nodes[-1].end:  # the whole sentence needs no dot
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
    """Draws the predicted and the gold tree side by side, or one above the other if wide.

    Constituents of the predicted tree that the gold tree has are blue, others are red.

    Args:
        predicted: `nltk.Tree`.
        gold: `nltk.Tree` over as many words.
        distances: a number in [0, 1] for each word of the predicted tree, or `None`.
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
    layout, gold_layout = _checked(predicted, distances, title), layout_tree(gold, "gold")
    spans = {(start, end) for _, start, end in walk(gold)[0]}
    elements, height = _tree_svg(layout, distances, spans, title, 0, 0)
    side_by_side = layout.width <= SIDE_BY_SIDE
    left, top = (layout.width + MARGIN, 0) if side_by_side else (0, height)
    gold_elements, gold_height = _tree_svg(gold_layout, None, None, "gold", left, top)
    elements += gold_elements
    if side_by_side:
        return svg_page(elements, left + gold_layout.width, max(height, gold_height))
    return svg_page(elements, max(layout.width, gold_layout.width), top + gold_height)


def _checked(tree, distances, title):
    """Computes the layout of a tree, and checks the number of distances."""
    layout = layout_tree(tree, title)
    words = layout.nodes[-1].end
    if distances is not None and len(distances) != words:
        raise ValueError(
            f"distances must have a number for each of {words} words, got {len(distances)}."
        )
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
            shows characters that no installed font has as boxes.
        predicted: `nltk.Tree`.
        gold: `nltk.Tree` to draw beside it, or `None`.
        distances: a number in [0, 1] for each word of the predicted tree, or `None`.
        title: text above the predicted tree.

    Raises:
        ValueError: if the file has another suffix, or the numbers of words and distances differ.
        ImportError: if the file is a PNG and its libraries are not installed.

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
