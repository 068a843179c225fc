"""examples/logic_inference.py: what a run leaves, and one line for every mistake."""

import csv
import json
import math
import os
import re
import shutil
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

import commands
from commands import EXAMPLES, contents, ours
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.models import LanguageModel, PairClassifier
from keras_onlstm.training import Trainer
from keras_onlstm.utils.files import locked

# On JAX every process compiles for minutes; `.ci/run` runs the script there, and on PyTorch, once.
pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "logic_inference.py"
PAIR = ["( a ( and b ) )", "a"]
SMOKE = ["--preset", "smoke"]


@pytest.fixture(scope="module")
def script():
    """The example as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        import logic_inference

        yield logic_inference


def start(*arguments):
    return commands.start(SCRIPT, *arguments)


@pytest.fixture
def run(script, monkeypatch, capsys):
    """Runs the script's command line in this process: (exit status, stdout, stderr)."""
    return commands.runner(SCRIPT, script, monkeypatch, capsys)


def refused(result, *parts):
    commands.refused(SCRIPT, result, *parts)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """A finished run, made by the script as a process of its own. Not to be changed."""
    directory = tmp_path_factory.mktemp("smoke") / "run"
    process = start(*SMOKE, "--output", directory)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert ours(errors) == []
    return directory, output


