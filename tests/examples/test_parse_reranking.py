"""examples/parse_reranking.py: what it chooses, counts and writes; one line for every mistake."""

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
def counting(script):
    """The module that counts and chooses."""
    import _reranking

    return _reranking


def numbers(path):
    return [np.array(line.split(), float) for line in path.read_text().splitlines()]


def lists_in(directory, *parts):
    """The options that name lists."""
    parts = parts or PARTS
    return [
        *("--lists", *(directory / f"{part}.conll" for part in parts)),
        *("--scores", *(directory / f"{part}.scores" for part in parts)),
    ]


TAGS = ["DT", "NN", "VB", ",", "."]
GOLD = DependencyTree(["the", "dog", "barks", ",", "."], [2, 3, 0, 3, 3], TAGS, list("abcde"))


def part_of(counting, heads, scores, golds=GOLD):
    """A part: for every sentence the heads of its trees."""
    candidates = [
        Candidates([DependencyTree(GOLD.words, one, TAGS, GOLD.relations) for one in row], given)
        for row, given in zip(heads, scores, strict=True)
    ]
    return counting.Part.of(candidates, [golds] * len(heads))


RIGHT, ONE_WRONG, TWO_WRONG = [2, 3, 0, 3, 3], [3, 3, 0, 2, 2], [3, 0, 2, 2, 2]


def test_words_that_count(counting):
    """Three of the five words, and of relations those alone whose head is right."""
    other = DependencyTree(GOLD.words, ONE_WRONG, TAGS, list("xbxde"))
    gold = DependencyTree(GOLD.words, GOLD.heads, TAGS, GOLD.relations)
    lists = [Candidates([other, gold], np.array([2.0, 1.0]))]
    part = counting.Part.of(lists, [gold])
    assert (part.words.tolist(), part.heads.tolist()) == ([3], [[2, 3]])
    assert part.relations.tolist() == [[1, 3]]
    shares = part.shares(part.right(np.array([0])))
    assert shares == {"uas": pytest.approx(2 / 3), "las": pytest.approx(1 / 3)}


def test_the_oracle_is_the_best_of_the_first(counting):
    part = part_of(
        counting,
        [[TWO_WRONG, ONE_WRONG, RIGHT], [ONE_WRONG, TWO_WRONG], [RIGHT]],
        [[3, 2, 1], [2, 1], [1]],
    )
    assert part.heads.tolist() == [[0, 2, 3], [2, 0, 0], [3, 0, 0]]
    uas = [part.oracle(count)["uas"] for count in (1, 2, 3, 9)]
    assert uas == pytest.approx([5 / 9, 7 / 9, 8 / 9, 8 / 9])


def test_k_is_the_larger_of_equals(counting):
    """By log P the 1st, 2nd, 2nd, 4th of up to 1, 2, 3, 4 trees are chosen: the 2nd is the best."""
    part = part_of(counting, [[TWO_WRONG, RIGHT, RIGHT, ONE_WRONG]], [[4.0, 3.0, 2.0, 1.0]])
    logs = counting.log_table([[-9.0, -7.0, -8.0, -6.0]])
    (alone, both), by_k = counting.choices(part, logs)
    assert by_k == pytest.approx([0, 1, 1, 2 / 3])
    assert (alone.name, alone.k, alone.weight) == ("log P", 3, 0.0)
    # With the parser's score there are weights, more than 1, by which the 4th loses to the 2nd.
    assert both.k == 4 and both.weight > 0.5
    assert both.right(part, logs)["uas"].tolist() == [3]


def test_the_weight_is_the_larger_of_equals(counting):
    """Log P wants the second trees, the parser the first; each is right once."""
    part = part_of(counting, [[RIGHT, ONE_WRONG], [ONE_WRONG, RIGHT]], [[4.0, 0.0], [0.5, 0.0]])
    logs = counting.log_table([[-8.0, -7.0], [-9.0, -7.0]])
    (alone, both), by_k = counting.choices(part, logs)
    # Right: 1/4 < weight < 4 for the first sentence and the second.
    assert by_k == pytest.approx([5 / 6, 5 / 6]) and alone.k == 2
    assert (both.k, both.weight) == (2, 2.0)
    assert both.right(part, logs)["uas"].tolist() == [3, 3]


