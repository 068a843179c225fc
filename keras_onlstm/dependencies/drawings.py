"""Drawings of dependency trees: text for a terminal, SVG, PNG, LaTeX, HTML pages."""

from collections.abc import Sequence

from keras_onlstm.dependencies.arcs import drawing
from keras_onlstm.dependencies.box_drawing import text_of
from keras_onlstm.dependencies.latex import latex_of
from keras_onlstm.dependencies.picture import svg_of
from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.arguments import integer, one_of
from keras_onlstm.utils.pages import pictures_page
from keras_onlstm.utils.svg import save_svg
from keras_onlstm.utils.types import StrPath

__all__ = ["draw", "page", "save_picture"]

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
    one_of("format", format, FORMATS)
    drawn = drawing(tree, arcs, numbers, title)
    if width is None:
        return FORMATS[format](drawn)
    if format != "text":
        raise ValueError(f"width is of the format 'text', not of {format!r}.")
    return text_of(drawn, integer("width", width))


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
