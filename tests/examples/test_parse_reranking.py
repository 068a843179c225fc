"""examples/parse_reranking.py: choice of trees, attachment scores, files and error messages."""

import functools
import json
import math

import numpy as np
import pytest

from helpers import commands
from helpers.commands import DEBUG, EXAMPLES, contents, ours
from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.evaluation.reranking import Candidates, read, write
from keras_onlstm.models import LanguageModel, TreeLSTM

pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "parse_reranking.py"
refused = functools.partial(commands.refused, SCRIPT)
PARTS = "validation", "test"


@pytest.fixture(scope="module")
def reranking(script):
    """The module of scores and choices."""
    import _reranking

    return _reranking


def read_numbers(path):
    return [np.array(line.split(), float) for line in path.read_text().splitlines()]


def list_options(directory, *parts):
    """Options for the lists in a directory."""
    parts = parts or PARTS
    return [
        *("--lists", *(directory / f"{part}.conll" for part in parts)),
        *("--scores", *(directory / f"{part}.scores" for part in parts)),
    ]


TAGS = ["DT", "NN", "VB", ",", "."]
GOLD = DependencyTree(["the", "dog", "barks", ",", "."], [2, 3, 0, 3, 3], TAGS, list("abcde"))


def make_part(reranking, heads, scores):
    """A part of the data with the heads of the trees of every sentence."""
    candidates = []
    for heads_of_trees, tree_scores in zip(heads, scores, strict=True):
        trees = [DependencyTree(GOLD.words, h, TAGS, GOLD.relations) for h in heads_of_trees]
        candidates.append(Candidates(trees, tree_scores))
    return reranking.Part.compare(candidates, [GOLD] * len(heads))


RIGHT, ONE_WRONG, TWO_WRONG = [2, 3, 0, 3, 3], [3, 3, 0, 2, 2], [3, 0, 2, 2, 2]


def test_scores_exclude_punctuation(reranking):
    """Three of the five words are scored; a relation is correct only if the head is."""
    other = DependencyTree(GOLD.words, ONE_WRONG, TAGS, list("xbxde"))
    gold = DependencyTree(GOLD.words, GOLD.heads, TAGS, GOLD.relations)
    lists = [Candidates([other, gold], np.array([2.0, 1.0]))]
    part = reranking.Part.compare(lists, [gold])
    assert (part.words.tolist(), part.heads.tolist()) == ([3], [[2, 3]])
    assert part.relations.tolist() == [[1, 3]]
    accuracy = part.accuracy(part.correct(np.array([0])))
    assert accuracy == {"uas": pytest.approx(2 / 3), "las": pytest.approx(1 / 3)}


def test_oracle_chooses_best_of_first_k_trees(reranking):
    part = make_part(
        reranking,
        [[TWO_WRONG, ONE_WRONG, RIGHT], [ONE_WRONG, TWO_WRONG], [RIGHT]],
        [[3, 2, 1], [2, 1], [1]],
    )
    assert part.heads.tolist() == [[0, 2, 3], [2, 0, 0], [3, 0, 0]]
    uas = [part.oracle(count)["uas"] for count in (1, 2, 3, 9)]
    assert uas == pytest.approx([5 / 9, 7 / 9, 8 / 9, 8 / 9])


def test_ties_choose_larger_k(reranking):
    """With K = 1, 2, 3, 4, log P chooses the trees 1, 2, 2, 4. The 2nd and 3rd are correct."""
    part = make_part(reranking, [[TWO_WRONG, RIGHT, RIGHT, ONE_WRONG]], [[4.0, 3.0, 2.0, 1.0]])
    logs = reranking.log_table([[-9.0, -7.0, -8.0, -6.0]])
    (by_model, combined), by_k = reranking.tune(part, logs)
    assert by_k == pytest.approx([0, 1, 1, 2 / 3])
    assert (by_model.name, by_model.k, by_model.weight) == ("log P", 3, 0.0)
    # With a large weight of the parser's score, the 2nd tree scores higher than the 4th.
    assert combined.k == 4 and combined.weight > 0.5
    assert combined.correct(part, logs)["uas"].tolist() == [3]


def test_ties_choose_larger_weight(reranking):
    """Log P prefers the second trees, the parser the first; each is correct once."""
    part = make_part(reranking, [[RIGHT, ONE_WRONG], [ONE_WRONG, RIGHT]], [[4.0, 0.0], [0.5, 0.0]])
    logs = reranking.log_table([[-8.0, -7.0], [-9.0, -7.0]])
    (by_model, combined), by_k = reranking.tune(part, logs)
    # Both sentences are correct if 1/4 < weight < 4.
    assert by_k == pytest.approx([5 / 6, 5 / 6]) and by_model.k == 2
    assert (combined.k, combined.weight) == (2, 2.0)
    assert combined.correct(part, logs)["uas"].tolist() == [3, 3]