def test_no_more_than_twenty_trees_are_chosen_from(counting):
    part = part_of(counting, [[ONE_WRONG] * 24 + [RIGHT]], [np.arange(25.0)[::-1]])
    (alone, _), by_k = counting.choices(part, counting.log_table([np.arange(25.0)]))
    assert len(by_k) == 20 and alone.k == 20


@pytest.fixture(scope="module")
def debug_run(script, tmp_path_factory):
    """The directory of a run of the preset `debug`. Not to be changed."""
    output = tmp_path_factory.mktemp("runs") / "run"
    options = [*DEBUG, "--jackknife", "3", "--output", output]
    assert commands.run_script(SCRIPT, script, *options)[0] == 0
    return output


def test_results_are_those_of_the_files(script, debug_run):
    results = json.loads((debug_run / "results.json").read_text())
    golds = {part: script.made_up(30, place) for place, part in ((1, "validation"), (2, "test"))}

    def right(part, choose):
        found = words = 0
        lists = read(debug_run / f"{part}.conll", debug_run / f"{part}.scores")
        logs = numbers(debug_run / f"{part}.log_probabilities")
        for (trees, scores), row, gold in zip(lists, logs, golds[part], strict=True):
            assert len(trees) == len(row) == 4 and (np.diff(scores) <= 0).all()
            tree = trees[choose(row, scores)]
            counted = [place for place, tag in enumerate(gold.tags) if tag != "."]
            found += sum(tree.heads[place] == gold.heads[place] for place in counted)
            words += len(counted)
        return found / words

    curve = [right("validation", lambda row, _, k=k: int(np.argmax(row[:k]))) for k in range(1, 5)]
    assert results["uas_by_k"] == pytest.approx(curve)
    alone, both = results["reranked"]
    k = max(range(1, 5), key=lambda k: (curve[k - 1], k))
    assert alone["k"] == k
    for part in PARTS:
        assert results["parser"][part]["uas"] == pytest.approx(right(part, lambda *_: 0))
        by_model = right(part, lambda row, _: int(np.argmax(row[:k])))
        assert alone[part]["uas"] == pytest.approx(by_model)
        weighted = right(
            part, lambda row, scores: int(np.argmax((row + both["weight"] * scores)[: both["k"]]))
        )
        assert both[part]["uas"] == pytest.approx(weighted)
        difference = alone[part]["difference"]
        assert difference["value"] == pytest.approx(by_model - results["parser"][part]["uas"])
        assert difference["low"] <= difference["value"] <= difference["high"]
    assert alone["test"]["uas"] > results["parser"]["test"]["uas"]  # the grammar was learnt
    assert list(results["oracle"]) == ["2", "4"]


def test_lists_of_training_sentences(script, debug_run):
    lists = read(debug_run / "train.conll", debug_run / "train.scores")
    assert [trees[0].words for trees, _ in lists] == [t.words for t in script.made_up(30, 0)]


