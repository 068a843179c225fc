"""Pictures of trees and the HTML report: what they hold, and that nothing in them overlaps."""

import re
import warnings
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from nltk import Tree

from keras_onlstm.parsing import (
    balanced,
    build_tree,
    draw,
    draw_pair,
    left_branching,
    random_tree,
    right_branching,
    save_picture,
    score,
    write_report,
)
from keras_onlstm.utils import png

pytestmark = pytest.mark.keras_free
GOLD = Tree.fromstring("(S (NP the cat) (VP saw (NP a dog)))")
PREDICTED = build_tree([0.9, 0.1, 0.8, 0.3, 0.2], ["the", "cat", "saw", "a", "dog"])
DISTANCES = [0.9, 0.1, 0.8, 0.3, 0.2]
SVG = "{http://www.w3.org/2000/svg}"


def elements(text, name):
    return ElementTree.fromstring(text).findall(f".//{SVG}{name}")


def test_a_tree_with_distances():
    text = draw(PREDICTED, DISTANCES, "a <title>")
    assert [e.text for e in elements(text, "text")] == [
        "a <title>",
        *["the", "cat", "saw", "a", "dog"],
    ]
    bars = elements(text, "rect")[1:]  # the first is the ground
    heights = [float(bar.get("height")) for bar in bars]
    assert [height / heights[0] for height in heights] == pytest.approx(
        [d / 0.9 for d in DISTANCES]
    )
    assert [bar.find(f"{SVG}title").text for bar in bars] == [f"{d:.3f}" for d in DISTANCES]


def test_right_and_wrong_constituents():
    # Greedy: (the (cat (saw (a dog)))): a dog and saw a dog are right, cat saw a dog is wrong.
    text = draw_pair(PREDICTED, GOLD, DISTANCES)
    colours = [circle.get("fill") for circle in elements(text, "circle")]
    assert sorted(colours) == ["#1b6ca8", "#1b6ca8", "#b23a48"]
    labels = [e.text for e in elements(text, "text")]
    assert labels.count("NP") == 2 and "gold" in labels and "predicted" in labels


def segments(text):
    """Horizontal and vertical pieces of the branches."""
    across, down = [], []
    for path in elements(text, "path"):
        x, y, cx, cy = map(float, re.match(r"M(.+) (.+)H(.+)V(.+)", path.get("d")).groups())
        across.append((y, min(x, cx), max(x, cx)))
        down.append((cx, min(y, cy), max(y, cy)))
    return across, down


@pytest.mark.parametrize("words", [2, 7, 40, 120])
def test_nothing_overlaps(words):
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
                size = int(element.get("font-size"))
                half = len(element.text) * size * 0.55 / 2
                boxes.append((float(element.get("x")) - half, float(element.get("x")) + half))
        assert all(one[1] < two[0] for one, two in pairwise(boxes))
        page = ElementTree.fromstring(text)
        assert boxes[-1][1] <= float(page.get("width")) and boxes[0][0] >= 0


def test_labels_of_single_words_have_room():
    tree = Tree.fromstring("(S (ADVP-TMP once) (ADVP-TMP (NP-SBJ-1 it)) (VP was))")
    places = {}
    for element in elements(draw(tree), "text"):
        if element.text in ("once", "it", "was"):
            places[element.text] = float(element.get("x"))
    assert places["it"] - places["once"] > 8 * 6 and places["was"] - places["it"] > 5 * 6


def test_pictures_of_long_sentences():
    tokens = [f"w{i}" for i in range(5000)]
    text = draw(right_branching(tokens))
    assert len(elements(text, "path")) == 2 * 4999
    page = ElementTree.fromstring(text)
    assert float(page.get("height")) < 700