def test_k_is_at_most_twenty(reranking):
    part = make_part(reranking, [[ONE_WRONG] * 24 + [RIGHT]], [np.arange(25.0)[::-1]])
    (by_model, _), by_k = reranking.tune(part, reranking.log_table([np.arange(25.0)]))
    assert len(by_k) == 20 and by_model.k == 20


@pytest.fixture(scope="module")
def debug_run(script, tmp_path_factory):
    """The directory of a run of the preset `debug`. Not to be changed."""
    output = tmp_path_factory.mktemp("runs") / "run"
    options = [*DEBUG, "--jackknife", "3", "--output", output]
    assert commands.run_script(SCRIPT, script, *options)[0] == 0
    return output


def test_results_match_written_files(script, debug_run):
    results = json.loads((debug_run / "results.json").read_text())
    golds = {part: script.synthetic_trees(30, seed) for seed, part in enumerate(PARTS, 1)}

    def uas(part, choose):
        correct = words = 0
        lists = read(debug_run / f"{part}.conll", debug_run / f"{part}.scores")
        logs = read_numbers(debug_run / f"{part}.log_probabilities")
        for (trees, scores), row, gold in zip(lists, logs, golds[part], strict=True):
            assert len(trees) == len(row) == 4 and (np.diff(scores) <= 0).all()
            tree = trees[choose(row, scores)]
            scored = [index for index, tag in enumerate(gold.tags) if tag != "."]
            correct += sum(tree.heads[index] == gold.heads[index] for index in scored)
            words += len(scored)
        return correct / words

    curve = [uas("validation", lambda row, _, k=k: int(np.argmax(row[:k]))) for k in range(1, 5)]
    assert results["uas_by_k"] == pytest.approx(curve)
    by_model, combined = results["reranked"]
    k = max(range(1, 5), key=lambda k: (curve[k - 1], k))
    assert by_model["k"] == k
    weight, combined_k = combined["weight"], combined["k"]
    for part in PARTS:
        assert results["parser"][part]["uas"] == pytest.approx(uas(part, lambda *_: 0))
        reranked = uas(part, lambda row, _: int(np.argmax(row[:k])))
        assert by_model[part]["uas"] == pytest.approx(reranked)
        weighted = uas(
            part, lambda row, scores: int(np.argmax((row + weight * scores)[:combined_k]))
        )
        assert combined[part]["uas"] == pytest.approx(weighted)
        difference = by_model[part]["difference"]
        assert difference["value"] == pytest.approx(reranked - results["parser"][part]["uas"])
        assert difference["low"] <= difference["value"] <= difference["high"]
    assert by_model["test"]["uas"] > results["parser"]["test"]["uas"]
    assert list(results["oracle"]) == ["2", "4"]


def test_jackknife_writes_lists_of_training_sentences(script, debug_run):
    lists = read(debug_run / "train.conll", debug_run / "train.scores")
    assert [trees[0].words for trees, _ in lists] == [
        t.words for t in script.synthetic_trees(30, 0)
    ]