def test_lists_that_are_given(run, script, debug_run, tmp_path):
    """The same lists by name make the same results; gold trees may be in files."""
    before = json.loads((debug_run / "results.json").read_text())
    options = [*DEBUG, *lists_in(debug_run), "--output"]
    status, _, errors = run(*options, tmp_path / "again")
    assert (status, ours(errors)) == (0, [])
    results = json.loads((tmp_path / "again" / "results.json").read_text())
    del before["training_cpu_seconds"]
    assert results == before
    assert not (tmp_path / "again" / "test.conll").exists()
    for place, part in enumerate(PARTS, 1):
        conll.write(script.made_up(30, place)[::-1], tmp_path / part)
        candidates = read(debug_run / f"{part}.conll", debug_run / f"{part}.scores")
        write(candidates[::-1], tmp_path / f"{part}.conll", tmp_path / f"{part}.scores")
    gold = ["--gold", tmp_path / "validation", tmp_path / "test"]
    assert run(*DEBUG, *lists_in(tmp_path), *gold, "--output", tmp_path / "gold")[0] == 0
    turned = json.loads((tmp_path / "gold" / "results.json").read_text())
    assert turned["oracle"] == before["oracle"] and turned["parser"] == before["parser"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A run of a TreeLSTM of normalized words, and one of a language model."""
    directory = tmp_path_factory.mktemp("models")
    words = ["<unk>", "<root>", "the", "N", "old", "dog", "saw", "a", "cat", "with", "."]
    tree = TreeLSTM(len(words), 4, 8, vocabulary=words, seed=3)
    other = LanguageModel(len(words), 8, 8, 1, 4, vocabulary=["<eos>", *words[:1], *words[2:]])
    for name, model in (("tree", tree), ("sequence", other)):
        model.build()
        (directory / name).mkdir()
        model.save(directory / name / "best.keras")
    return directory, tree


def test_a_model_that_is_given(run, debug_run, models, tmp_path):
    directory, model = models
    options = [*DEBUG, *lists_in(debug_run), "--model", directory / "tree"]
    status, text, errors = run(*options, "--output", tmp_path / "run")
    assert (status, ours(errors)) == (0, []) and "UAS of log P" in text
    lists = read(debug_run / "test.conll", debug_run / "test.scores")
    logs = numbers(tmp_path / "run" / "test.log_probabilities")
    for (trees, _), row in zip(lists, logs, strict=True):
        assert row == pytest.approx(model.log_probability(trees), abs=1e-4)


def test_words_are_as_the_model_knows_them(script, models):
    _, model = models
    trees = [DependencyTree(words.split(), [2, 0, 2]) for words in ("Cat saw 12.50", "cat saw N.N")]
    same, normalized = (
        script.log_probabilities(model, [Candidates([tree], [1.0])], "test")[0] for tree in trees
    )
    assert same == pytest.approx(normalized, abs=1e-5)
    assert not script.is_normalized(["Cat"]) and not script.is_normalized(["the", "9"])
    assert script.is_normalized(["the", "N.N", "n't"])
    raw = TreeLSTM(4, 4, 8, vocabulary=["<unk>", "<root>", "Cat", "cat"], seed=0)
    one, other = script.log_probabilities(
        raw, [Candidates([DependencyTree([word], [0])], [1.0]) for word in ("Cat", "cat")], "test"
    )
    assert math.fabs(one[0] - other[0]) > 1e-3


def test_without_a_model(run, script, monkeypatch, tmp_path):
    """The default preset parses NLTK's trees, and says how to rerank."""
    seeds = {"train": 0, "validation": 1, "test": 2}
    made_up = {part: script.made_up(6, seed) for part, seed in seeds.items()}
    monkeypatch.setattr(script.dependency_treebank, "load", made_up.get)
    status, text, errors = run("--output", tmp_path / "run")
    assert (status, ours(errors)) == (0, []) and "--model RUN" in text
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["reranked"] == [] and results["sentences"] == {"validation": 6, "test": 6}
    assert set(results["oracle"]) == {"2", "4", "8", "20"}
    assert len((tmp_path / "run" / "test.scores").read_text().splitlines()[0].split()) == 20


def test_a_model_of_another_kind(run, models, tmp_path):
    model = models[0] / "sequence"
    result = run(*DEBUG, "--model", model, "--output", tmp_path / "run")
    refused(result, model, "LanguageModel", "log P of a tree")
    assert not contents(tmp_path)


def test_lists_of_other_sentences(run, debug_run, tmp_path):
    result = run(*DEBUG, *lists_in(debug_run, "test", "validation"), "--output", tmp_path / "run")
    refused(result, "test.conll, sentence 1: word", "must be")


def test_gold_trees_without_tags(run, debug_run, tmp_path):
    gold = tmp_path / "gold.conll"
    conll.write([DependencyTree(["yes"], [0], ["UH"]), DependencyTree(["no"], [0])], gold)
    options = [*DEBUG, *lists_in(debug_run), "--gold", gold, gold]
    result = run(*options, "--output", tmp_path / "run")
    refused(result, "gold.conll, sentence 2", "no tags")
    assert not (tmp_path / "run").exists()


def test_log_probabilities_that_are_not_finite(run, debug_run, models, monkeypatch, tmp_path):
    monkeypatch.setattr(
        TreeLSTM, "log_probability", lambda self, trees: np.full(len(list(trees)), np.nan)
    )
    options = [*DEBUG, *lists_in(debug_run), "--model", models[0] / "tree"]
    refused(run(*options, "--output", tmp_path / "run"), "--model", "validation", "finite")