def test_files(tmp_path):
    save_picture(tmp_path / "one.svg", PREDICTED)
    save_picture(tmp_path / "two.svg", PREDICTED, GOLD, DISTANCES, "layer 2")
    assert len(elements((tmp_path / "two.svg").read_text(), "path")) == 8 + 8
    assert "layer 2" in (tmp_path / "two.svg").read_text()
    pytest.importorskip("matplotlib")
    save_picture(tmp_path / "one.png", PREDICTED)
    save_picture(tmp_path / "two.png", PREDICTED, GOLD, DISTANCES, "layer 2")
    for name in ("one", "two"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"three\.pdf: a picture ends in \.svg or \.png"):
        save_picture(tmp_path / "three.pdf", PREDICTED)
    assert len(list(tmp_path.iterdir())) == 4


HOSTILE = [
    "$\\frac$",
    "$",
    "bell\x07",
    "\x00",
    "\uffff",
    "\ud800",
    "a\tb",
    "\x1b[31m",
    "<b>&amp;",
    "\x85",
]
SHOWN = [
    "$\\frac$",
    "$",
    "bell\ufffd",
    "\ufffd",
    "\ufffd",
    "\ufffd",
    "a b",
    "\ufffd[31m",
    "<b>&amp;",
    " ",
]


def hostile_trees():
    predicted = right_branching(HOSTILE)
    gold = Tree("$\\sum\x01", [Tree("NP\uffff", HOSTILE[:4]), *HOSTILE[4:]])
    return predicted, gold


def test_words_that_are_no_text(tmp_path):
    predicted, gold = hostile_trees()
    save_picture(tmp_path / "tree.svg", predicted, gold, None, "$\\alpha\x02")
    found = [e.text for e in elements((tmp_path / "tree.svg").read_text("utf-8"), "text")]
    assert found[0] == "$\\alpha\ufffd" and found[1 : 1 + len(SHOWN)] == SHOWN
    assert "NP\ufffd" in found and "$\\sum\ufffd" in found
    write_report(tmp_path / "report.html", [predicted], [gold], title="\x03$")
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    assert page.summaries[1] == " ".join(SHOWN)


def test_words_that_are_no_formulas(tmp_path):
    figure = pytest.importorskip("matplotlib.figure")
    predicted, gold = hostile_trees()
    written = []

    class Figure(figure.Figure):
        def savefig(self, *arguments, **options):
            super().savefig(*arguments, **options)
            written.extend(text.get_text() for axes in self.axes for text in axes.texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "Figure", Figure)
        save_picture(tmp_path / "tree.png", predicted, gold, None, "$\\alpha\x02")
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    assert written[: len(SHOWN)] == SHOWN and "$\\sum\ufffd" in written


def test_a_png_of_a_long_sentence(tmp_path):
    pytest.importorskip("matplotlib")
    save_picture(tmp_path / "long.png", balanced(["w" * 80] * 60))
    width = int.from_bytes((tmp_path / "long.png").read_bytes()[16:20], "big")
    assert 60_000 < width < 2**16


@pytest.fixture
def own_fonts(monkeypatch):
    """Only the fonts that come with Matplotlib, whatever the machine has."""
    manager = pytest.importorskip("matplotlib.font_manager")
    entries = manager.fontManager.ttflist
    monkeypatch.setattr(
        manager.fontManager, "ttflist", [e for e in entries if "mpl-data" in e.fname]
    )
    png._family.cache_clear()
    yield
    png._family.cache_clear()


