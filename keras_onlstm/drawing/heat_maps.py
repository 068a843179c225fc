"""Attention maps as pictures: a row for each word, a column for each word it attends to."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from keras_onlstm.drawing.svg import CHARACTER, FONT, MARGIN, drawable, save_svg, svg_page, svg_text
from keras_onlstm.utils import StrPath

CELL, TITLE, BARS = 18, 24, 46  # pixels
BLUE, BAR, GRID = "#1b6ca8", "#9db8cc", "#dddddd"
ACROSS = 3  # maps side by side


def _check(words, maps, distances):
    words, count = [drawable(word) for word in words], len(words)
    if not words or not maps:
        raise ValueError("words and maps must not be empty.")
    arrays = {name: np.asarray(values, "float64") for name, values in maps.items()}
    for name, array in arrays.items():
        if array.shape != (count, count) or not ((array >= 0) & (array <= 1)).all():
            raise ValueError(
                f"{name}: a map of {count} words must have the shape ({count}, {count}) and "
                f"numbers from 0 to 1; its shape is {array.shape}."
            )
    if distances is not None:
        distances = np.asarray(distances, "float64")
        if distances.shape != (count,):
            raise ValueError(f"{count} words need {count} distances, not {distances.size}.")
    return words, arrays, distances


def draw_heat_maps(
    words: Sequence[str], maps: Mapping[str, npt.ArrayLike], distances: npt.ArrayLike | None = None
) -> str:
    """Draws attention maps of a sentence as SVG, three side by side.

    Args:
        words: list of T words.
        maps: dictionary from titles to numbers (T, T) from 0 to 1; larger is darker. Entry (t, s)
            is how much word t attends to word s.
        distances: numbers (T,) from 0 to 1, drawn as bars above every map, or `None`.

    Raises:
        ValueError: if `words` or `maps` is empty, or a shape or a number is invalid.

    >>> import numpy as np
    >>> from keras_onlstm.parsing import draw_heat_maps
    >>> draw_heat_maps(["prices", "fell"], {"gates": np.tril(np.ones((2, 2)), -1)})[:4]
    '<svg'
    """
    words, arrays, bars = _check(words, maps, distances)
    margin = max(map(len, words)) * CHARACTER + 6  # for the words at the left and below
    side = len(words) * CELL
    bars_height = BARS if bars is not None else 0
    width = max(margin + side, *(len(drawable(name)) * CHARACTER for name in arrays)) + MARGIN
    height = TITLE + bars_height + side + margin + MARGIN
    elements = []
    for index, (name, array) in enumerate(arrays.items()):
        left, top = MARGIN + index % ACROSS * width, MARGIN + index // ACROSS * height
        elements.append(svg_text(left, top + FONT, name, anchor="start", weight="bold"))
        x, y = left + margin, top + TITLE + bars_height  # of the first cell
        if bars is not None:
            elements += [
                _box(x + s * CELL + 4, y - BARS * d, CELL - 8, BARS * d, BAR, 1, f"{d:.3f}")
                for s, d in enumerate(bars)
            ]
        frame = f'width="{side}" height="{side}" fill="none" stroke="{GRID}"'
        elements.append(f'<rect x="{x:.1f}" y="{y:.1f}" {frame}/>')
        for t, row in enumerate(array):
            elements.append(svg_text(x - 4, y + (t + 0.75) * CELL, words[t], "end"))
            below = x + (t + 0.75) * CELL, y + side + 4
            elements.append(svg_text(*below, words[t], "end", rotated=True))
            elements += [
                _box(x + s * CELL, y + t * CELL, CELL, CELL, BLUE, value, f"{value:.3f}")
                for s, value in enumerate(row)
                if value > 0
            ]
    across, rows = min(len(arrays), ACROSS), -(-len(arrays) // ACROSS)
    return svg_page(elements, MARGIN + across * width, MARGIN + rows * height)


def _box(x, y, width, height, colour, opacity, title):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{colour}" fill-opacity="{opacity:.3f}"><title>{title}</title></rect>'
    )


def save_heat_maps(
    path: StrPath,
    words: Sequence[str],
    maps: Mapping[str, npt.ArrayLike],
    distances: npt.ArrayLike | None = None,
) -> None:
    """Writes attention maps to a file: `draw_heat_maps` to a path as in `save_picture`.

    >>> from keras_onlstm.parsing import save_heat_maps
    >>> save_heat_maps("gates.svg", ["prices", "fell"], {"gates": [[0, 0], [0.5, 0]]}, [0.1, 0.7])
    """
    save_svg(path, draw_heat_maps(words, maps, distances))
