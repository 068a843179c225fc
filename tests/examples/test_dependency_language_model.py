"""examples/dependency_language_model.py: perplexities, trees. See also test_run_contract.py."""

import json
import math
import re
import shutil

import numpy as np
import pytest

from helpers.commands import EXAMPLES, ours, refused
from keras_onlstm.datasets import conll
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig

pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "dependency_language_model.py"


@pytest.fixture(scope="module")
def trained(finished_run):
    """Directory of a finished run. Not to be changed."""
    return finished_run("dependency_language_model")[0]


def test_perplexities_match_model_scores(trained, run, script):
    results = json.loads((trained / "results.json").read_text())
    corpus = script.load_trees(TreeLSTMConfig.load(trained))
    model = load_trained(trained, "tree_language_model")
    scores = model.score(corpus.test)
    expected = math.exp(-np.concatenate(scores).mean())
    assert abs(results["test_perplexity"] / expected - 1) < 1e-5
    assert results["parameters"] == model.count_params()
    pairs = [
        (path, score)
        for tree, row in zip(corpus.test, scores, strict=True)
        for path, score in zip(tree.paths(), row, strict=True)
    ]
    left = [score for path, score in pairs if str(path[-1][1]) == "LEFT"]
    short = [score for path, score in pairs if 3 <= len(path) <= 4]
    assert abs(results["test"]["edges"]["LEFT"] / math.exp(-np.mean(left)) - 1) < 1e-5
    assert abs(results["test"]["path_lengths"]["3 to 4"] / math.exp(-np.mean(short)) - 1) < 1e-5
    status, out, err = run("--evaluate", trained, trained)
    assert (status, ours(err)) == (0, [])
    assert f"{expected:.2f}" in out and "Kneser-Ney, 3-grams of dependencies" in out


def test_means_average_over_seeds(script):
    row = {"model": "TreeLSTM", "trees": "dependencies", "parameters": 1234}
    results = {
        name: {**row, "validation_perplexity": first, "test_perplexity": second}
        for name, first, second in (("a", 60.0, 80.0), ("b", 62.0, 83.0), ("c", 61.0, 86.0))
    }
    results["d"] = {**results["a"], "model": "LSTM"}
    (row,) = script.means(results)
    assert row == [
        "TreeLSTM, dependencies, 1,234 parameters: mean of 3", "61.00 ± 1.00", "83.00 ± 3.00"
    ]  # fmt: skip


def test_score_prints_log_probabilities(trained, run, tmp_path):
    trees = [DependencyTree(["left-c", "right-b", "right-c"], [2, 0, 2]), random_tree(["x"] * 4, 1)]
    conll.write(trees, tmp_path / "trees.conll")
    status, out, err = run("--output", trained, "--score", tmp_path / "trees.conll")
    assert (status, ours(err)) == (0, [])
    model = load_trained(trained, "tree_language_model")
    for scores in model.score(trees):
        assert f"{scores.sum():.3f}" in out


def test_generate_writes_trees(trained, run, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "run")
    status, out, err = run("--output", copy, "--generate", 3)
    assert (status, ours(err)) == (0, [])
    joint, conditional = map(float, re.search(r"tree\) (\S+), .*tree\) (\S+)", out).groups())
    assert joint < conditional < 0
    text = (copy / "generated.html").read_text()
    assert text.count("<svg") == 3


def write_corpus(tmp_path):
    trees = [random_tree(["The", "cat", "sat", "12"], seed) for seed in range(9)]
    paths = [tmp_path / f"{part}.conll" for part in ("train", "validation", "test")]
    for path in paths:
        conll.write(trees, path)
    return paths


SMALL = ("--epochs", 1, "--embedding-dim", 2, "--units", 3, "--batch-size", 4)


@pytest.mark.parametrize(
    "options, model",
    [
        (("--left-dependents",), "LdTreeLSTM"),
        (("--trees", "chain"), "LSTM"),
        (("--trees", "bidirectional"), "bidirectional LSTM"),
        (("--trees", "random"), "TreeLSTM"),
    ],
)
def test_trains_on_conll_files(run, tmp_path, options, model):
    output = tmp_path / "run"
    status, _, err = run("--data", *write_corpus(tmp_path), "--output", output, *options, *SMALL)
    assert (status, ours(err)) == (0, [])
    assert json.loads((output / "results.json").read_text())["model"] == model
    command = json.loads((output / "config.json").read_text())["command"]
    assert "--data train.conll validation.conll test.conll" in command
    assert all(option in command for option in options)
    if model == "LSTM":
        refused(SCRIPT, run("--output", output, "--generate", 1), "sequential")


def test_sentence_probability_includes_end(run, tmp_path):
    """The end of a sentence has a probability but does not count as a word."""
    output, paths = tmp_path / "run", write_corpus(tmp_path)
    options = ("--data", *paths, "--trees", "sentence", "--output", output)
    status, out, err = run(*options, *SMALL)
    assert (status, ours(err)) == (0, [])
    model = load_trained(output, "tree_language_model")
    assert model.vocabulary[:3] == ["<unk>", "<root>", "<eos>"]
    trees = [chain([*map(normalize, tree.words), "<eos>"]) for tree in conll.read(paths[2])]
    expected = model.log_probability(trees).sum() / sum(len(tree) - 1 for tree in trees)
    match = re.search(r"log P\(sentence\).*?LSTM, \S+ +\S+ +(\S+)", out, re.DOTALL)
    assert float(match[1]) == pytest.approx(expected, abs=6e-4)
    assert run("--output", output, "--score", paths[0])[0] == 0


def test_rejects_invalid_files(run, tmp_path, trained):
    paths = write_corpus(tmp_path)
    broken = tmp_path / "broken.conll"
    broken.write_text("1\ta\t_\t_\t_\t_\tnan\t_\t_\t_\n")
    crossing = tmp_path / "crossing.conll"
    conll.write([DependencyTree(["a", "b", "c", "d"], [3, 4, 0, 3])], crossing)
    empty = tmp_path / "empty.conll"
    empty.write_text("")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("cat 1 2 3\n")
    new = tmp_path / "new"
    cases = [
        (("--data", broken, *paths[1:], "--output", new), "broken.conll, line 1, column 7"),
        (
            ("--data", *paths, "--output", new, "--vectors", vectors, *SMALL),
            "line 1: the vector has 3",
        ),
        (("--output", trained, "--score", empty), "contains no trees"),
        (("--output", trained, "--score", crossing), "not projective"),
    ]
    for arguments, message in cases:
        refused(SCRIPT, run(*arguments), message)
        assert not new.exists(), arguments
