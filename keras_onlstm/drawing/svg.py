"""SVG text elements and pictures, files of them as SVG or PNG, and self-contained HTML pages."""

import functools
import re
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.libraries import not_installed

FONT, CHARACTER, MARGIN = 13, 7.4, 12  # pixels: font, widest usual characters, margin

# Control characters, unpaired surrogates, U+FFFE and U+FFFF are invalid in XML. Bidirectional
# embeddings, overrides and isolates change the direction of the text after them.
_FORBIDDEN = re.compile(
    "[^ -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)


def drawable(text: object) -> str:
    """The text of an object, with U+FFFD for characters that a picture or page cannot show."""
    return _FORBIDDEN.sub("\ufffd", re.sub(r"\s", " ", str(text)))


def svg_text(
    x: float,
    y: float,
    text: object,
    anchor: str = "middle",
    size: int = FONT,
    weight: str = "normal",
    halo: bool = False,
    rotated: bool = False,
) -> str:
    """A text element, optionally with a white halo or rotated to read upwards."""
    style = ' stroke="white" stroke-width="4" paint-order="stroke"' if halo else ""
    style += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if rotated else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}"{style}>{escaped(text)}</text>'
    )


def svg_page(
    elements: Iterable[str], width: float, height: float, title: str = "", description: str = ""
) -> str:
    """A picture on white, with a title and a description for screen readers."""
    role, label = (' role="img"', f"<title>{escaped(title)}</title>") if title else ("", "")
    label += f"<desc>{escaped(description)}</desc>" if description else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif"'
        f'{role}>{label}<rect width="100%" height="100%" fill="white"/>{"".join(elements)}</svg>'
    )


def check_png() -> Callable[..., bytes]:
    """The function that renders an SVG as PNG, with a font, because none may be installed."""
    try:
        import font_source_sans_pro
        import resvg_py
    except ImportError as error:
        raise not_installed("PNG", "resvg-py", "font-source-sans-pro", error=error) from error

    return functools.partial(
        resvg_py.svg_to_bytes,
        font_dirs=[font_source_sans_pro.font_directory],
        sans_serif_family="Source Sans Pro",
    )


def save_svg(path: StrPath, svg: str) -> None:
    """Writes a picture as SVG or PNG, by the extension of its path."""
    path = Path(path)
    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"{path}: the name of a picture must end in .svg or .png.")
    data = svg.encode()
    if path.suffix == ".png":
        # Twice the size for sharp text, but at most 65,000 pixels per side to limit the memory.
        longest = max(int(side) for side in re.findall(r'(?:width|height)="(\d+)', svg)[:2])
        data = check_png()(svg, zoom=min(2, 65_000 / longest))
    with replacing(path) as temporary:
        temporary.write_bytes(data)


HEAD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 Helvetica, Arial, sans-serif; margin: 1.5rem auto; max-width: 78rem;
  padding: 0 1rem; color: #222; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ border-bottom: 1px solid #ddd; padding: .25rem .7rem; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
details {{ border-bottom: 1px solid #ddd; padding: .35rem 0; }}
summary {{ cursor: pointer; overflow-wrap: anywhere; }}
summary b {{ display: inline-block; min-width: 4rem; }}
.picture {{ overflow-x: auto; }}
button {{ font: inherit; margin-right: .4rem; }}
</style>
<h1>{title}</h1>
"""
_PAGE = HEAD + "<main>\n{pictures}\n</main>\n</html>\n"


def escaped(text: object) -> str:
    """A text escaped for HTML."""
    return escape(drawable(text))


def pictures_page(title: str, pictures: Iterable[str]) -> str:
    """An HTML page of SVG pictures, one below the other."""
    boxes = (f'<div class="picture">{picture}</div>' for picture in pictures)
    return _PAGE.format(title=escaped(title), pictures="\n".join(boxes))
