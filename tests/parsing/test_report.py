"""The HTML report: scores, sentences and options."""

import html
import re

import numpy as np
import pytest
from nltk import Tree

from helpers.pictures import HOSTILE, SHOWN
from keras_onlstm.parsing import draw_pair, right_branching, write_report

pytestmark = pytest.mark.keras_free
# Correct constituents (without words and sentences) of predicted and gold ones, by sentence: 1 of 3
# and 3, 1 of 1 and 1, 1 of 2 and 1.
PREDICTED = ["(X the (X (X cat saw) (X a dog)))", "(X a (X b c))", "(X (X a b) (X c d))"]
GOLD = ["(S (NP the cat) (VP saw (NP a dog)))", "(S a (Q& b c))", "(S (NP-1 a b) c d)"]
ROWS = {
    "precision": "61.1",  # (1/3 + 1 + 1/2) / 3
    "recall": "77.8",  # (1/3 + 1 + 1) / 3
    "f1": "66.7",  # (1/3 + 1 + 2/3) / 3
    "upper bound f1": "88.9",  # (1 + 1 + 2/3) / 3
    "corpus precision": "50.0",  # 3 of 6
    "corpus recall": "60.0",  # 3 of 5
    "corpus f1": "54.5",
    "evalb precision": "66.7",  # 6 of 9
    "evalb recall": "75.0",  # 6 of 8
    "evalb f1": "70.6",
    "depth": "2.09",  # (13/5 + 5/3 + 8/4) / 3
    "recall of NP": "66.7 (2 of 3)",
    "recall of Q&amp;": "100.0 (1 of 1)",
    "recall of S": "100.0 (3 of 3)",
    "recall of VP": "0.0 (0 of 1)",
}
SENTENCE = re.compile(
    r'<details data-f1="(.+?)" data-words="(.+?)" data-number="(.+?)"><summary><b>(.+?)</b>(.+?)'
    r'</summary><div class="picture">(.+?)</div></details>'
)


def trees(texts):
    return [Tree.fromstring(text) for text in texts]


def page(path, *arguments, **options):
    write_report(path, *arguments, **options)
    return path.read_text("utf-8")


def test_report_contains_scores_and_sentences(tmp_path):
    predicted, gold = trees(PREDICTED), trees(GOLD)
    distances = [np.linspace(0, 1, len(tree.leaves())) for tree in gold]
    text = page(tmp_path / "report.html", predicted, gold, distances, "<title>")
    assert dict(re.findall("<tr><td>(.+?)</td><td>(.+?)</td></tr>", text)) == ROWS
    assert text.count("<tr>") == len(ROWS) and list(ROWS) == re.findall("<tr><td>(.+?)<", text)
    found = SENTENCE.findall(text)
    assert [sentence[:5] for sentence in found] == [
        ("0.333333", "5", "1", "33.3", "the cat saw a dog"),
        ("1.000000", "3", "2", "100.0", "a b c"),
        ("0.666667", "4", "3", "66.7", "a b c d"),
    ]
    pictures = [draw_pair(*three) for three in zip(predicted, gold, distances, strict=True)]
    assert [sentence[5] for sentence in found] == pictures
    assert text.count("&lt;title&gt;") == 2 and "<p>3 sentences. Sort by" in text


@pytest.mark.parametrize(
    ("sentences", "options", "shown", "words"),
    [
        (500, {}, range(1, 501), "500 sentences."),
        (501, {}, range(1, 502, 2), "501 sentences, of which 251 are shown."),
        (1001, {"limit": 3}, (1, 335, 669), "1,001 sentences, of which 3 are shown."),
        (3, {"limit": 1}, (1,), "3 sentences, of which 1 are shown."),
    ],
)
def test_limit_selects_sentences(sentences, options, shown, words, tmp_path):
    gold = [right_branching("ab")] * sentences
    text = page(tmp_path / "report.html", gold, gold, **options)
    assert [int(sentence[2]) for sentence in SENTENCE.findall(text)] == list(shown)
    assert f"<p>{words} Sort by" in text


def test_page_is_self_contained_and_escapes_words(tmp_path):
    tree = right_branching(HOSTILE)
    text = page(tmp_path / "report.html", [tree], [tree], title="\x03$")
    (found,) = SENTENCE.findall(text)
    assert html.unescape(found[4]) == " ".join(SHOWN) and "\ufffd$" in text
    outside = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"http|src=|href=|@import|<link", outside)


def test_rejects_empty_list(tmp_path):
    with pytest.raises(ValueError, match="gold is empty: there is no sentence to report"):
        write_report(tmp_path / "report.html", [], [])
    assert not list(tmp_path.iterdir())
