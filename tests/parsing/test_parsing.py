"""Trees from distances and their scores, compared with brute force and the authors' scores."""

import functools
import itertools
import json
import math
import random
import re

import numpy as np
import pytest
from nltk import Tree

from helpers.corpora import corpora_in
from keras_onlstm.datasets import treebank
from keras_onlstm.parsing import (
    Scores,
    balanced,
    brackets,
    build_tree,
    left_branching,
    random_tree,
    right_branching,
    score,
)

pytestmark = pytest.mark.keras_free
BASELINES = (left_branching, right_branching, balanced, random_tree)


def greedy(distances, tokens):
    """The definition ((x<i) (x_i (x>i))) as nested tuples."""
    if len(tokens) == 1:
        return tokens[0]
    i = distances.index(max(distances))
    right = tokens[i]
    if tokens[i + 1 :]:
        right = (tokens[i], greedy(distances[i + 1 :], tokens[i + 1 :]))
    return (greedy(distances[:i], tokens[:i]), right) if i else right


def binary(distances, tokens):
    if len(tokens) == 1:
        return tokens[0]
    inner = distances[1:]
    i = 1 + inner.index(max(inner))
    return (binary(distances[:i], tokens[:i]), binary(distances[i:], tokens[i:]))


def as_tuples(tree):
    if isinstance(tree, Tree):
        assert tree.label() == "X" and len(tree) == 2
        return tuple(map(as_tuples, tree))
    return tree


@functools.cache
def all_trees(start, end):
    if end - start == 1:
        return [start]
    return [
        (left, right)
        for middle in range(start + 1, end)
        for left in all_trees(start, middle)
        for right in all_trees(middle, end)
    ]


@pytest.mark.parametrize("words", range(2, 9))
def test_trees_match_definitions(words):
    """For all orders of distances. Only `binary` builds all binary trees."""
    tokens = list(range(words))
    everything = set(all_trees(0, words))
    assert len(everything) == math.comb(2 * words - 2, words - 1) // words
    reached = {"greedy": set(), "binary": set()}
    for order in itertools.permutations(range(words)):
        for method, expected in (("greedy", greedy), ("binary", binary)):
            tree = as_tuples(build_tree(order, tokens, method))
            assert tree == expected(list(order), tokens)
            reached[method].add(tree)
    assert reached["binary"] == everything
    assert reached["greedy"] <= everything
    # https://oeis.org/A025242; for 10 words it gives 48% of all trees.
    assert len(reached["greedy"]) == [1, 2, 5, 13, 35, 97, 275][words - 2]


@pytest.mark.parametrize("method", ["greedy", "binary"])
def test_ties_split_at_leftmost_word(method):
    rng = np.random.default_rng(0)
    expected = {"greedy": greedy, "binary": binary}[method]
    for _ in range(300):
        words = int(rng.integers(2, 12))
        distances = rng.integers(0, 3, words).tolist()
        tokens = [f"w{i}" for i in range(words)]
        assert as_tuples(build_tree(distances, tokens, method)) == expected(distances, tokens)


def test_one_word_and_no_words():
    for method in ("greedy", "binary"):
        assert build_tree([0.3], ["yes"], method) == Tree("X", ["yes"])
    for baseline in BASELINES:
        assert baseline(["yes"]) == Tree("X", ["yes"])
        with pytest.raises(
            ValueError, match="tokens is empty: a sentence without words has no tree"
        ):
            baseline([])


def test_baseline_trees():
    tokens = list("abcde")
    assert brackets(left_branching(tokens)) == "(X (X (X (X a b) c) d) e)"
    assert brackets(right_branching(tokens)) == "(X a (X b (X c (X d e))))"
    assert brackets(balanced(tokens)) == "(X (X a b) (X c (X d e)))"
    assert random_tree(tokens, seed=1) == random_tree(tokens, seed=1)
    draw = random.Random(0)
    found = {brackets(random_tree(tokens, draw)) for _ in range(500)}
    assert len(found) == 14


