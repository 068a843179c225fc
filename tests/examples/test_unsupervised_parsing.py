"""examples/unsupervised_parsing.py: scores, files and error messages."""

import csv
import functools
import json
from argparse import Namespace

import numpy as np
import pytest

from helpers import commands
from helpers.commands import DEBUG, EXAMPLES, ours
from keras_onlstm.models import Ensemble, LanguageModel
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import build_tree, right_branching, score

pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "unsupervised_parsing.py"
refused = functools.partial(commands.refused, SCRIPT)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of two models of three layers, and of one of two."""
    words = ["<eos>", "<unk>", "N", "the", "company", "said", "it", "will", "sell", "its", "stake"]
    directory = tmp_path_factory.mktemp("models")
    paths = []
    for seed, layers in ((0, 3), (1, 3), (2, 2)):
        model = LanguageModel(len(words), 8, 16, layers, 4, vocabulary=words, seed=seed)
        model.build()
        paths.append(directory / f"{seed}.npz")
        save_eight_bit(model, paths[-1])
    return paths


def test_scores_match_trees_of_each_model(run, models, script, tmp_path):
    output = tmp_path / "run"
    status, text, errors = run(*DEBUG, "--models", *models[:2], "--output", output)
    assert (status, ours(errors)) == (0, [])
    results = json.loads((output / "results.json").read_text())
    sentences = script.load_sentences(Namespace(preset="debug"))
    golds = [sentence.tree for sentence in sentences]
    assert len(results["scores"]) == 3 * 2 * 2 and results["sentences"] == len(sentences) == 4
    row = next(
        r
        for r in results["scores"]
        if (r["layer"], r["gate"], r["method"]) == (3, "input", "binary")
    )
    expected = []
    for path in models[:2]:
        distances = Parser.load(path).distances_many([s.tokens for s in sentences], "input")
        trees = [
            build_tree(d[2], s.tokens, "binary") for d, s in zip(distances, sentences, strict=True)
        ]
        expected.append(score(trees, golds)["f1"])
    assert row["f1"]["values"] == pytest.approx(expected)
    assert row["f1"]["mean"] == pytest.approx(np.mean(expected))
    assert row["f1"]["deviation"] == pytest.approx(np.std(expected, ddof=1))
    assert row["f1"]["largest"] == pytest.approx(max(expected))
    right = score([right_branching(s.tokens) for s in sentences], golds)
    assert results["baselines"]["right-branching trees"]["f1"] == pytest.approx(right["f1"])
    assert "±" in text and "47.7" in text and "65.1" in text


def test_ensemble_scores_match_parser(run, models, script, tmp_path):
    both = Ensemble([load_eight_bit(path)[0] for path in models[:2]])
    save_eight_bit(both, tmp_path / "both.npz")
    results = []
    for number, paths in enumerate((models[:2], [tmp_path / "both.npz"])):
        output = tmp_path / f"run{number}"
        status, text, errors = run(*DEBUG, "--models", *paths, "--output", output)
        assert (status, ours(errors)) == (0, [])
        results.append(json.loads((output / "results.json").read_text()))
        assert "2 models, all layers, votes, greedy and binary" in text and "agreement" in text
    sentences = script.load_sentences(Namespace(preset="debug"))
    golds = [sentence.tree for sentence in sentences]
    ensembles = {(row["layer"], row["rule"]): row for row in results[0]["together"]}
    rules = {
        (2, "mean distances, greedy"): {"layer": 2, "method": "greedy"},
        (3, "mean distances, binary"): {"layer": 3, "method": "binary"},
        (1, "votes, greedy"): {"layer": 1, "voters": ["greedy"], "gate": "forget"},
        (None, "votes, greedy"): {"voters": ["greedy"], "gate": "forget"},
        (None, "votes, greedy and binary"): {"gate": "forget"},
        (2, "votes, greedy and binary, both gates"): {"layer": 2},
        (None, "votes, greedy and binary, both gates"): {},
    }
    assert len(ensembles) == 3 * 5 + 3
    for key, options in rules.items():
        trees = list(Parser(both, **options).parse_many(s.tokens for s in sentences))
        assert ensembles[key]["f1"] == pytest.approx(score(trees, golds)["f1"])
    first, second = (
        list(Parser.load(path, 3, "binary").parse_many(s.tokens for s in sentences))
        for path in models[:2]
    )
    row = next(
        row
        for row in results[0]["scores"]
        if (row["layer"], row["gate"], row["method"]) == (3, "forget", "binary")
    )
    assert row["agreement"] == pytest.approx(score(first, second)["f1"])
    row = ensembles[3, "mean distances, binary"]  # agreement of the first and the second model
    assert row["agreement"] == pytest.approx(score(first, second)["f1"])
    assert results[0]["together"] == results[1]["together"]
    assert results[0]["scores"] == results[1]["scores"]


def test_run_writes_files(run, models, tmp_path):
    output = tmp_path / "run"
    status, text, _ = run(*DEBUG, "--models", models[0], "--output", output, "--pictures", 2)
    names = {path.name for path in output.iterdir()}
    assert status == 0 and "±" not in text
    assert {"config.json", "report.html", "results.json", "scores.csv"} <= names
    assert {name for name in names if name.endswith(".svg")} == {"sentence_1.svg", "sentence_3.svg"}
    with open(output / "scores.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 1 + 12 + 4 + 8 and rows[0][1] == "F1"
    assert (output / "report.html").read_text().count("<details") == 4


def test_default_is_model_of_package(run, tmp_path):
    status, _, errors = run(*DEBUG, "--output", tmp_path / "run", "--pictures", 0)
    assert (status, ours(errors)) == (0, [])
    assert not list((tmp_path / "run").glob("*.svg"))


def test_rejects_models_with_different_layers(run, models, tmp_path):
    output = tmp_path / "run"
    refused(run(*DEBUG, "--models", *models[1:], "--output", output), "--models", "layers")