def painted(path, *arguments):
    """(text, weight, families) of all texts in a PNG, which has to be painted without a warning."""
    figure = pytest.importorskip("matplotlib.figure")
    found = []

    class Figure(figure.Figure):
        def savefig(self, *arguments, **options):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                super().savefig(*arguments, **options)
            for text in (text for axes in self.axes for text in axes.texts):
                found.append((text.get_text(), text.get_weight(), text.get_family()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "Figure", Figure)
        save_picture(path, *arguments)
    return found


def test_other_fonts_have_what_the_default_lacks(own_fonts, tmp_path):
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont, get_font

    default = list(rcParams["font.family"])
    word, plain, title = painted(
        tmp_path / "a.png", right_branching(["\U0001d504", "cat"]), None, None, "a title"
    )
    assert plain == ("cat", "normal", default) and title == ("a title", "bold", default)
    text, _, families = word
    assert text == "\U0001d504" and families[:-1] == default
    has = [
        0x1D504 in get_font(findfont(FontProperties(family=[family]))).get_charmap()
        for family in families
    ]
    assert has == [False] * len(default) + [True]
    assert "Last Resort" not in families[-1]


def test_what_no_font_has(own_fonts, tmp_path):
    tree = Tree("\u732b", ["cat\u732b", "\ufdd0\u732b", Tree("\u72ac", ["b\U000e0020"])])
    with pytest.warns(UserWarning) as said:
        texts = painted(tmp_path / "a.png", tree, None, None, "\uac00")
    labels, words = ["\ufffd", "\ufffd"], ["cat\ufffd", "\ufffd\ufffd", "b"]
    assert [text for text, *_ in texts] == [*labels, *words, "\ufffd"]
    (line,) = [str(warning.message) for warning in said]
    assert line == (
        f"{tmp_path / 'a.png'}: no installed font has \u72ac \u732b \uac00 U+FDD0: "
        "drawn as \ufffd, and a .svg file shows them."
    )
    assert said[0].filename == __file__
    save_picture(tmp_path / "a.svg", tree)  # warnings are errors
    assert (tmp_path / "a.svg").read_text("utf-8").count("\u732b") == 3


def test_many_that_no_font_has():
    letters = " ".join("abcdefghijklmnopqrst")
    assert f"font has {letters}: drawn" in png.lacking(frozenset(map(chr, range(97, 117))))
    assert " s t and 2 more: drawn" in png.lacking(frozenset(map(chr, range(97, 119))))


def test_distances_that_do_not_fit():
    for function in (draw, lambda tree, d: draw_pair(tree, GOLD, d)):
        with pytest.raises(ValueError, match="5 words need as many distances, not 2"):
            function(PREDICTED, [0.1, 0.2])


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.details, self.outside, self.summaries, self.inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "details":
            self.details.append(attributes)
        self.inside = tag == "summary" or (self.inside and tag == "b")
        self.outside += [v for k, v in attributes.items() if k in ("src", "href")]

    def handle_endtag(self, tag):
        if tag == "summary":
            self.inside = False
        elif tag == "b":
            self.inside = True

    def handle_data(self, data):
        if self.inside:
            self.summaries.append(data)


def test_the_report(tmp_path):
    golds = [GOLD, Tree("S", ["<b>", Tree("NP", ["&", "c"])])]
    predicted = [PREDICTED, left_branching(["<b>", "&", "c"])]
    write_report(tmp_path / "report.html", predicted, golds, [DISTANCES, [0, 1, 0]], "A & B")
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert page.outside == [] and "http://www.w3.org/2000/svg" in text  # nothing from a network
    assert text.replace("http://www.w3.org/2000/svg", "").count("http") == 0
    each = [score([p], [g])["f1"] for p, g in zip(predicted, golds, strict=True)]
    assert [float(d["data-f1"]) for d in page.details] == pytest.approx(each, abs=1e-6)
    assert [d["data-words"] for d in page.details] == ["5", "3"]
    assert page.summaries[1::2] == ["the cat saw a dog", "<b> & c"]
    scores = score(predicted, golds)
    assert f"<td>f1</td><td>{100 * scores['f1']:.1f}</td>" in text and "A &amp; B" in text
    assert "recall of NP</td><td>33.3 (1 of 3)" in text and "2 sentences." in text


def test_a_report_of_many(tmp_path):
    trees = [random_tree(range(5), seed) for seed in range(30)]
    write_report(tmp_path / "report.html", trees, trees, limit=10)
    page = Page((tmp_path / "report.html").read_text())
    assert [d["data-number"] for d in page.details] == [str(n) for n in range(1, 31, 3)]
    assert "30 sentences, of which 10 are shown" in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="no sentence to report"):
        write_report(tmp_path / "other.html", [], [])
