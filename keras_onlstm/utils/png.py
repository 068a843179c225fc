"""What PNG pictures need of Matplotlib: figures, and fonts with what its default lacks."""

import functools
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.utils.libraries import not_installed
from keras_onlstm.utils.svg import drawable
from keras_onlstm.utils.types import StrPath

__all__ = [
    "Fitted",
    "add_curves",
    "check_png",
    "fitted",
    "lacking",
    "new_figure",
    "warn_lacking",
    "write_text",
]

REPLACEMENT = "\ufffd"  # which DejaVu Sans has, and that comes with Matplotlib
MOST = 20  # characters that a message lists

Curve = Sequence[tuple[str, Sequence[float]]]


def check_png() -> None:
    """Refuses to draw PNG where what it needs is missing.

    Raises:
        ImportError: if Matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise not_installed("PNG", "matplotlib", error=error) from error


def new_figure(width: float, height: float, layout: str | None = None) -> Any:
    """A figure of so many inches, which no window shows.

    Raises:
        ImportError: if Matplotlib is not installed.
    """
    check_png()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


class Fitted(NamedTuple):
    """A text as installed fonts can show it."""

    text: str  # U+FFFD for each character that no font has
    families: list[str]  # the default first, then those that have the rest
    missing: frozenset[str]  # characters


def fitted(text: str, weight: str) -> Fitted:
    """Finds the fonts for a text.

    Args:
        text: without control characters.
        weight: "normal" or "bold".

    Returns:
        `Fitted`. Characters that nobody sees, as joiners, are left out where no font has them.

    Example:

    >>> from keras_onlstm.utils.png import fitted
    >>> fitted("a cat", "normal").missing
    frozenset()
    """
    from matplotlib import rcParams

    default = tuple(rcParams["font.family"])
    found = {character: _family(character, weight, default) for character in text}
    lacking = {character for character, family in found.items() if family is None}
    unseen = {character for character in lacking if unicodedata.category(character) == "Cf"}
    missing = frozenset(lacking - unseen)
    if missing:
        found[REPLACEMENT] = _family(REPLACEMENT, weight, default)
    table = {ord(c): "" if c in unseen else REPLACEMENT for c in lacking}
    families = dict.fromkeys([*default, *filter(None, found.values())])
    return Fitted(text.translate(table), list(families), missing)


def lacking(missing: frozenset[str]) -> str:
    """Says that no font has some characters, by their code where nobody sees them.

    Args:
        missing: set of single characters, as `fitted` gives them.

    Returns:
        Text without an end, for what to do about it: the first 20, and how many there are besides.

    Example:

    >>> from keras_onlstm.utils.png import lacking
    >>> lacking(frozenset("b\\ufdd0a"))
    'no installed font has a b U+FDD0: drawn as \ufffd'
    """
    listed = [c if c.isprintable() else f"U+{ord(c):04X}" for c in sorted(missing)]
    rest = len(listed) - MOST
    shown = " ".join(listed[:MOST]) + (f" and {rest} more" if rest > 0 else "")
    return f"no installed font has {shown}: drawn as \ufffd"


def warn_lacking(path: StrPath, missing: frozenset[str]) -> None:
    """Warns the caller of the caller if a picture lacks characters, as `fitted` gives them."""
    if missing:
        warnings.warn(f"{path}: {lacking(missing)}, and a .svg file shows them.", stacklevel=3)


def write_text(
    axes: Any, x: float, y: float, text: object, weight: str = "normal", **style: Any
) -> frozenset[str]:
    """Writes a text as a picture can show it, and returns the characters that no font has."""
    text, families, missing = fitted(drawable(text), weight)
    style |= {"family": families, "weight": weight}
    # As it stands: dollars are no formulas.
    axes.text(x, y, text, parse_math=False, **style)
    return missing


def add_curves(
    axes: Any, curves: Sequence[Curve], colour: str, filled: bool = False, dashed: bool = False
) -> None:
    """Draws curves, all at once: where there are thousands, one by one takes seconds.

    Args:
        axes: of Matplotlib.
        curves: lists of pieces as in the paths of SVG: M moves to a point, L draws a line there, Q
            a bow that leaves towards its first point and ends in the second.
        colour: of the lines, or of what they enclose.
        filled: whether it is the latter.
        dashed: whether lines are.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    codes = {"M": [Path.MOVETO], "L": [Path.LINETO], "Q": [Path.CURVE3] * 2}
    paths = []
    for curve in curves:
        points = np.array([number for _, numbers in curve for number in numbers]).reshape(-1, 2)
        paths.append(Path(points, [code for kind, _ in curve for code in codes[kind]]))
    colours = (colour, "none") if filled else ("none", colour)
    style = {"facecolors": colours[0], "edgecolors": colours[1], "linewidths": 0.8}
    style |= {"linestyles": [(0, (5, 3.75)) if dashed else "solid"]}
    axes.add_collection(PathCollection(paths, **style), autolim=False)


@functools.cache
def _family(character, weight, default):
    """The first family that shows a character, or `None`."""
    for family in default:
        if _shows(_path(family, weight), character):
            return family
    for path, family in _installed():
        if _shows(path, character) and _shows(_path(family, weight), character):
            return family
    return None


def _installed():
    """(path, family) of upright fonts of a usual weight, one after another as they are called.

    Fonts of last resort have every character, and show none.
    """
    from matplotlib.font_manager import fontManager

    for entry in sorted(fontManager.ttflist, key=lambda entry: entry.name):
        usual = entry.style == "normal" and entry.size == "scalable" and 350 <= entry.weight <= 500
        if usual and "lastresort" not in entry.name.replace(" ", "").lower():
            yield entry.fname, entry.name


def _path(family, weight):
    """The file that Matplotlib takes, or `None`."""
    from matplotlib.font_manager import FontProperties, findfont

    try:
        return findfont(FontProperties(family=[family], weight=weight), fallback_to_default=False)
    except ValueError:  # it is not installed
        return None


@functools.cache
def _codes(path):
    """All that a font has, in order; nothing of a file that is no longer there."""
    from matplotlib.font_manager import get_font

    try:
        return np.sort(np.fromiter(get_font(path).get_charmap(), np.int64))
    except (OSError, RuntimeError):
        return np.empty(0, np.int64)


def _shows(path, character):
    """Whether a font has a character, and other than as colours alone, which leave no ink."""
    if path is None:
        return False
    codes, code = _codes(path), ord(character)
    place = np.searchsorted(codes, code)
    if place == len(codes) or codes[place] != code:
        return False
    return unicodedata.category(character)[0] in "CZM" or _has_ink(path, code)


def _has_ink(path, code):
    from matplotlib.font_manager import get_font

    left, bottom, right, top = get_font(path).load_char(code).bbox
    return left < right and bottom < top
