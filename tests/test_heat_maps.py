"""Heat maps: every number where it belongs, whatever the words are."""

from xml.etree import ElementTree

import numpy as np
import pytest

from keras_onlstm.parsing import draw_heat_maps, save_heat_maps
from keras_onlstm.parsing.heat_maps import BLUE, CELL

WORDS = ["<eos>", "prices", "fell"]
GATES = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.25, 0.5, 0.0]])


def cells(svg):
    """(column, row, number) of every cell, counted from the leftmost and the topmost one."""
    found = [
        (float(box.get("x")), float(box.get("y")), float(box.get("fill-opacity")))
        for box in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
        if box.get("fill") == BLUE
    ]
    left, top = min(x for x, _, _ in found), min(y for _, y, _ in found)
    return {
        (round((x - left) / CELL, 6), round((y - top) / CELL, 6)): number for x, y, number in found
    }


def texts(svg):
    return [x.text for x in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_every_number_is_a_cell():
    svg = draw_heat_maps(WORDS, {"gates": GATES}, [0.1, 0.9, 0.4])
    # Row 0 has nothing to show: the topmost cell is that of row 1.
    assert cells(svg) == {(0, 0): 1.0, (0, 1): 0.25, (1, 1): 0.5}
    assert sorted(texts(svg)) == sorted(["gates", *WORDS, *WORDS])
    assert all(f"<title>{d}</title>" in svg for d in ("0.100", "0.900", "0.400"))
    assert "<title>0.900</title>" not in draw_heat_maps(WORDS, {"gates": GATES})


def test_maps_stand_three_by_three():
    svg = draw_heat_maps(WORDS, {str(number): GATES for number in range(4)})
    places = cells(svg)
    assert len(places) == 12
    columns, rows = ({round(place[axis], 3) for place in places} for axis in (0, 1))
    assert len(columns) == 6 and len(rows) == 4  # two of each map, in two rows of maps


@pytest.mark.parametrize(
    "word", ["<b>&\"'", "bell\x07", "\ufffe", "$\\frac$", "x" * 90, "", "中文"]
)
def test_hostile_words(word, tmp_path):
    words = [word, "fell"]
    svg = draw_heat_maps(words, {word: [[0, 0], [1, 0]]})
    shown = word.replace("\x07", "\ufffd").replace("\ufffe", "\ufffd")
    assert [text or "" for text in texts(svg)].count(shown) == 3
    pytest.importorskip("matplotlib")
    if word.isascii():
        save_heat_maps(tmp_path / "x.png", words, {word: [[0, 0], [1, 0]]}, [0, 1])
        assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"


def test_files(tmp_path):
    given = WORDS, {"gates": GATES, "predict": GATES, "reading 1": GATES}, [0.1, 0.9, 0.4]
    save_heat_maps(tmp_path / "x.svg", *given)
    assert (tmp_path / "x.svg").read_text() == draw_heat_maps(*given)
    with pytest.raises(ValueError, match=r"x\.pdf: a picture ends in \.svg or \.png"):
        save_heat_maps(tmp_path / "x.pdf", *given)
    image = pytest.importorskip("matplotlib.image")
    save_heat_maps(tmp_path / "x.png", *given)
    pixels = image.imread(tmp_path / "x.png")[..., :3]
    # The darkest blue of the map, where a gate is 1, is somewhere on it.
    assert np.abs(pixels - np.array([8, 48, 107]) / 255).max(-1).min() < 0.02


@pytest.mark.parametrize(
    ("words", "maps", "distances", "message"),
    [
        ([], {"gates": np.zeros((0, 0))}, None, "needs a word at least"),
        (WORDS, {}, None, "and a map"),
        (WORDS, {"gates": GATES[:2]}, None, r"gates: 3 words .* not of the shape \(2, 3\)"),
        (WORDS, {"gates": 2 * GATES}, None, "gates: the numbers of a map are from 0 to 1"),
        (WORDS, {"gates": GATES * np.nan}, None, "gates: the numbers of a map are from 0 to 1"),
        (WORDS, {"gates": GATES}, [0.5], "3 words need as many distances, not 1"),
    ],
)
def test_what_cannot_be_drawn(words, maps, distances, message):
    with pytest.raises(ValueError, match=message):
        draw_heat_maps(words, maps, distances)
