"""The gallery of the documentation: its data file and its page."""

import json
import re
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
TOLERANCE = 1e-4 / 2  # scores are stored with four digits

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def scripts():
    with commands.imported(DOCS, "draw_gallery", "gallery") as (draw, page):
        yield {"draw": draw, "page": page}


@pytest.fixture
def run(scripts, monkeypatch, capsys):
    script = DOCS / "draw_gallery.py"
    return commands.runner(script, scripts["draw"], monkeypatch, capsys)


def test_stored_trees_and_distances_match_parser():
    parser = Parser.load()
    words = [entry["sentence"].split() for entry in SENTENCES]
    assert [brackets(tree) for tree in parser.parse_many(words)] == [
        entry["predicted"] for entry in SENTENCES
    ]
    models = len(parser.model.layers_per_model)
    for entry, distances in zip(SENTENCES, parser.distances_many(words), strict=True):
        means = np.mean(np.split(distances, models), axis=0)
        np.testing.assert_allclose(entry["distances"], means, rtol=0, atol=6e-4)


def test_stored_sentences_are_every_nth_of_treebank(
    run, scripts, shared_data, tmp_path, monkeypatch
):
    with corpora_in(shared_data / "nltk_data"):
        candidates = [s for s in treebank.load(max_length=20) if len(s.tokens) >= 5]
    assert STORED["words"] == [5, 20] and STORED["every"] == len(candidates) // 50
    chosen = candidates[:: len(candidates) // 50][:50]
    assert [entry["gold"] for entry in SENTENCES] == [brackets(s.tree) for s in chosen]
    stored = [candidates[entry["place"] - 1].tokens for entry in SENTENCES]
    assert stored == [s.tokens for s in chosen]
    baseline = [right_branching(sentence.tokens) for sentence in candidates]
    f1 = score(baseline, [sentence.tree for sentence in candidates])["f1"]
    assert STORED["all"]["right_branching"] == pytest.approx(f1, abs=TOLERANCE)
    assert STORED["all"]["sentences"] == len(candidates)
    # Run the script on the fifty sentences only, because parsing all 1,930 takes half a minute.
    monkeypatch.setattr(scripts["draw"].treebank, "load", lambda: chosen)
    assert run("--output", tmp_path / "gallery.json") == (0, "", "")
    written = json.loads((tmp_path / "gallery.json").read_text(encoding="utf-8"))
    assert written["every"] == 1 and written["all"] == written["chosen"] == STORED["chosen"]
    for number, (new, old) in enumerate(zip(written["sentences"], SENTENCES, strict=True), 1):
        np.testing.assert_allclose(new.pop("distances"), old["distances"], rtol=0, atol=1.1e-3)
        assert new == {k: v for k, v in old.items() if k != "distances"} | {"place": number}


def test_reports_missing_treebank(run, tmp_path):
    with corpora_in(tmp_path):
        result = run("--output", tmp_path / "gallery.json")
    commands.refused("draw_gallery.py", result, "treebank", "python -m nltk.downloader treebank")
    assert list(tmp_path.iterdir()) == []


def test_page_shows_all_sentences(scripts):
    text = scripts["page"].page(STORED)
    page = ElementTree.fromstring(f"<page>{text}</page>".replace(" hidden>", ">"))
    cards = page.findall(".//*[@class='gallery-card']")
    data = [[float(card.get(f"data-{key}")) for key in ("place", "words", "f1")] for card in cards]
    assert data == [[e["place"], len(e["sentence"].split()), e["f1"]] for e in SENTENCES]
    pictures = page.findall(".//*[@class='gallery-picture']")
    for picture, entry in zip(pictures, SENTENCES, strict=True):
        name = f"F1 {100 * entry['f1']:.1f}: {entry['sentence']}"
        assert picture.get("aria-label").endswith(name)
    cells = [cell.text for cell in page.iter("td")]
    numbers = (STORED[part][key] for part in ("chosen", "all") for key in ("f1", "right_branching"))
    assert cells[:4] == [f"{100 * number:.1f}" for number in numbers]
    rows = [row for e in SENTENCES for row in zip(*e["distances"], strict=True)]
    assert cells[4:] == [f"{distance:.3f}" for row in rows for distance in row]


def test_pictures_match_draw_pair(scripts):
    entry = SENTENCES[0]
    gold, predicted = (Tree.fromstring(entry[name]) for name in ("gold", "predicted"))
    means = np.mean(entry["distances"], axis=0)
    (picture,) = re.findall(r"<svg.*</svg>", scripts["page"].card(entry))
    assert picture == draw_pair(predicted, gold, means)


def test_phrases_are_compared(scripts):
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


def test_ordinal(scripts):
    for number in ("1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "111th", "1003rd"):
        assert scripts["page"].ordinal(int(number[:-2])) == number


@pytest.fixture(scope="module")
def chromium():
    yield from browsers.started()


@pytest.fixture
def tab(chromium, scripts, tmp_path):
    """Opens the page without Sphinx. Errors of the page fail the test."""
    static, path = DOCS / "static", tmp_path / "page.html"
    style, script = ((static / f"gallery.{end}").read_text("utf-8") for end in ("css", "js"))
    path.write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Gallery</title>'
        f"<style>{style}</style><body><article>{scripts['page'].page(STORED)}</article>"
        f"<script>{script}</script></body></html>",
        encoding="utf-8",
    )
    errors, contexts = [], []

    def open_tab(**options):
        contexts.append(chromium.new_context(viewport={"width": 400, "height": 800}, **options))
        tab = contexts[-1].new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(path.as_uri())
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert errors == []


def places(tab):
    return tab.eval_on_selector_all(".gallery-card", "all => all.map(c => +c.dataset.place)")


def test_sentences_can_be_sorted_by_keyboard(tab):
    tab = tab()
    by = {"treebank": lambda e: 0, "length": lambda e: len(e["sentence"].split())}
    by |= {"F1, best first": lambda e: -e["f1"], "F1, worst first": lambda e: e["f1"]}
    assert places(tab) == [entry["place"] for entry in SENTENCES]
    for name in ("length", "F1, best first", "F1, worst first", "treebank"):
        tab.focus(f"button:text-is('{name}')")
        tab.keyboard.press("Enter")
        expected = sorted(SENTENCES, key=lambda e: (by[name](e), e["place"]))
        assert places(tab) == [entry["place"] for entry in expected], name
        assert tab.eval_on_selector_all(
            "button[aria-pressed=true]", "all => all.map(b => b.textContent)"
        ) == [name]
        assert tab.inner_text("[role=status]") == f"Sorted by {name}."


def test_wide_pictures_scroll(tab):
    tab = tab()
    tab.focus(".gallery-card summary")
    tab.keyboard.press("Enter")
    assert tab.eval_on_selector(".gallery-card", "card => card.open")
    tab.eval_on_selector_all(
        "details", "all => { for (const details of all) details.open = true; }"
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    width, visible = tab.eval_on_selector(
        ".gallery-picture", "box => [box.scrollWidth, box.clientWidth]"
    )
    assert width > 450 > 400 >= visible


def test_page_works_without_javascript(tab):
    tab = tab(java_script_enabled=False)
    assert not tab.is_visible(".gallery-sort") and not tab.is_visible(".gallery-picture")
    tab.click(".gallery-card summary >> nth=0")
    assert tab.is_visible(".gallery-picture >> nth=0")
