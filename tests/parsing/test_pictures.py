"""Pictures of trees: SVG against files that were looked at, and PNG made of it.

`PYTHONPATH=tests python tests/parsing/test_pictures.py` writes the files of `data/pictures` anew.
Look at them before they are kept: these files are what is right.
"""

import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from nltk import Tree

from helpers.pictures import HOSTILE, SHOWN, elements, numbers, png_size, size, texts
from keras_onlstm.drawing.svg import save_svg
from keras_onlstm.parsing import (
    draw,
    draw_pair,
    left_branching,
    random_tree,
    right_branching,
    save_picture,
)

pytestmark = pytest.mark.keras_free
FILES = Path(__file__).parents[1] / "data/pictures"

SHORT = Tree.fromstring("(X the (X (X cat saw) (X a dog)))")
GOLD = Tree.fromstring("(S (NP (DT the) cat) (VP saw (NP (X a dog))))")
BARS = np.array([0.9, 0.0, 1.0, 0.25, 0.004])
LABELS = Tree.fromstring(
    "(SENTENCE-OF-TWO (ADVP (RATHER-LONG X)) (X (X it) (ZP-LONGER (x-long I))) (X (X is) & (Q so)))"
)
LONG = [f"{'extraordinarily' if i % 3 else 'a'}{i}" for i in range(8)]
LONG_GOLD = Tree("S", [Tree("NP-AS-LONG-AS-ITS-WORD", [LONG[0]]), left_branching(LONG[1:])])
CASES = {  # predicted, gold, distances, title
    "one": (SHORT, None, BARS, "layer 2"),
    "labels": (LABELS, None, None, "a title that is longer than the words below it <are>, &c."),
    "beside": (SHORT, GOLD, BARS, "predicted"),
    "beside_labels": (GOLD, right_branching(GOLD.leaves()), None, "a title wider than these words"),
    "above": (right_branching(LONG), LONG_GOLD, np.linspace(0, 1, 8), "predicted"),
    "above_labels": (LONG_GOLD, right_branching(LONG), None, "predicted"),
    "gold_is_wider": (right_branching(["x"] * 4), Tree("X", [Tree("P" * 30, ["x"])] * 4), None, ""),
}


def drawn(predicted, gold, distances, title):
    if gold is None:
        return draw(predicted, distances, title)
    return draw_pair(predicted, gold, distances, title)


def lines(name):
    """The picture of a case with one element per line."""
    return drawn(*CASES[name]).replace("><", ">\n<") + "\n"


@pytest.mark.parametrize("name", CASES)
def test_svg_matches_stored_file(name, tmp_path):
    assert lines(name) == (FILES / f"{name}.svg").read_text("utf-8")
    save_picture(tmp_path / "tree.svg", *CASES[name])
    assert (tmp_path / "tree.svg").read_text("utf-8") == drawn(*CASES[name])


@pytest.mark.parametrize(("words", "branches"), [(17, 16 * 26), (18, 430), (5000, 430)])
def test_deep_trees_have_lower_levels(words, branches):
    text = draw(right_branching(["a"] * words), [0.5] * words)
    assert size(text)[1] == 22 + branches + 12 + 13 + 54 + 12
    assert len(elements(text, "path")) == 2 * (words - 1)
    assert len(elements(text, "circle")) == words - 2  # one for each inner constituent


def test_rejects_distances_of_wrong_length(tmp_path):
    for given in (BARS[:4], [*BARS, 0.5]):
        for gold in (None, GOLD):
            with pytest.raises(ValueError, match=f"number for each of 5 words, got {len(given)}"):
                save_picture(tmp_path / "tree.svg", SHORT, gold, given)
    assert not list(tmp_path.iterdir())


def segments(text):
    """Horizontal and vertical segments of the branches."""
    across, down = [], []
    for path in elements(text, "path"):
        x, y, cx, cy = map(float, re.match(r"M(.+) (.+)H(.+)V(.+)", path.get("d")).groups())
        across.append((y, min(x, cx), max(x, cx)))
        down.append((cx, min(y, cy), max(y, cy)))
    return across, down


@pytest.mark.parametrize("words", [2, 7, 40, 120])
def test_branches_and_words_do_not_overlap(words):
    tokens = [f"word{i}" if i % 3 else "a" for i in range(words)]
    trees = [random_tree(tokens, seed) for seed in range(5)]
    trees += [left_branching(tokens), right_branching(tokens)]
    for tree in trees:
        text = draw(tree)
        across, down = segments(text)
        for x, top, bottom in down:
            for y, left, right in across:
                assert not (left < x - 0.2 and x + 0.2 < right and top + 0.2 < y < bottom - 0.2)
        boxes = []
        for element in elements(text, "text"):
            if element.text:
                x, half = numbers(element, "x", "font-size")
                half *= len(element.text) * 0.55 / 2
                boxes.append((x - half, x + half))
        assert all(one[1] < two[0] for one, two in pairwise(boxes))
        assert boxes[-1][1] <= size(text)[0] and boxes[0][0] >= 0


def test_special_words_are_escaped():
    gold = Tree("$\\sum\x01", [Tree("NP\uffff", HOSTILE[:4]), *HOSTILE[4:]])
    found = texts(draw_pair(right_branching(HOSTILE), gold, None, "$\\alpha\x02"))
    assert found[: 1 + len(SHOWN)] == ["$\\alpha\ufffd", *SHOWN]
    assert "NP\ufffd" in found and "$\\sum\ufffd" in found


@pytest.mark.parametrize("name", ["one", "beside_labels"])
def test_png_has_twice_the_size_of_svg(name, tmp_path):
    pytest.importorskip("resvg_py")
    save_picture(tmp_path / "tree.png", *CASES[name])
    svg = drawn(*CASES[name])
    assert png_size(tmp_path / "tree.png") == [2 * side for side in size(svg)]
    assert set(CASES[name][0].leaves()) <= set(texts(svg))


def test_png_does_not_need_system_fonts(tmp_path, monkeypatch):
    resvg = pytest.importorskip("resvg_py")
    paint = resvg.svg_to_bytes
    monkeypatch.setattr(
        resvg, "svg_to_bytes", lambda *a, **options: paint(*a, skip_system_fonts=True, **options)
    )
    svg = draw(right_branching(["the", "<eos>", "Žluťoučký", "Жук", "γάτα"]), None, "bold")

    def painted(svg):
        save_svg(tmp_path / "tree.png", svg)
        return (tmp_path / "tree.png").read_bytes()

    shown = re.findall(r">([^<]+)</text>", svg)
    assert len({painted(svg), *(painted(svg.replace(f">{word}<", "><")) for word in shown)}) == 7


def test_png_of_long_and_special_words(tmp_path):
    pytest.importorskip("resvg_py")
    save_picture(tmp_path / "tree.png", right_branching([*HOSTILE, "\ufdd0", *["w" * 80] * 60]))
    assert 64_990 < png_size(tmp_path / "tree.png")[0] <= 65_000


def test_rejects_paths_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"three\.pdf: .* must end in \.svg or \.png"):
        save_picture(tmp_path / "three.pdf", SHORT)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ImportError, match=r"PNG needs .*: pip install resvg-py font-source-sans"):
        save_picture(tmp_path / "tree.png", SHORT)
    assert not list(tmp_path.iterdir())


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for case in CASES:
        (FILES / f"{case}.svg").write_text(lines(case), encoding="utf-8")
