"""Heat maps: positions of the numbers and words that need escaping."""

import numpy as np
import pytest

from helpers.pictures import HOSTILE, SHOWN, elements, numbers, png_size, size, texts
from keras_onlstm.drawing.heat_maps import BLUE, CELL
from keras_onlstm.parsing import draw_heat_maps, save_heat_maps

WORDS = ["<eos>", "prices", "fell"]
GATES = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.25, 0.5, 0.0]])


def cells(svg):
    """Column, row and number of every cell, from the top left."""
    found = [
        numbers(box, "x", "y", "fill-opacity")
        for box in elements(svg, "rect")
        if box.get("fill") == BLUE
    ]
    left, top = min(x for x, _, _ in found), min(y for _, y, _ in found)
    return {
        (round((x - left) / CELL, 6), round((y - top) / CELL, 6)): number for x, y, number in found
    }


def test_each_number_has_a_cell():
    svg = draw_heat_maps(WORDS, {"gates": GATES}, [0.1, 0.9, 0.4])
    # Row 0 is empty, so the topmost cell is that of row 1.
    assert cells(svg) == {(0, 0): 1.0, (0, 1): 0.25, (1, 1): 0.5}
    assert sorted(texts(svg)) == sorted(["gates", *WORDS, *WORDS])
    assert all(f"<title>{d}</title>" in svg for d in ("0.100", "0.900", "0.400"))
    assert "<title>0.900</title>" not in draw_heat_maps(WORDS, {"gates": GATES})


def test_maps_are_in_rows_of_three():
    svg = draw_heat_maps(WORDS, {str(number): GATES for number in range(4)})
    places = cells(svg)
    assert len(places) == 12
    columns, rows = ({round(place[axis], 3) for place in places} for axis in (0, 1))
    assert len(columns) == 6 and len(rows) == 4  # two of each map, in two rows of maps


def test_special_words_are_escaped():
    maps = {word: np.zeros((len(HOSTILE),) * 2) for word in HOSTILE}
    found = texts(draw_heat_maps(HOSTILE, maps))
    assert len(found) == len(HOSTILE) * (1 + 2 * len(HOSTILE)) and set(found) == set(SHOWN)


def test_saves_svg_and_png(tmp_path):
    given = WORDS, {"gates": GATES, "predict": GATES, "reading 1": GATES}, [0.1, 0.9, 0.4]
    save_heat_maps(tmp_path / "x.svg", *given)
    svg = draw_heat_maps(*given)
    assert (tmp_path / "x.svg").read_text() == svg
    with pytest.raises(ValueError, match=r"x\.pdf: .* must end in \.svg or \.png"):
        save_heat_maps(tmp_path / "x.pdf", *given)
    pytest.importorskip("resvg_py")
    save_heat_maps(tmp_path / "x.png", *given)
    assert png_size(tmp_path / "x.png") == [2 * side for side in size(svg)]


@pytest.mark.parametrize(
    ("words", "maps", "distances", "message"),
    [
        ([], {"gates": np.zeros((0, 0))}, None, "words and maps must not be empty"),
        (WORDS, {}, None, "words and maps must not be empty"),
        (
            WORDS,
            {"gates": GATES[:2]},
            None,
            r"gates: a map of 3 words must have .* shape is \(2, 3\)",
        ),
        (WORDS, {"gates": 2 * GATES}, None, "gates: .* numbers from 0 to 1"),
        (WORDS, {"gates": GATES * np.nan}, None, "gates: .* numbers from 0 to 1"),
        (WORDS, {"gates": GATES}, [0.5], "3 words need 3 distances, not 1"),
    ],
)
def test_rejects_invalid_arguments(words, maps, distances, message):
    with pytest.raises(ValueError, match=message):
        draw_heat_maps(words, maps, distances)
