"""The gallery of the documentation: what its file holds, and what its page makes of it."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from nltk import Tree

from helpers import browsers, commands
from helpers.commands import ROOT
from helpers.corpora import corpora_in
from keras_onlstm.datasets import treebank
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, draw_pair, right_branching, score

DOCS = ROOT / "docs"
STORED = json.loads((DOCS / "gallery.json").read_text(encoding="utf-8"))
SENTENCES = STORED["sentences"]
TINY = 1e-4 / 2  # to how many digits scores are stored

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def scripts():
    with commands.imported(DOCS, "draw_gallery", "gallery") as (draw, page):
        yield {"draw": draw, "page": page}


@pytest.fixture
def run(scripts, monkeypatch, capsys):
    script = DOCS / "draw_gallery.py"
    return commands.runner(script, scripts["draw"], monkeypatch, capsys)


def trees(name):
    return [Tree.fromstring(entry[name]) for entry in SENTENCES]


def test_the_package_parses_them_so():
    parser = Parser.load()
    words = [entry["sentence"].split() for entry in SENTENCES]
    assert [brackets(tree) for tree in parser.parse_many(words)] == [
        entry["predicted"] for entry in SENTENCES
    ]
    models = len(parser.model.members)
    for entry, distances in zip(SENTENCES, parser.measure(words), strict=True):
        means = np.mean(np.split(distances, models), axis=0)
        np.testing.assert_allclose(entry["distances"], means, rtol=0, atol=6e-4)


def test_fifty_sentences_with_their_scores():
    assert len(SENTENCES) == len({entry["sentence"] for entry in SENTENCES}) == 50
    golds, predicted = trees("gold"), trees("predicted")
    for entry, gold, tree in zip(SENTENCES, golds, predicted, strict=True):
        words = entry["sentence"].split()
        assert gold.leaves() == tree.leaves() == words and 5 <= len(words) <= 20
        assert entry["f1"] == pytest.approx(score([tree], [gold])["f1"], abs=TINY)
    baseline = [right_branching(gold.leaves()) for gold in golds]
    assert STORED["chosen"] == {
        "sentences": 50,
        "f1": pytest.approx(score(predicted, golds)["f1"], abs=TINY),
        "right_branching": pytest.approx(score(baseline, golds)["f1"], abs=TINY),
    }


def test_every_so_many_of_the_treebank(run, scripts, shared_data, tmp_path, monkeypatch):
    with corpora_in(shared_data / "nltk_data"):
        found = [s for s in treebank.load(max_length=20) if len(s.tokens) >= 5]
    assert STORED["words"] == [5, 20] and STORED["every"] == len(found) // 50
    chosen = found[:: len(found) // 50][:50]
    assert [entry["gold"] for entry in SENTENCES] == [brackets(s.tree) for s in chosen]
    assert [found[entry["place"] - 1].tokens for entry in SENTENCES] == [s.tokens for s in chosen]
    baseline = [right_branching(sentence.tokens) for sentence in found]
    f1 = score(baseline, [sentence.tree for sentence in found])["f1"]
    assert STORED["all"]["right_branching"] == pytest.approx(f1, abs=TINY)
    assert STORED["all"]["sentences"] == len(found)
    # Of the fifty alone the command writes the same: all 1,930 take half a minute to parse.
    monkeypatch.setattr(scripts["draw"].treebank, "load", lambda: chosen)
    assert run("--output", tmp_path / "gallery.json") == (0, "", "")
    written = json.loads((tmp_path / "gallery.json").read_text(encoding="utf-8"))
    assert written["every"] == 1 and written["all"] == written["chosen"] == STORED["chosen"]
    for place, (new, old) in enumerate(zip(written["sentences"], SENTENCES, strict=True), 1):
        np.testing.assert_allclose(new.pop("distances"), old["distances"], rtol=0, atol=1.1e-3)
        assert new == {k: v for k, v in old.items() if k != "distances"} | {"place": place}


def test_no_treebank(run, tmp_path):
    with corpora_in(tmp_path):
        result = run("--output", tmp_path / "gallery.json")
    commands.refused("draw_gallery.py", result, "treebank", "python -m nltk.downloader treebank")
    assert list(tmp_path.iterdir()) == []


def test_too_small_a_treebank(scripts):
    gold = Tree.fromstring("(S (NP the old cat) (VP saw (NP a dog)))")
    short = Tree.fromstring("(S prices fell)")
    sentences = [treebank.ParsedSentence(t.leaves(), t) for t in [gold] * 49 + [short] * 9]
    with pytest.raises(ValueError, match=r"has 49 sentences of 5 to 20 words, fewer than 50"):
        scripts["draw"].gallery(Parser.load(), sentences)


def test_layers_of_models_of_different_depth(scripts):
    rows = np.array([[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(scripts["draw"].by_layer(rows, (1, 2)), [[2, 3], [5, 6]])


class Page(HTMLParser):
    """Tags with their attributes, and the text in each summary and cell."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))

    def of_class(self, name):
        return [attributes for _, attributes in self.tags if attributes.get("class") == name]


