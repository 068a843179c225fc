"""Pictures of trees, to the pixel: SVG against files that were looked at, PNG against the SVG.

`python tests/test_picture_values.py` writes the files of `data/pictures` anew. Look at them before
they are kept: these files are what is right.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from nltk import Tree

from keras_onlstm.parsing import draw, draw_pair, left_branching, right_branching, save_picture

pytestmark = pytest.mark.keras_free
FILES = Path(__file__).parent / "data/pictures"
SVG = "{http://www.w3.org/2000/svg}"

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
    "labels": (
        LABELS,
        None,
        None,
        "a title that is longer than the words below it <are>, &c.",
    ),
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
    """The picture of a case, an element a line."""
    return drawn(*CASES[name]).replace("><", ">\n<") + "\n"


@pytest.mark.parametrize("name", CASES)
def test_svg(name, tmp_path):
    assert lines(name) == (FILES / f"{name}.svg").read_text("utf-8")
    predicted, gold, distances, title = CASES[name]
    save_picture(tmp_path / "tree.svg", predicted, gold, distances, title)
    assert (tmp_path / "tree.svg").read_text("utf-8") == drawn(*CASES[name])


def test_defaults():
    assert draw(GOLD) == draw(GOLD, None, "")
    assert draw_pair(SHORT, GOLD) == draw_pair(SHORT, GOLD, None, "predicted")


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def size(text):
    return numbers(ElementTree.fromstring(text), "width", "height")


@pytest.mark.parametrize(("words", "branches"), [(17, 16 * 26), (18, 430), (60, 430)])
def test_deep_trees_get_flatter_levels(words, branches):
    text = draw(right_branching(["a"] * words))
    assert size(text)[1] == 22 + branches + 12 + 13 + 8 + 12
    paths = ElementTree.fromstring(text).findall(f".//{SVG}path")
    deepest, root = (float(paths[i].get("d").split("H")[0].split()[1]) for i in (0, -1))
    level = branches / (words - 1)
    assert [deepest, root] == pytest.approx([31 + branches - level, 31], abs=0.06)


@pytest.mark.parametrize(("letters", "beside"), [(69, True), (70, True), (71, False)])
def test_trees_wider_than_640_are_one_above_the_other(letters, beside):
    # 8 words: 12 + 7.4 a letter + 7 gaps of 14 + 12, so 70 letters make 640.
    tree = right_branching([*["a" * 9] * 7, "a" * (letters - 63)])
    width, height = size(draw(tree))
    assert width == round(632.6 + (letters - 69) * 7.4)
    expected = [2 * width + 12, height] if beside else [width, 2 * height]
    assert size(draw_pair(tree, tree)) == pytest.approx(expected, abs=1)


def test_the_widest_title_at_the_side():
    tree = right_branching(["a", "b"])  # (83 letters) 638.2 and (84) 645.6
    assert size(draw_pair(tree, tree, None, "t" * 83))[0] == round(638.2 + 12 + 67.6)
    assert size(draw_pair(tree, tree, None, "t" * 84))[0] == round(645.6)


def test_many_words_have_as_many_distances():
    text = draw(right_branching(["a"] * 300), [0.5] * 300)
    # The sentence has none, nor have words.
    assert len(ElementTree.fromstring(text).findall(f".//{SVG}circle")) == 298


def test_distances_that_do_not_fit(tmp_path):
    pytest.importorskip("matplotlib")
    for given in (BARS[:4], [*BARS, 0.5]):
        for gold in (None, GOLD):
            for name in ("tree.svg", "tree.png"):
                with pytest.raises(ValueError, match=f"5 words need as many.* not {len(given)}"):
                    save_picture(tmp_path / name, SHORT, gold, given)
    assert not list(tmp_path.iterdir())


# --- PNG -----------------------------------------------------------------------------------------


def figure_of(path, arguments, patch):
    """The figure that `save_picture` makes, and how it saves it; without painting."""
    figure = pytest.importorskip("matplotlib.figure")
    found = []

    class Figure(figure.Figure):
        def savefig(self, path, **options):
            found.extend([self, options])
            Path(path).touch()

    patch.setattr(figure, "Figure", Figure)
    save_picture(path, *arguments)
    return found


def halves(text):
    """The elements of each tree in an SVG: each begins with its title."""
    found = []
    for element in ElementTree.fromstring(text)[1:]:
        if element.get("font-weight") == "bold":
            found.append([])
        found[-1].append(element)
    return found


def near(expected):
    return pytest.approx(np.array(expected), abs=0.06)  # as SVG rounds


@pytest.mark.parametrize("name", CASES)
def test_png_is_as_the_svg(name, tmp_path, monkeypatch):
    arguments = predicted, gold, distances, title = CASES[name]
    figure, options = figure_of(tmp_path / "tree.png", arguments, monkeypatch)
    parts, beside = halves(drawn(*arguments)), name.startswith(("one", "beside", "gold"))
    alone = [draw(predicted, None, title), *([] if gold is None else [draw(gold, None, "gold")])]
    # A tree's height in SVG is 67 with its branches, in the figure 68, or 108 with bars.
    wide, tall = np.transpose([size(text) for text in alone])
    branches = tall - 67
    tall = branches + (68 if distances is None else 108)
    both = (wide.sum(), tall.max()) if beside else (wide.max(), tall.sum())
    inches = figure.get_size_inches()
    assert inches * 72 == pytest.approx(np.array(both), abs=1)
    assert options == {"dpi": 150} and len(figure.axes) == len(parts)
    for number, (axes, elements) in enumerate(zip(figure.axes, parts, strict=True)):
        left = wide[0] if number and beside else 0
        top = tall[0] if number and not beside else 0
        compare(axes, elements, left, top, branches[number])


def compare(axes, elements, left, top, branches):
    heading = elements[0]
    svg_left, svg_top = np.subtract(numbers(heading, "x", "y"), (12, 13))
    in_points = 72 / axes.figure.dpi
    height = axes.figure.get_size_inches()[1] * 72

    def at(x, y):  # points from the left and from the top of where the tree begins
        x, y = axes.transData.transform((x, y)) * in_points
        return x - left, height - y - top

    def close(found, expected):
        # The widths of a picture in SVG are whole numbers.
        assert found == pytest.approx(np.array(expected), abs=0.6)
        shifted.append(np.subtract(found, expected)[0])

    shifted = []
    texts = {e: at(*e.get_position()) for e in axes.texts}
    written = [e for e in elements if e.tag == f"{SVG}text"]
    order = [*written[1:], heading]  # the title comes last
    assert [e.get_text() for e in texts] == [e.text or "" for e in order]
    base = 47 + branches
    for found, element in zip(texts, order, strict=True):
        x, y = numbers(element, "x", "y") - np.array([svg_left, svg_top])
        if element is heading:
            close(texts[found], (12, 13))
            assert (found.get_ha(), found.get_weight(), found.get_size()) == ("left", "bold", 9)
        elif element.get("font-size") == "10":  # a label: its middle is where the branches are
            close(texts[found], (x, y - 4 + 4))
            assert (found.get_ha(), found.get_va(), found.get_size()) == ("center", "center", 7)
            box = found.get_bbox_patch()
            assert box.get_boxstyle().pad * 7 == pytest.approx(1, abs=0.1)
        else:
            assert y == pytest.approx(base, abs=0.06)
            close(texts[found], (x, y + 1))
            assert (found.get_ha(), found.get_va(), found.get_size()) == ("center", "baseline", 9)
    branch = [e for e in axes.lines if e.get_marker() != "o"]
    paths = [e.get("d") for e in elements if e.tag == f"{SVG}path"]
    assert len(branch) == len(paths)
    for line, path in zip(branch, paths, strict=True):
        x, y, child, below = map(float, path.translate(str.maketrans("MHV", "   ")).split())
        corners = np.array([(x, y), (child, y), (child, below)]) - (svg_left, svg_top)
        for found, expected in zip(line.get_xydata(), corners, strict=True):
            close(at(*found), expected + np.array([0, 4]))
        assert (line.get_color(), line.get_linewidth()) == ("#666666", 0.8)
    dots = [e for e in axes.lines if e.get_marker() == "o"]
    circles = [e for e in elements if e.tag == f"{SVG}circle"]
    assert [e.get_color() for e in dots] == [e.get("fill") for e in circles]
    for dot, circle in zip(dots, circles, strict=True):
        x, y = numbers(circle, "cx", "cy") - np.array([svg_left, svg_top])
        close(at(*dot.get_xydata()[0]), (x, y + 4))
        assert dot.get_markersize() == 4
    rectangles = [e for e in elements if e.tag == f"{SVG}rect"]
    assert len(rectangles) == len(axes.patches)
    for bar, rectangle in zip(axes.patches, rectangles, strict=True):
        x, y, wide = numbers(rectangle, "x", "y", "width")
        distance = float(rectangle[0].text)
        close(at(bar.get_x(), bar.get_y()), (x - svg_left, y - svg_top + 1))
        measures = [bar.get_width(), -bar.get_height()]
        assert measures == pytest.approx([wide, distance * 46], abs=0.05)
        assert bar.get_facecolor() == pytest.approx(np.array([0x9D, 0xB8, 0xCC, 255]) / 255)
    # All by the same fraction of a pixel, which is what SVG's whole numbers leave.
    assert np.ptp(shifted) < 0.11
    assert not axes.axison


def test_png_of_what_is_too_long_for_matplotlib(tmp_path, monkeypatch):
    tree = right_branching(["w" * 80] * 60)
    figure, options = figure_of(tmp_path / "long.png", [tree], monkeypatch)
    assert options["dpi"] * figure.get_size_inches()[0] == pytest.approx(65_000)


def test_png_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"PNG needs matplotlib .*: pip install matplotlib$"):
        save_picture(tmp_path / "tree.png", SHORT)


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for case in CASES:
        (FILES / f"{case}.svg").write_text(lines(case), encoding="utf-8")
