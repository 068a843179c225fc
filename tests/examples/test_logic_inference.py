"""examples/logic_inference.py: accuracies, pairs and data. See also test_run_contract.py."""

import functools
import json
import re
import shutil

import keras
import pytest
from keras import ops

from helpers import commands
from helpers.commands import DEBUG, EXAMPLES, contents, ours
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.pair_classifier import PairClassifierConfig

# JAX would compile for minutes. `.ci/run` runs the script once on JAX and once on PyTorch.
pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "logic_inference.py"
PAIR = ["( a ( and b ) )", "a"]
refused = functools.partial(commands.refused, SCRIPT)


@pytest.fixture(scope="module")
def debug_run(finished_run):
    """Directory of a finished run, not to be changed, and its output."""
    return finished_run("logic_inference")


@pytest.fixture
def copied(debug_run, tmp_path):
    return shutil.copytree(debug_run[0], tmp_path / "run")


@pytest.fixture
def data(tmp_path):
    """A directory of small data files."""
    directory = tmp_path / "data"
    logic.save(logic.generate(300), directory)
    return directory


def read_results(directory):
    return json.loads((directory / "results.json").read_text())["by_operators"]


def bucket_sizes(test):
    return {str(n): len(pairs) for n, pairs in test.items() if pairs}


def test_debug_run_writes_files(debug_run):
    directory, output = debug_run
    names = {"best.keras", "checkpoint.npz", "config.json", "metrics.csv", "metrics.json"}
    assert names <= {path.name for path in directory.iterdir()}
    (row,) = json.loads((directory / "metrics.json").read_text())["epochs"]
    assert row["epoch"] == 1 and 0.2 < row["val_accuracy"] <= 1
    results = read_results(directory)
    test = logic.generate(PairClassifierConfig.from_preset("debug").pairs, seed=0).test
    assert {n: cell["pairs"] for n, cell in results.items()} == bucket_sizes(test)
    assert all(0 <= cell["accuracy"] <= 1 for cell in results.values())
    assert f"{100 * results['7']['accuracy']:.1f}" in output
    assert "ON-LSTM run" in output and "published LSTM" in output


def test_accuracy_matches_model_applied_to_single_pairs(debug_run):
    """Single pairs need no padding."""
    model = keras.saving.load_model(debug_run[0] / "best.keras", compile=False)
    results = read_results(debug_run[0])
    test = logic.generate(PairClassifierConfig.from_preset("debug").pairs, seed=0).test
    assert 10 <= len(test[10]) < 40
    correct = 0
    for pair in test[10]:
        ids = [[logic.encode(side)] for side in (pair.left, pair.right)]
        logits = ops.convert_to_numpy(model(tuple(map(ops.convert_to_tensor, ids))))
        correct += int(logits.argmax()) == logic.LABELS.index(pair.label)
    assert results["10"]["accuracy"] == correct / len(test[10])


def test_evaluates_two_runs(run, debug_run, copied, tmp_path):
    other = copied.rename(tmp_path / "other")
    (other / "results.json").unlink()
    before = (debug_run[0] / "results.json").read_bytes()
    status, output, errors = run("--evaluate", debug_run[0], other)
    assert (status, ours(errors)) == (0, [])
    header = next(line for line in output.splitlines() if line.startswith("operators"))
    assert re.search(r"ON-LSTM run +ON-LSTM other +published ON-LSTM", header)
    row = next(line for line in output.splitlines() if line.startswith("7 ")).split()
    assert row[2] == row[3] and row[4:] == ["91", "88"]
    assert (other / "results.json").read_bytes() == (debug_run[0] / "results.json").read_bytes()
    assert (debug_run[0] / "results.json").read_bytes() == before


@pytest.mark.parametrize("option", ["--evaluate", "--output"])
def test_classifies_a_pair(run, debug_run, option):
    before = contents(debug_run[0])
    status, output, errors = run(option, debug_run[0], "--pair", *PAIR)
    assert (status, ours(errors)) == (0, [])
    lines = output.splitlines()
    percentages = [float(line.split("%")[0]) for line in lines]
    assert len(lines) == 7 and sum(percentages) == pytest.approx(100, abs=0.05)
    assert percentages == sorted(percentages, reverse=True)
    (correct,) = [line for line in lines if "truth table" in line]
    assert "( a ( and b ) )  <  a: the left one entails the right one" in correct
    assert contents(debug_run[0]) == before


def test_trains_on_data_files(run, data, tmp_path):
    options = ["--data", data, "--units", 10, "--output", tmp_path / "run"]
    status, output, errors = run(*DEBUG, *options)
    assert (status, ours(errors)) == (0, [])
    corpus = logic.load(data)
    assert f"{len(corpus.split(6)[0])} training" in output
    results = read_results(tmp_path / "run")
    assert {n: cell["pairs"] for n, cell in results.items()} == bucket_sizes(corpus.test)
    assert load_trained(tmp_path / "run", "classifier").recurrent.units == 10


def test_rejects_unusable_data(run, data, tmp_path):
    """Errors within a file are tested with `propositional_logic.load`."""
    output = tmp_path / "run"
    command = [*DEBUG, "--data", data, "--output", output]
    (data / "train0").write_text("=\ta\ta\n")
    for n in range(1, 7):
        (data / f"train{n}").write_text("")
    refused(run(*command), data, "10")
    (data / "train0").write_text("")  # now all training files are empty
    refused(run(*command), data, "train0 to train6")
    (data / "train3").write_bytes(b"=\ta\ta\n=\ta\t\xff\n")
    refused(run(*command), data / "train3", "line 2", "UTF-8")
    (data / "train3").write_text("")
    (data / "test7").unlink()
    refused(run(*command), data, "test7", "published")
    assert not output.exists()


@pytest.mark.parametrize(
    "left, right, parts",
    [
        ("a", "( a ( and b ) ) )", ["right", "token 8", "is unexpected"]),
        ("( not " * 10_000 + "a" + " )" * 9_999, "a", ["left", "not one complete statement"]),
        ("a\n\x1b[31m\u202e", "b", ["left", "token 2"]),
        ("a", "\x00", ["right", "token 1"]),
    ],
    ids=["closed", "nots", "codes", "nul"],
)
def test_rejects_malformed_pair(run, debug_run, left, right, parts):
    result = run("--evaluate", debug_run[0], "--pair", left, right)
    refused(result, *parts)
    assert "\x1b" not in result[2] and "\x00" not in result[2]


def test_classifies_deeply_nested_pair(run, debug_run):
    deep = "( not " * 10_000 + "a" + " )" * 10_000
    status, output, errors = run("--evaluate", debug_run[0], "--pair", deep, "a")
    assert (status, ours(errors)) == (0, [])
    assert "=  a: the two are equivalent  <- truth table" in output