@pytest.fixture
def copied(smoke, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(smoke[0], tmp_path / "run")


OTHERS = {
    "units": 30,
    "embedding_dim": 8,
    "chunk_size": 10,
    "dropout": 0.1,
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "schedule": "plateau",
    "pairs": 2000,
}


def test_a_run_keeps_every_value_and_goes_on_with_no_other(run, script, copied):
    path = copied / "config.json"
    config = json.loads(path.read_text())
    assert config["values"] == script.PRESETS["smoke"] and OTHERS.keys() == config["values"].keys()
    before, whole = contents(copied), path.read_bytes()
    for name, other in OTHERS.items():
        if name == "learning_rate":  # for each, a model is built before the record is compared
            path.write_text(json.dumps(config | {"values": config["values"] | {name: other}}))
            said = f"the run was begun with {name} {config['values'][name]}, not {other}."
            refused(run("--output", copied, "--resume"), copied / "checkpoint.npz", said)
        path.write_text(json.dumps(config | {"values": config["values"] | {name: []}}))
        refused(run("--output", copied, "--resume"), path, f"{name} is ", "Restore it")
        path.write_bytes(whole)
        given = ["--output", copied, "--resume", "--set", f"{name}={json.dumps(other)}"]
        refused(run(*given), copied, f"was started with {name} ", f"Leave --set {name} out")
        assert contents(copied) == before


def test_values_are_changed_on_the_command_line_alone(run, script, tmp_path, monkeypatch):
    """A run that was stopped goes on with the values it was started with, not those of a preset."""
    whole, stopped, preset = tmp_path / "whole", tmp_path / "stopped", script.PRESETS["smoke"]
    given = ["--set", "units=10", "pairs=600", "learning_rate=1e-2"]
    status, _, errors = run(*SMOKE, *given, "--output", whole)
    assert status == 0, errors
    values = json.loads((whole / "config.json").read_text())["values"]
    assert values == preset | {"units": 10, "pairs": 600, "learning_rate": 0.01}
    assert script.load_classifier(whole).recurrent.units == 10
    stopped.mkdir()
    shutil.copy(whole / "config.json", stopped)
    monkeypatch.setitem(script.PRESETS, "smoke", preset | {"dropout": 0.5, "batch_size": 8})
    status, _, errors = run("--output", stopped, "--resume")
    assert status == 0, errors
    assert (stopped / "results.json").read_bytes() == (whole / "results.json").read_bytes()
    other = tmp_path / "other"
    refused(run(*SMOKE, "--set", "unit=1", "--output", other), "--set unit=1:", "Is it units?")
    assert not other.exists()


@pytest.fixture
def data(tmp_path):
    """A directory of data files, small enough to read in no time."""
    directory = tmp_path / "data"
    logic.save(logic.generate(300), directory)
    return directory


def weights(directory):
    model = keras.saving.load_model(directory / "best.keras", compile=False, safe_mode=True)
    return [ops.convert_to_numpy(weight).tobytes() for weight in model.weights]


def epochs(directory):
    with open(directory / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["seconds"]
    return rows


def test_a_run_leaves_its_files(smoke, script):
    directory, output = smoke
    wanted = {"best.keras", "checkpoint.npz", "config.json", "metrics.csv", "metrics.json"}
    wanted |= {"results.json", ".lock"}
    if find_spec("matplotlib"):
        wanted |= {"accuracy.png", "accuracy.svg"}
    if find_spec("tensorboard"):
        wanted |= {"tensorboard"}
    assert {path.name for path in directory.iterdir()} == wanted

    config = json.loads((directory / "config.json").read_text())
    arguments = {"preset": "smoke", "recurrent": "onlstm", "data": None, "seed": 0}
    assert config["arguments"] == arguments
    assert config["versions"]["backend"] == keras.backend.backend()
    assert config["versions"]["keras"] == keras.__version__
    (row,) = json.loads((directory / "metrics.json").read_text())["epochs"]
    assert row["epoch"] == 1 and 0.2 < row["val_accuracy"] <= 1

    results = json.loads((directory / "results.json").read_text())
    test = logic.generate(script.PRESETS["smoke"]["pairs"], seed=0).test
    sizes = {str(n): len(pairs) for n, pairs in test.items() if pairs}
    assert {n: cell["pairs"] for n, cell in results["by_operators"].items()} == sizes
    assert all(0 <= cell["accuracy"] <= 1 for cell in results["by_operators"].values())
    assert f"{100 * results['by_operators']['7']['accuracy']:.1f}" in output
    assert "ON-LSTM run" in output and "published LSTM" in output


def test_pictures_are_pictures(smoke):
    pytest.importorskip("matplotlib")
    assert (smoke[0] / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (smoke[0] / "accuracy.svg").read_text()[-20:]


def test_accuracies_are_those_of_the_model(smoke, script):
    """Counted anew, one pair at a time and so without any padding."""
    model = keras.saving.load_model(smoke[0] / "best.keras", compile=False)
    results = json.loads((smoke[0] / "results.json").read_text())["by_operators"]
    test = logic.generate(script.PRESETS["smoke"]["pairs"], seed=0).test
    assert 10 <= len(test[10]) < 40
    correct = 0
    for pair in test[10]:
        ids = [[logic.encode(side)] for side in (pair.left, pair.right)]
        logits = ops.convert_to_numpy(model(tuple(map(ops.convert_to_tensor, ids))))
        correct += int(logits.argmax()) == logic.LABELS.index(pair.label)
    assert results["10"]["accuracy"] == correct / len(test[10])


def test_evaluating_again_gives_the_same_results(run, copied):
    before = contents(copied)
    (copied / "results.json").unlink()
    status, output, errors = run("--evaluate", copied)
    assert (status, ours(errors)) == (0, [])
    after = contents(copied)
    assert after.keys() == before.keys()
    for name in ("results.json", "checkpoint.npz", "best.keras", "config.json", "metrics.csv"):
        assert after[name] == before[name], name
    assert "Accuracy in percent" in output


def test_resuming_a_finished_run_goes_on_to_the_evaluation(run, copied):
    before = contents(copied)
    status, output, errors = run("--output", copied, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert "Epoch" not in output and "Accuracy in percent" in output
    after = contents(copied)
    pictures = {"accuracy.png", "accuracy.svg"}  # the latter holds the time
    assert {k: v for k, v in after.items() if k not in pictures} == {
        k: v for k, v in before.items() if k not in pictures
    }


def test_two_runs_side_by_side(run, smoke, copied, tmp_path):
    other = copied.rename(tmp_path / "other")
    (other / "results.json").unlink()
    before = (smoke[0] / "results.json").read_bytes()
    status, output, errors = run("--evaluate", smoke[0], other)
    assert (status, ours(errors)) == (0, [])
    header = next(line for line in output.splitlines() if line.startswith("operators"))
    assert re.search(r"ON-LSTM run +ON-LSTM other +published ON-LSTM", header)
    row = next(line for line in output.splitlines() if line.startswith("7 ")).split()
    assert row[2] == row[3] and row[4:] == ["91", "88"]
    assert (other / "results.json").read_bytes() == (smoke[0] / "results.json").read_bytes()
    assert (smoke[0] / "results.json").read_bytes() == before


@pytest.mark.parametrize("option", ["--evaluate", "--output"])
def test_a_pair(run, smoke, option):
    before = contents(smoke[0])
    status, output, errors = run(option, smoke[0], "--pair", *PAIR)
    assert (status, ours(errors)) == (0, [])
    lines = output.splitlines()
    shares = [float(line.split("%")[0]) for line in lines]
    assert len(lines) == 7 and sum(shares) == pytest.approx(100, abs=0.05)
    assert shares == sorted(shares, reverse=True)
    (true,) = [line for line in lines if "truth table" in line]
    assert "( a ( and b ) )  <  a: the left one entails the right one" in true
    assert contents(smoke[0]) == before


def test_data_files_are_used(run, data, tmp_path):
    status, output, errors = run(*SMOKE, "--data", data, "--output", tmp_path / "run")
    assert (status, ours(errors)) == (0, [])
    corpus = logic.load(data)
    assert f"{len(corpus.split(6)[0])} training" in output
    results = json.loads((tmp_path / "run" / "results.json").read_text())["by_operators"]
    sizes = {str(n): len(pairs) for n, pairs in corpus.test.items() if pairs}
    assert {n: cell["pairs"] for n, cell in results.items()} == sizes


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_9_and_resume(run, smoke, tmp_path):
    """Killed as soon as there is anything, before the first batch."""
    directory = tmp_path / "run"
    process = start(*SMOKE, "--output", directory)
    while process.poll() is None and not directory.exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    left = {path.name for path in directory.iterdir() if not path.name.startswith(".")}
    resume = ["--resume"] if "config.json" in left else SMOKE
    status, _, errors = run("--output", directory, *resume)
    assert (status, ours(errors)) == (0, [])
    assert weights(directory) == weights(smoke[0])
    assert epochs(directory) == epochs(smoke[0])
    assert (directory / "results.json").read_bytes() == (smoke[0] / "results.json").read_bytes()


def test_a_run_killed_before_its_first_checkpoint_resumes(run, smoke, tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    shutil.copy(smoke[0] / "config.json", directory)
    (directory / ".checkpoint.npz.dead.part").mkdir()
    (directory / ".lock").write_text("process 1 on a machine that is no more")
    status, _, errors = run("--output", directory, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert epochs(directory) == epochs(smoke[0])
    assert {path.name for path in directory.glob(".*")} == {".lock"}


# --- Mistakes: one line, status 2, nothing overwritten ------------------------------------------


def test_mistakes_in_a_process_of_its_own(smoke, tmp_path):
    """As a user meets them; the others run in this process, which takes less time."""
    before = contents(smoke[0])
    process = start(*SMOKE, "--output", smoke[0])
    _, errors = process.communicate(timeout=120)
    refused((process.returncode, "", errors), smoke[0], "exists already", "--resume", "--output")
    assert contents(smoke[0]) == before


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--preset", "nonsense"], ["--preset", "'nonsense'", "smoke", "--help"]),
        (["--recurrent", "gru"], ["--recurrent", "'gru'", "onlstm"]),
        (["--seed", "x"], ["--seed", "'x'"]),
        (["--seed", "1.5"], ["--seed", "'1.5'"]),
        (["--pair", "a"], ["--pair", "2"]),
        (["--nonsense"], ["--nonsense", "--help"]),
        (["extra"], ["extra"]),
    ],
    ids=" ".join,
)
def test_arguments_that_do_not_parse(run, monkeypatch, tmp_path, arguments, parts):
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments), *parts)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range(run, tmp_path, seed):
    refused(run(*SMOKE, "--seed", seed, "--output", tmp_path / "run"), "--seed", seed)
    assert contents(tmp_path) == {}


def test_an_output_that_exists(run, copied, tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("a file")
    before = contents(tmp_path)
    for name in ("run", "foreign"):
        refused(run(*SMOKE, "--output", tmp_path / name), tmp_path / name, "exists", "--output")
    refused(run(*SMOKE, "--output", tmp_path / "file"), tmp_path / "file", "--output")
    assert contents(tmp_path) == before


def test_an_output_where_another_process_is_at_work(run, copied):
    before = contents(copied)
    with locked(copied):
        for arguments in (SMOKE, ["--resume"]):
            result = run("--output", copied, *arguments)
            refused(result, copied, "in use by another process", "name another directory")
    assert contents(copied) == before


def test_another_process_that_is_faster(run, script, tmp_path, monkeypatch):
    """It started while this one was making its model."""
    directory, make = tmp_path / "run", script.make_model

    def slow(*args):
        directory.mkdir()
        (directory / "config.json").write_text("of the other one")
        return make(*args)

    monkeypatch.setattr(script, "make_model", slow)
    refused(run(*SMOKE, "--output", directory), directory, "exists already", "--resume")
    assert (directory / "config.json").read_text() == "of the other one"
    assert [path.name for path in directory.iterdir()] == ["config.json"]


def test_weights_that_are_no_numbers(run, copied):
    model = keras.saving.load_model(copied / "best.keras", compile=False)
    model.weights[0].assign(model.weights[0] * math.nan)
    model.save(copied / "best.keras")
    for arguments in ([], ["--pair", *PAIR]):
        result = run("--evaluate", copied, *arguments)
        refused(result, copied / "best.keras", "is not finite", "Train again")


def test_an_output_that_cannot_be_written(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file")
    below = tmp_path / "file" / "run"
    refused(run(*SMOKE, "--output", below), below, "--output")

    def mkdir(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    directory = tmp_path / "locked"
    monkeypatch.setattr(Path, "mkdir", mkdir)
    refused(run(*SMOKE, "--output", directory), directory, "Permission denied", "--output")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_an_output_without_permission(run, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    refused(run(*SMOKE, "--output", locked / "run"), locked / "run", "denied", "--output")
    refused(run(*SMOKE, "--output", locked), locked, "denied", "--output")


def test_resuming_with_other_arguments(run, copied):
    before = contents(copied)
    for option, value, stored in (
        ("--seed", "1", "0"),
        ("--preset", "demo", "smoke"),
        ("--recurrent", "lstm", "onlstm"),
        ("--data", "/nowhere", "None"),
    ):
        result = run("--output", copied, "--resume", option, value)
        refused(result, copied, f"{option} {stored}, not {value}", "Leave")
    assert contents(copied) == before


@pytest.mark.parametrize("option", ["--resume", "--evaluate", "--pair"])
def test_a_run_that_does_not_exist(run, tmp_path, option):
    missing = tmp_path / "missing"
    arguments = {
        "--resume": ["--output", missing, "--resume"],
        "--evaluate": ["--evaluate", missing],
        "--pair": ["--evaluate", missing, "--pair", *PAIR],
    }[option]
    refused(run(*arguments), missing, "no ")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_truncated_checkpoint(run, copied, share):
    path = copied / "checkpoint.npz"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    before = contents(copied)
    refused(run("--output", copied, "--resume"), path, "not a complete checkpoint", "Restore it")
    assert contents(copied) == before


def test_a_missing_checkpoint(run, copied):
    (copied / "checkpoint.npz").unlink()
    before = contents(copied)
    refused(run("--output", copied, "--resume"), copied / "checkpoint.npz", "no such checkpoint")
    assert contents(copied) == before


@pytest.mark.parametrize("share", [None, 0.0, 0.5, 0.999])
def test_a_truncated_or_missing_model(run, smoke, copied, share):
    path = copied / "best.keras"
    if share is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    before = contents(copied)
    what = "no trained model" if share is None else "not a complete model"
    refused(run("--evaluate", copied), path, what, "rain")
    refused(run("--evaluate", copied, "--pair", *PAIR), path, what, "rain")
    first = contents(smoke[0])
    refused(run("--evaluate", smoke[0], copied), path, what)
    assert contents(copied) == before and contents(smoke[0]) == first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"arguments": 3}',
        '{"arguments": {}}',
        '{"arguments": {"preset": ["smoke"], "recurrent": "onlstm", "data": null, "seed": 0}}',
        '{"arguments": {"preset": "gone", "recurrent": "onlstm", "data": null, "seed": 0}}',
        '{"arguments": {"preset": "smoke", "recurrent": "onlstm", "data": null, "seed": "x"}}',
        '{"arguments": {"preset": "smoke", "recurrent": "onlstm", "data": 3, "seed": 0}}',
        "[" * 100_000,
    ],
    ids=range(11),
)
def test_a_damaged_config(run, copied, text):
    path = copied / "config.json"
    path.write_text(text)
    before = contents(copied)
    refused(run("--evaluate", copied), path, "Name the --output directory")
    refused(run("--output", copied, "--resume"), path, "Name the --output directory")
    assert contents(copied) == before


def test_models_of_another_kind(run, copied):
    """The run's arguments are those of this script, and its model is none that it can use."""
    model = LanguageModel(4, 4, 4, 1, chunk_size=2)
    model.build()
    classifier = PairClassifier(12, 2, embedding_dim=4, units=4, chunk_size=2)
    classifier((np.ones((1, 2), "int32"),) * 2)
    for other, what in (
        (model, "is a LanguageModel, and this script needs a PairClassifier"),
        (classifier, "its model classifies something else than pairs of formulas"),
    ):
        other.save(copied / "best.keras")
        for arguments in ([], ["--pair", "a", "b"]):
            refused(run("--evaluate", copied, *arguments), copied, what)


def test_data_that_is_not_there(run, data, tmp_path):
    output = tmp_path / "run"
    missing = tmp_path / "missing"
    refused(run(*SMOKE, "--data", missing, "--output", output), missing, "no such", "published")
    (data / "test7").unlink()
    refused(run(*SMOKE, "--data", data, "--output", output), data, "test7", "published")
    assert not output.exists()


@pytest.mark.parametrize(
    "line, parts",
    [
        (b"=\ta", ["fields: 2", "expected 3"]),
        (b"!\ta\tb", ["label '!'", "expected"]),
        (b"=\tx\tb", ["left", "'x'", "expected", "a to f"]),
        (b"=\ta\t( not b", ["right", "ends after token 3", "expected ')'"]),
        (b"=\ta )\tb", ["left", "token 2", "expected"]),
        (b"=\ta\t\xff", ["0xff", "UTF-8"]),
        (b"", ["fields: 1"]),
        (b"=\ta\t" + b"( " * 10_000, ["right", "expected"]),
    ],
    ids=["fields", "label", "variable", "open", "closed", "bytes", "empty", "deep"],
)
def test_a_malformed_line(run, data, tmp_path, line, parts):
    path = data / "train3"
    lines = path.read_bytes().split(b"\n")
    lines[1] = line
    path.write_bytes(b"\n".join(lines))
    output = tmp_path / "run"
    refused(run(*SMOKE, "--data", data, "--output", output), path, "line 2", *parts)
    assert not output.exists()


def test_empty_data_files(run, data, tmp_path):
    output = tmp_path / "run"
    for n in range(7):  # those to train on; there are others
        (data / f"train{n}").write_text("")
    refused(run(*SMOKE, "--data", data, "--output", output), data, "train0 to train6")
    for path in data.iterdir():
        path.write_text("")
    refused(run(*SMOKE, "--data", data, "--output", output), data, "all empty")
    assert not output.exists()


def test_too_little_data_to_validate(run, data, tmp_path):
    for n in range(7):
        (data / f"train{n}").write_text("=\ta\ta\n" if n == 0 else "")
    output = tmp_path / "run"
    refused(run(*SMOKE, "--data", data, "--output", output), data, "10")
    assert not output.exists()


@pytest.mark.parametrize(
    "left, right, parts",
    [
        ("( a ( and b )", "a", ["left", "ends after token 6", "expected ')'"]),
        ("a", "( a ( and b ) ) )", ["right", "token 8", "expected the end"]),
        ("a", "g", ["right", "'g'", "a to f"]),
        ("", "a", ["left", "empty", "expected"]),
        ("(a (and b))", "a", ["left", "'(a'"]),
        ("x" * 100_000, "a", ["left", "xxx...", "expected"]),
        ("( " * 10_000, "a", ["left", "ends after token 10000", "expected"]),
        ("( not " * 10_000 + "a" + " )" * 9_999, "a", ["left", "expected ')'"]),
        ("a\n\x1b[31m\u202e", "b", ["left", "token 2"]),
        ("a", "\x00", ["right", "token 1"]),
    ],
    ids=["open", "closed", "variable", "empty", "spaces", "long", "deep", "nots", "codes", "nul"],
)
def test_a_malformed_pair(run, smoke, left, right, parts):
    before = contents(smoke[0])
    result = run("--evaluate", smoke[0], "--pair", left, right)
    refused(result, *parts)
    assert "\x1b" not in result[2] and "\x00" not in result[2]
    assert contents(smoke[0]) == before


def test_a_pair_of_10000_brackets(run, smoke):
    deep = "( not " * 10_000 + "a" + " )" * 10_000
    status, output, errors = run("--evaluate", smoke[0], "--pair", deep, "a")
    assert (status, ours(errors)) == (0, [])
    assert "=  a: the two are equivalent  <- truth table" in output


def test_ctrl_c_while_training(run, monkeypatch, script, tmp_path):
    def interrupted(trainer):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "run", interrupted)
    status, _, errors = run(*SMOKE, "--output", tmp_path / "run")
    assert status == 130
    assert ours(errors) == ["logic_inference.py: stopped. The same command with --resume goes on."]
