"""What pictures share: text that can be drawn, pages of SVG, and files of either ending.

SVG is text without dependencies; PNG needs Matplotlib.
"""

import re
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.types import StrPath

__all__ = ["CHARACTER", "FONT", "MARGIN", "drawable", "svg_page", "svg_text"]
__all__ += ["write_file"]

FONT, CHARACTER, MARGIN = 13, 7.4, 12  # pixels: font, its widest usual characters, around all

# What XML forbids: control characters, halves of surrogate pairs, U+FFFE and U+FFFF. And what would
# turn the words after it around: embeddings, overrides and isolates of bidirectional text.
_FORBIDDEN = re.compile(
    "[^ -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)


def drawable(text: object) -> str:
    """A text as a picture or a page can show it.

    Args:
        text: anything, as `str` gives it.

    Returns:
        String: white space as blanks, U+FFFD for each character that XML and HTML forbid or that
        would change the direction of other texts.

    Example:

    >>> from keras_onlstm.utils.svg import drawable
    >>> drawable("bell\\x07") == "bell\\N{REPLACEMENT CHARACTER}"
    True
    """
    return _FORBIDDEN.sub("\ufffd", re.sub(r"\s", " ", str(text)))


def svg_text(
    x: float,
    y: float,
    text: object,
    anchor: str = "middle",
    size: int = FONT,
    weight: str = "normal",
    halo: bool = False,
    turned: bool = False,
) -> str:
    """A text element; with a halo white behind it, turned upwards or not."""
    behind = ' stroke="white" stroke-width="4" paint-order="stroke"' if halo else ""
    behind += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}"{behind}>{escape(drawable(text))}</text>'
    )


def svg_page(
    elements: Iterable[str], width: float, height: float, title: str = "", description: str = ""
) -> str:
    """A whole picture, on white; with a title and a description for those who do not see it."""
    role, said = "", ""
    if title:
        role, said = ' role="img"', f"<title>{escape(drawable(title))}</title>"
        said += f"<desc>{escape(drawable(description))}</desc>" if description else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif"'
        f'{role}>{said}<rect width="100%" height="100%" fill="white"/>{"".join(elements)}</svg>'
    )


def write_file(
    path: StrPath, svg: Callable[[], str], figure: Callable[[], tuple[Any, frozenset[str]]]
) -> frozenset[str]:
    """Writes a picture as its name ends.

    Args:
        path: ends in `.svg` or `.png`.
        svg: function that returns it as SVG.
        figure: function that returns it as a Matplotlib figure, and the characters that no font
            has.

    Returns:
        These characters; none of an SVG.

    Raises:
        ValueError: if the file has another ending.
    """
    path = Path(path)
    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"{path}: a picture ends in .svg or .png.")
    if path.suffix == ".svg":
        text = svg()
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return frozenset()
    drawn, missing = figure()
    with replacing(path) as temporary:
        # Matplotlib paints fewer than 2^16 pixels a side.
        drawn.savefig(temporary, dpi=min(150, 65_000 / max(drawn.get_size_inches())))
    return missing
