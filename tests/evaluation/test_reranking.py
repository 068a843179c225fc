"""Lists of candidate trees, the choice among them, and how sure a difference is."""

import itertools

import numpy as np
import pytest

from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.evaluation.reranking import (
    Candidates,
    bootstrap,
    check_golds,
    choose,
    last_best,
    read,
    table,
    write,
    write_scores,
)

pytestmark = pytest.mark.keras_free

WORDS = ["the", "dog", "saw", "a", "cat"]


def random_candidates(words, count, seed):
    generator = np.random.default_rng(seed)
    heads = list(dict.fromkeys(random_tree(words, seed).heads for seed in range(100)))[:count]
    relations = [f"r{place}" for place in range(len(words))]
    trees = [DependencyTree(words, one, words, relations) for one in heads]
    return Candidates(trees, np.sort(generator.normal(size=len(trees)))[::-1])


@pytest.fixture
def files(tmp_path):
    """Lists of three sentences, of 3, 1 and 2 trees, and their scores."""
    candidates = [
        random_candidates(WORDS, 3, 0),
        random_candidates(["yes"], 3, 1),
        random_candidates(["it", "fell"], 3, 2),
    ]
    paths = tmp_path / "a.conll", tmp_path / "a.scores"
    write(candidates, *paths)
    return candidates, *paths


def test_write_and_read_round_trip(files):
    candidates, lists, scores = files
    assert [len(trees) for trees, _ in candidates] == [3, 1, 2]
    found = read(lists, scores)
    assert [trees for trees, _ in found] == [trees for trees, _ in candidates]
    for one, other in zip(found, candidates, strict=True):
        assert one.scores.tolist() == other.scores.tolist()  # to the last bit
    assert len(scores.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3\n3\n4 five\n", "a.scores, line 3.*five"),
        ("1 2 3\n\n4 5\n", "a.scores, line 2.*must be the scores"),
        ("1 2 3\n3\n4 5 6\n", "a.scores, line 3.*a.conll ends after its tree 6"),
        ("1 2 3\n3\n4\n", "a.conll: has 6 trees.*5 scores"),
        ("1 2\n3 4\n5 6\n", "a.conll, sentence 2, tree 2: word 1 must be 'the'.*'yes'"),
    ],
)
def test_mismatched_scores_are_rejected(files, text, message):
    _, lists, scores = files
    scores.write_text(text)
    with pytest.raises(ValueError, match=message):
        read(lists, scores)


def test_nonprojective_tree_is_rejected(files):
    _, lists, scores = files
    crossing = DependencyTree(["who", "did", "you", "talk", "to"], [5, 4, 4, 0, 4])
    write([Candidates([crossing.projectivized()[0], crossing], [2, 1])], lists, scores)
    with pytest.raises(ValueError, match=r"a\.conll, sentence 1, tree 2.*projectivized\(\)"):
        read(lists, scores)


def test_missing_files_are_reported(files, tmp_path):
    _, lists, scores = files
    with pytest.raises(FileNotFoundError, match=r"none\.conll: no such file"):
        read(tmp_path / "none.conll", scores)
    with pytest.raises(FileNotFoundError, match=r"none\.scores: no such file"):
        read(lists, tmp_path / "none.scores")


def test_gold_trees_of_other_sentences_are_rejected(files):
    candidates, lists, _ = files
    golds = [trees[0] for trees, _ in candidates]
    check_golds(candidates, golds, lists)
    with pytest.raises(ValueError, match=r"a\.conll.*3 sent.*2 gold"):
        check_golds(candidates, golds[:2], lists)
    golds[2] = chain(["it", "rose"])
    with pytest.raises(ValueError, match=r"a\.conll, sentence 3: word 2 must be 'rose', not 'fel"):
        check_golds(candidates, golds, lists)


def test_scores_are_written_with_full_precision(tmp_path):
    write_scores([[0.1, -1e-300], np.array([1 / 3], "float32")], tmp_path / "a")
    rows = (tmp_path / "a").read_text().splitlines()
    assert rows == ["0.1 -1e-300", "0.3333333432674408"]


def test_choose_takes_the_best_of_the_first_k():
    scores = table([[-3.0, -2.0, -2.0, -1.0], [-5.0], [-2.0, -2.0]], -np.inf)
    expected = {1: [0, 0, 0], 2: [1, 0, 0], 3: [1, 0, 0], 4: [3, 0, 0], 9: [3, 0, 0]}
    for count, chosen in expected.items():
        assert choose(scores, count).tolist() == chosen


def test_last_best_prefers_the_last_of_ties():
    assert last_best([3, 5, 4, 5, 1]) == 3
    assert last_best([7]) == 0
    assert last_best([2, 2, 2]) == 2


def test_bootstrap_matches_all_possible_draws():
    first, second, words = np.array([3, 4, 0, 6]), np.array([5, 3, 1, 8]), np.array([7, 5, 1, 9])
    draws = [list(draw) for draw in itertools.product(range(4), repeat=4)]
    gains = np.array([(second - first)[draw].sum() / words[draw].sum() for draw in draws])
    found = bootstrap(first, second, words, draws=50_000, seed=0)
    assert found.value == 4 / 22
    assert found.low == pytest.approx(np.quantile(gains, 0.025, method="inverted_cdf"), abs=0.01)
    assert found.high == pytest.approx(np.quantile(gains, 0.975, method="inverted_cdf"), abs=0.01)
    assert found.p == pytest.approx(2 * (gains <= 0).mean(), abs=0.01)
    other_way = bootstrap(second, first, words, draws=50_000, seed=0)
    assert other_way == (-found.value, -found.high, -found.low, found.p)


def test_bootstrap_of_certain_differences():
    alike = bootstrap([1, 2], [1, 2], [3, 3], draws=99)
    assert alike == (0.0, 0.0, 0.0, 1.0)
    better = bootstrap([1, 2], [2, 4], [3, 6], draws=99)
    assert better.low == better.value == pytest.approx(1 / 3) and better.p == 2 / 100


def test_bootstrap_depends_only_on_its_seed():
    rows = np.random.default_rng(0).integers(0, 9, (2, 50))
    words = np.full(50, 10)
    assert bootstrap(*rows, words, seed=3) == bootstrap(*rows, words, seed=3)
    assert bootstrap(*rows, words, seed=3) != bootstrap(*rows, words, seed=4)
    assert bootstrap(*rows, words, draws=20) != bootstrap(*rows, words, draws=30)


def test_bootstrap_blocks_do_not_change_results(monkeypatch):
    """However many draws are held at once, they are the same."""
    rows = np.random.default_rng(0).integers(0, 9, (2, 50))
    whole = bootstrap(*rows, np.full(50, 10), draws=1001)
    monkeypatch.setattr("keras_onlstm.evaluation.reranking._BLOCK", 50 * 7)
    assert bootstrap(*rows, np.full(50, 10), draws=1001) == whole


def test_sentences_without_scored_words():
    with pytest.raises(ValueError, match="all are punctuation"):
        bootstrap([0], [0], [0])
    assert bootstrap([0, 1], [0, 2], [0, 2], draws=1000).value == 0.5