@pytest.mark.parametrize("make", [*BASELINES, "greedy", "binary"])
def test_5000_words_do_not_recurse(make):
    tokens = [f"w{i}" for i in range(5000)]
    for distances in (range(5000), range(5000, 0, -1), [1] * 5000):
        tree = build_tree(distances, tokens, make) if isinstance(make, str) else make(tokens)
        text = brackets(tree)
        assert re.findall(r"w\d+", text) == tokens and text.count("(X") == 4999
        assert score([tree], [tree])["recall"] == pytest.approx(1)


def test_brackets_preserve_constituents():
    tree = Tree("", [Tree("NP (a)", ["", "new york"]), Tree("", ["b)", Tree("\t", ["c\x1f"])])])
    text = brackets(tree)
    assert text == "( (NP_-LRB-a-RRB- _ new_york) (_ b-RRB- (_ c_)))"
    read = Tree.fromstring(text)
    assert read.treepositions() == tree.treepositions()
    assert brackets(read) == text


@pytest.mark.parametrize(
    ("distances", "tokens", "method", "match"),
    [
        ([], [], "greedy", "tokens is empty: a sentence without words has no tree"),
        (
            [0.1],
            ["a", "b"],
            "greedy",
            r"distances must have the shape \(2,\).*got the shape \(1,\)",
        ),
        ([[0.1, 0.2]], ["a", "b"], "greedy", r"got the shape \(1, 2\)"),
        ([0.1, math.nan], ["a", "b"], "binary", r"distances\[1\] must be finite, got nan"),
        ([0.1, 0.2], ["a", "b"], "best", "method must be 'greedy' or 'binary', got 'best'"),
    ],
)
def test_rejects_invalid_input(distances, tokens, method, match):
    with pytest.raises(ValueError, match=match):
        build_tree(distances, tokens, method)


GOLD = Tree.fromstring("(S (NP-SBJ (DT the) (NN cat)) (VP saw (NP=2 a dog) (PP on (NP the mat))))")


def test_scores_match_manual_count():
    tree = build_tree([9, 1, 8, 7, 2, 5, 4, 3], GOLD.leaves())  # right-branching
    scores = score([tree], [GOLD])
    # Spans: {2-8, 3-8, 4-8, 5-8, 6-8, 1-8}; gold {0-2, 2-8, 3-5, 5-8, 6-8}.
    assert brackets(tree) == brackets(right_branching(GOLD.leaves()))
    assert scores["precision"] == pytest.approx(3 / 6) and scores["recall"] == pytest.approx(3 / 5)
    assert scores["f1"] == pytest.approx(6 / 11) and scores["corpus_f1"] == pytest.approx(6 / 11)
    assert scores["evalb_precision"] == 4 / 7 and scores["evalb_recall"] == 4 / 6
    assert scores["upper_bound_f1"] == pytest.approx(2 * (5 / 6) / (5 / 6 + 1))
    assert scores["label_recall"] == {"NP": (1, 3), "PP": (1, 1), "S": (1, 1), "VP": (1, 1)}
    assert scores["depth"] == (1 + 2 + 3 + 4 + 5 + 6 + 7 + 7) / 8
    assert scores["sentences"] == 1


def test_sentences_without_spans_score_one():
    flat = Tree("S", ["a", "b", "c"])
    pair = Tree("S", ["a", "b"])
    found = score([right_branching("abc")], [flat])
    assert (found["precision"], found["recall"], found["f1"]) == (0, 1, 0)
    assert found["upper_bound_f1"] == 0
    found = score([right_branching("ab")], [pair])
    assert (found["precision"], found["recall"]) == (1, 1) and found["f1"] == pytest.approx(1)
    assert found["upper_bound_f1"] == 1
    one = Tree("S", ["a"])
    assert score([left_branching("a")], [one])["depth"] == 0
    assert dict(score([], []))["f1"] == 0


def test_scores_can_be_added():
    trees = [random_tree(range(n), seed=n) for n in range(1, 30)]
    golds = [random_tree(range(n), seed=n + 100) for n in range(1, 30)]
    whole = score(trees, golds)
    parts = score(trees[:11], golds[:11]) + score(trees[11:], golds[11:])
    assert parts.keys() == whole.keys()
    for key in whole:
        expected = whole[key] if key == "label_recall" else pytest.approx(whole[key])
        assert parts[key] == expected
    assert dict(whole + Scores()) == dict(whole)
    with pytest.raises(TypeError):
        whole + 1


