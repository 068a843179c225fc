"""Self-contained HTML pages of pictures."""

from collections.abc import Iterable
from html import escape

from keras_onlstm.utils.svg import drawable

__all__ = ["HEAD", "escaped", "pictures_page"]

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
_TREES = (
    HEAD
    + """<main>
{sentences}
</main>
</html>
"""
)


def escaped(text: object) -> str:
    """A text escaped for HTML."""
    return escape(drawable(text))


def pictures_page(title: str, pictures: Iterable[str]) -> str:
    """An HTML page of SVG pictures, one below the other."""
    boxes = (f'<div class="picture">{picture}</div>' for picture in pictures)
    return _TREES.format(title=escaped(title), sentences="\n".join(boxes))
