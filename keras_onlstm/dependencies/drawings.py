"""Drawings of dependency trees: text for a terminal, SVG, PNG, LaTeX, and pages of many."""

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
    """A dependency tree, drawn with arcs over its words.

    An arc stands one level above all that it covers. It begins at a side of its head and ends, with
    an arrow, at the middle of its dependent. Where the tree is not projective arcs cross.

    Args:
        tree: `DependencyTree`. Its relations, if it has some, stand on the arcs.
        format: `"text"`, characters for a terminal, with `_` for their white space; `"svg"`; or
            `"latex"`, code for the package `tikz-dependency`.
        arcs: `"heads"`, from every head to its dependents; `"edges"`, the steps of the paths on
            which a top-down model generates the words (`DependencyTree.steps`), with their types;
            or `"both"`, the edges below the words.
        numbers: whether the places of the words in breadth-first order stand below them.
        title: text above; a comment in LaTeX.
        width: columns of the terminal: text that is wider comes in pieces, one below the other, cut
            between words. `None` cuts nothing.

    Returns:
        String.

    Raises:
        ValueError: if a format or what the arcs shall be is unknown, edges or numbers are asked for
            and the tree is not projective, or something else than text has a width.

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
        arcs: as in `draw`.
        numbers: as in `draw`.
        title: text above the tree.

    Raises:
        ValueError: if the file has another ending, or as in `draw`.
        ImportError: if PNG is asked for, and its libraries are not installed.

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
    """An HTML page of dependency trees, one below the other, which needs no network.

    Args:
        trees: list of `DependencyTree`.
        arcs: as in `draw`.
        numbers: likewise.
        title: of the page.
        captions: list of as many texts, each above its tree, or `None`.

    Returns:
        String.

    Raises:
        ValueError: if there are not as many captions as trees, or as in `draw`.

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