def test_evalb_counts_whole_sentence():
    """A sentence of one word has no spans, but EVALB counts the whole sentence."""
    whole, other = Tree.fromstring("(S (X a b) c)"), Tree.fromstring("(S a (X b c))")
    found = score([whole, Tree("S", ["a"])], [other, Tree("S", ["a"])])
    assert found["evalb_f1"] == pytest.approx(1 / 2)


def test_rejects_trees_of_other_sentences():
    with pytest.raises(ValueError, match="as many trees, got 1 and 2"):
        score([balanced("ab")], [balanced("ab")] * 2)
    with pytest.raises(
        ValueError, match=r"sentence 2: .* predicted tree has 2 and the gold tree 3"
    ):
        score([balanced("ab")] * 2, [balanced("ab"), balanced("abc")])
    with pytest.raises(ValueError, match="sentence 1: the tree has no words"):
        score([Tree("X", [])], [Tree("X", [])])


@pytest.fixture(scope="module")
def sample(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        yield treebank.load()


def golden_ratio(tokens):
    return build_tree([(i * 0.6180339887498949) % 1 for i in range(len(tokens))], tokens)


@pytest.mark.parametrize("suffix", ["", "_max10"])
def test_scores_match_authors(sample, shared_reference, suffix):
    reference = json.loads((shared_reference / "parsing_nltk_treebank.json").read_text())
    chosen = [s for s in sample if not suffix or len(s.tokens) <= 10]
    makers = {
        "left_branching": left_branching,
        "right_branching": right_branching,
        "golden_ratio_distances": golden_ratio,
    }
    assert set(reference) == {name + end for name in makers for end in ("", "_max10")}
    for name, make in makers.items():
        found = score([make(s.tokens) for s in chosen], [s.tree for s in chosen])
        expected = reference[name + suffix]
        for label, counts in expected.pop("label_recall").items():
            assert found["label_recall"].get(label, (0, 0)) == tuple(counts), (name, label)
        for key, value in expected.items():
            assert abs(found[key] - value) < 1e-9, (name, key)


def test_sample_matches_published_statistics(sample):
    assert len(sample) == 3914
    assert len(treebank.load(max_length=10)) == 555
    assert all(s.tokens == s.tree.leaves() for s in sample)
    text = {word for s in sample for word in s.tokens}
    assert not any(re.search("[0-9A-MO-Z]", word) for word in text) and "N.N" in text
    draw = random.Random(0)
    random_f1 = score([random_tree(s.tokens, draw) for s in sample], [s.tree for s in sample])["f1"]
    middle_f1 = score([balanced(s.tokens) for s in sample], [s.tree for s in sample])["f1"]
    assert abs(random_f1 - 0.184) < 0.02 and abs(middle_f1 - 0.245) < 0.02


def write_sample(directory, *texts):
    folder = directory / "corpora" / "treebank" / "combined"
    folder.mkdir(parents=True)
    for number, text in enumerate(texts, 1):
        (folder / f"wsj_000{number}.mrg").write_bytes(text)


GOOD = b"( (S (NP (DT The) (NN cat))\n     (VP (VBD sat))) )\n"


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"( (S (NP (NN cat)) text) )\n", "line 3: is not a tree .*, got 'text'"),
        (b"(NP The cat)\n", "line 3: .*the tag 'NP' must be above one word"),
        (b"( (NP ) )\n", "line 3: .*each node must be a tag or have children"),
        (b"( (S (NN a))\n  (S (NN b)) )\n", "line 3: .*one bracket holds 2 trees"),
        (b"( (S (NN cat))\n\n" + GOOD, "line 3: .*a bracket is not closed"),
        (b"( (S (NN cat)) ) )\n", r"line 3: .*'\)' is outside of a tree"),
        (b"\nThe cat sat.\n", "line 4: .*'The' is outside of a tree"),
        (b"( (S (NN c\xe9t)) )\n", "line 3: is not ASCII text"),
        (b"(S " * 400 + b")" * 400, "line 3: .*each node must be a tag or have children"),
    ],
)
@pytest.mark.parametrize("indent", [b"", b"  "])
def test_rejects_files_without_valid_trees(tmp_path, data, match, indent):
    """The second file is damaged after a valid tree, with and without indentation."""
    if indent and match.endswith("not closed"):
        match = "line 3: is not a tree"  # the next tree is parsed as part of this one
    text = b"".join(indent + line for line in (GOOD + data).splitlines(keepends=True))
    write_sample(tmp_path, b"( (S (NN cat)) )\n", text)
    with (
        corpora_in(tmp_path),
        pytest.raises(ValueError, match=rf"wsj_0002\.mrg, {match}") as caught,
    ):
        treebank.load()
    assert len(str(caught.value)) < 600