def test_fifty_cards(scripts):
    text = scripts["page"].page(STORED)
    page = Page(text)
    cards = page.of_class("gallery-card")
    assert [(int(c["data-place"]), int(c["data-words"]), float(c["data-f1"])) for c in cards] == [
        (e["place"], len(e["sentence"].split()), e["f1"]) for e in SENTENCES
    ]
    pictures_ = page.of_class("gallery-picture")
    names = [picture["aria-label"] for picture in pictures_]
    assert len(set(names)) == 50 and text.count("<svg") == 50
    for name, entry in zip(names, SENTENCES, strict=True):
        assert name.endswith(f"F1 {100 * entry['f1']:.1f}: {entry['sentence']}")
    assert {(p["role"], p["tabindex"]) for p in pictures_} == {("img", "0")}
    assert len(text.encode()) < 900_000
    assert not any("id" in attributes for _, attributes in page.tags)  # would not be unique
    cells = [data for tag, data in page.texts if tag == "td"]
    numbers = (STORED[part][key] for part in ("chosen", "all") for key in ("f1", "right_branching"))
    assert cells[:4] == [f"{100 * number:.1f}" for number in numbers]
    rows = [row for e in SENTENCES for row in zip(*e["distances"], strict=True)]
    assert cells[4:] == [f"{distance:.3f}" for row in rows for distance in row]
    assert "the 1st, the 39th, the 77th and so on: every 38th, 50 in all" in text


def test_pictures_are_those_of_the_package(scripts):
    entry, gold, predicted = SENTENCES[0], trees("gold")[0], trees("predicted")[0]
    means = np.mean(entry["distances"], axis=0)
    (drawn,) = re.findall(r"<svg.*</svg>", scripts["page"].card(entry))
    assert drawn == draw_pair(predicted, gold, means)
    ElementTree.fromstring(drawn)


def test_phrases(scripts):
    gold = Tree.fromstring("(S (NP the cat) (VP saw (NP (NP a dog))))")
    predicted = Tree.fromstring("(X (X (X the cat) saw) (X a dog))")
    assert scripts["page"].phrases(predicted, gold) == [
        ["the cat", "a dog"],
        ["saw a dog"],
        ["the cat saw"],
    ]
    text = scripts["page"].phrase_list(gold, gold)
    assert "3 in both trees</dt><dd>the cat · saw a dog · a dog</dd>" in text
    assert text.count("<dd>none</dd>") == 2


def test_text_is_escaped(scripts):
    words = ["<script>", "&", '"', "'", "d"]
    bad = {
        "place": 1,
        "sentence": " ".join(words),
        "f1": 0.5,
        "gold": "(S<b> " + " ".join(words) + ")",
        "predicted": "(X (X <script> &) (X \" (X ' d)))",
        "distances": [[0.5] * 5],
    }
    text = scripts["page"].card(bad)
    page = Page(text)
    assert "<script>" not in text and "<b>" not in text.replace('<b class="gallery-f1">', "")
    (picture,) = page.of_class("gallery-picture")
    assert picture["aria-label"].endswith(bad["sentence"])
    assert ("span", bad["sentence"]) in page.texts and ("th", "<script>") in page.texts


def test_ordinals(scripts):
    numbers = ("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "38th", "77th", "111th")
    for number in (*numbers, "112th", "122nd", "1003rd"):
        assert scripts["page"].ordinal(int(number[:-2])) == number


@pytest.fixture(scope="module")
def chromium():
    yield from browsers.started()


@pytest.fixture
def tab(chromium, scripts, tmp_path):
    """The page without Sphinx; nothing may go wrong in it."""
    static, path = DOCS / "static", tmp_path / "page.html"
    style, script = ((static / f"gallery.{end}").read_text("utf-8") for end in ("css", "js"))
    path.write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Gallery</title>'
        f"<style>{style}</style><body><article>{scripts['page'].page(STORED)}</article>"
        f"<script>{script}</script></body></html>",
        encoding="utf-8",
    )
    wrong, contexts = [], []

    def open_tab(**options):
        contexts.append(chromium.new_context(viewport={"width": 400, "height": 800}, **options))
        tab = contexts[-1].new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.goto(path.as_uri())
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert wrong == []


def places(tab):
    return tab.eval_on_selector_all(".gallery-card", "all => all.map(c => +c.dataset.place)")


def test_sorting_by_keyboard(tab):
    tab = tab()
    by = {"treebank": lambda e: 0, "length": lambda e: len(e["sentence"].split())}
    by |= {"F1, best first": lambda e: -e["f1"], "F1, worst first": lambda e: e["f1"]}
    assert places(tab) == [entry["place"] for entry in SENTENCES]
    for name in ("length", "F1, best first", "F1, worst first", "treebank"):
        tab.focus(f"button:text-is('{name}')")
        tab.keyboard.press("Enter")
        wanted = sorted(SENTENCES, key=lambda e: (by[name](e), e["place"]))
        assert places(tab) == [entry["place"] for entry in wanted], name
        assert tab.eval_on_selector_all(
            "button[aria-pressed=true]", "all => all.map(b => b.textContent)"
        ) == [name]
        assert tab.inner_text("[role=status]") == f"Sorted by {name}."


def test_wide_pictures_scroll_in_their_boxes(tab):
    tab = tab()
    tab.focus(".gallery-card summary")
    tab.keyboard.press("Enter")
    assert tab.eval_on_selector(".gallery-card", "card => card.open")
    tab.eval_on_selector_all("details", "all => { for (const one of all) one.open = true; }")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    wide, seen = tab.eval_on_selector(
        ".gallery-picture", "box => [box.scrollWidth, box.clientWidth]"
    )
    assert wide > 450 > 400 >= seen


def test_without_javascript(tab):
    tab = tab(java_script_enabled=False)
    assert not tab.is_visible(".gallery-sort") and not tab.is_visible(".gallery-picture")
    tab.click(".gallery-card summary >> nth=0")
    assert tab.is_visible(".gallery-picture >> nth=0")