def test_lists_and_gold_from_files_give_same_results(run, script, debug_run, tmp_path):
    before = json.loads((debug_run / "results.json").read_text())
    options = [*DEBUG, *list_options(debug_run), "--output"]
    status, _, errors = run(*options, tmp_path / "again")
    assert (status, ours(errors)) == (0, [])
    results = json.loads((tmp_path / "again" / "results.json").read_text())
    del before["training_cpu_seconds"]
    assert results == before
    assert not (tmp_path / "again" / "test.conll").exists()
    for seed, part in enumerate(PARTS, 1):
        conll.write(script.synthetic_trees(30, seed)[::-1], tmp_path / part)
        candidates = read(debug_run / f"{part}.conll", debug_run / f"{part}.scores")
        write(candidates[::-1], tmp_path / f"{part}.conll", tmp_path / f"{part}.scores")
    gold = ["--gold", tmp_path / "validation", tmp_path / "test"]
    assert run(*DEBUG, *list_options(tmp_path), *gold, "--output", tmp_path / "gold")[0] == 0
    reversed_results = json.loads((tmp_path / "gold" / "results.json").read_text())
    assert all(reversed_results[key] == before[key] for key in ("oracle", "parser"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Runs of a TreeLSTM with normalized words and of a language model."""
    directory = tmp_path_factory.mktemp("models")
    words = ["<unk>", "<root>", "the", "N", "old", "dog", "saw", "a", "cat", "with", "."]
    tree = TreeLSTM(len(words), 4, 8, vocabulary=words, seed=3)
    other = LanguageModel(len(words), 8, 8, 1, 4, vocabulary=["<eos>", *words[:1], *words[2:]])
    for name, model in (("tree", tree), ("sequence", other)):
        model.build()
        (directory / name).mkdir()
        model.save(directory / name / "best.keras")
    return directory, tree


def test_reranks_with_trained_model(run, debug_run, models, tmp_path):
    directory, model = models
    options = [*DEBUG, *list_options(debug_run), "--model", directory / "tree"]
    status, text, errors = run(*options, "--output", tmp_path / "run")
    assert (status, ours(errors)) == (0, []) and "UAS of log P" in text
    lists = read(debug_run / "test.conll", debug_run / "test.scores")
    logs = read_numbers(tmp_path / "run" / "test.log_probabilities")
    for (trees, _), row in zip(lists, logs, strict=True):
        assert row == pytest.approx(model.log_probability(trees), abs=1e-4)


def test_words_are_normalized_like_vocabulary(script, models):
    _, model = models
    trees = [DependencyTree(words.split(), [2, 0, 2]) for words in ("Cat saw 12.50", "cat saw N.N")]
    raw_words, normalized = (
        script.log_probabilities(model, [Candidates([tree], [1.0])], "test")[0] for tree in trees
    )
    assert raw_words == pytest.approx(normalized, abs=1e-5)
    assert not script.is_normalized(["Cat"]) and not script.is_normalized(["the", "9"])
    assert script.is_normalized(["the", "N.N", "n't"])
    raw = TreeLSTM(4, 4, 8, vocabulary=["<unk>", "<root>", "Cat", "cat"], seed=0)
    upper, lower = script.log_probabilities(
        raw, [Candidates([DependencyTree([word], [0])], [1.0]) for word in ("Cat", "cat")], "test"
    )
    assert math.fabs(upper[0] - lower[0]) > 1e-3


def test_default_only_parses(run, script, monkeypatch, tmp_path):
    """The default preset parses NLTK's trees and prints how to rerank them."""
    seeds = {"train": 0, "validation": 1, "test": 2}
    trees = {part: script.synthetic_trees(6, seed) for part, seed in seeds.items()}
    monkeypatch.setattr(script.dependency_treebank, "load", trees.get)
    status, text, errors = run("--output", tmp_path / "run")
    assert (status, ours(errors)) == (0, []) and "--model RUN" in text
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["reranked"] == [] and results["sentences"] == {"validation": 6, "test": 6}
    assert set(results["oracle"]) == {"2", "4", "8", "20"}
    assert len((tmp_path / "run" / "test.scores").read_text().splitlines()[0].split()) == 20


def test_rejects_model_that_cannot_score_trees(run, models, tmp_path):
    model = models[0] / "sequence"
    result = run(*DEBUG, "--model", model, "--output", tmp_path / "run")
    refused(result, model, "LanguageModel", "cannot score trees")
    assert not contents(tmp_path)


def test_rejects_lists_of_other_sentences(run, debug_run, tmp_path):
    result = run(
        *DEBUG, *list_options(debug_run, "test", "validation"), "--output", tmp_path / "run"
    )
    refused(result, "test.conll, sentence 1: word", "must be")


def test_rejects_gold_trees_without_tags(run, debug_run, tmp_path):
    gold = tmp_path / "gold.conll"
    conll.write([DependencyTree(["yes"], [0], ["UH"]), DependencyTree(["no"], [0])], gold)
    options = [*DEBUG, *list_options(debug_run), "--gold", gold, gold]
    result = run(*options, "--output", tmp_path / "run")
    refused(result, "gold.conll, sentence 2", "no tags")
    assert not (tmp_path / "run").exists()


def test_rejects_log_probabilities_that_are_not_finite(
    run, debug_run, models, monkeypatch, tmp_path
):
    monkeypatch.setattr(
        TreeLSTM, "log_probability", lambda self, trees: np.full(len(list(trees)), np.nan)
    )
    options = [*DEBUG, *list_options(debug_run), "--model", models[0] / "tree"]
    refused(run(*options, "--output", tmp_path / "run"), "--model", "validation", "finite")