def test_rejects_unbalanced_trees_that_balance_together(tmp_path):
    write_sample(tmp_path, b"( (S (NP (NN cat))\n( (S (NN dog)) ) ) )\n")
    with corpora_in(tmp_path), pytest.raises(ValueError, match=r"line 1: .*is not closed"):
        treebank.load()


def test_rejects_files_without_trees(tmp_path):
    write_sample(tmp_path, GOOD, b"\n \n")
    with corpora_in(tmp_path), pytest.raises(ValueError, match=r"wsj_0002\.mrg: contains no tree"):
        treebank.load()


@pytest.mark.parametrize("indent", [b"", b"  ", b"\t"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_trees_may_follow_each_other(tmp_path, indent, wrapped):
    text = b"\r\n" + GOOD + GOOD + b"( (X (. .)) )\n" + GOOD  # one tree has no words
    text = text if wrapped else text.replace(b"( (", b"(").replace(b") )", b")")
    write_sample(tmp_path, b"".join(indent + line for line in text.splitlines(keepends=True)))
    with corpora_in(tmp_path):
        found = treebank.load()
    assert [brackets(one.tree) for one in found] == ["(S (NP the cat) (VP sat))"] * 3


def test_punctuation_tags_are_removed(tmp_path):
    write_sample(tmp_path, b"( (S (NN cat) (.)) )\n")
    with corpora_in(tmp_path):
        assert [one.tokens for one in treebank.load()] == [["cat"]]


def test_reads_full_penn_treebank(tmp_path):
    for section, words in ((2, "a b"), (23, "c d e f g h i j k l m"), (23, "n")):
        folder = tmp_path / "corpora" / "ptb" / "WSJ" / f"{section:02}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"WSJ_{section:02}{len(list(folder.iterdir())):02}.MRG"
        tagged = " ".join(f"(NN {word})" for word in words.split())
        (folder / name).write_text(f"( (S (NP {tagged}) (. .)) )\n")
    (tmp_path / "corpora" / "ptb" / "allcats.txt").write_text(
        "".join(f"WSJ/{p.parent.name}/{p.name} news\n" for p in tmp_path.rglob("*.MRG"))
    )
    with corpora_in(tmp_path):
        assert [len(s.tokens) for s in treebank.load(corpus="ptb")] == [2, 11, 1]
        assert [len(s.tokens) for s in treebank.load(corpus="ptb", sections=[23])] == [11, 1]
        assert [len(s.tokens) for s in treebank.load(max_length=10, corpus="ptb")] == [2, 1]
        with pytest.raises(FileNotFoundError, match=r"no WSJ files of the sections \[5\]"):
            treebank.load(corpus="ptb", sections=[5])


@pytest.mark.parametrize(
    ("corpus", "match"),
    [("sample", "python -m nltk.downloader treebank"), ("ptb", "needs a licence.*LDC99T42")],
)
def test_reports_missing_corpus(corpus, match):
    with corpora_in(), pytest.raises(FileNotFoundError, match=match):
        treebank.load(corpus=corpus)
    with pytest.raises(ValueError, match="corpus must be 'sample' or 'ptb', not 'brown'"):
        treebank.load(corpus="brown")
