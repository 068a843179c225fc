"""Behaviour that all examples share: exact resumption, error messages of one line, safe outputs.

The examples run with their smallest preset. Results of an example are tested in its own file.
"""

import json
import math
import shutil
import signal
import sys
import time
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import DEBUG, EXAMPLES, contents, ours
from helpers.runs import assert_same_run, results, without_times
from keras_onlstm.models import LanguageModel, PairClassifier
from keras_onlstm.utils.files import locked

# JAX would compile for minutes. `.ci/run` runs the scripts once on JAX and once on PyTorch.
pytestmark = pytest.mark.backend("tensorflow")

TRAINERS = [
    "logic_inference",
    "language_modeling",
    "syntactic_evaluation",
    "dependency_language_model",
]
ALL = [*TRAINERS, "sentence_completion", "parse_reranking", "unsupervised_parsing"]
trainers = pytest.mark.parametrize("name", TRAINERS, scope="module")
all_examples = pytest.mark.parametrize("name", ALL, scope="module")


@pytest.fixture(scope="module")
def example(name):
    """The module of the example."""
    with commands.example(name) as module:
        yield module


@pytest.fixture
def run(example, name):
    return lambda *arguments: commands.run_script(f"{name}.py", example, *arguments)


@pytest.fixture
def refused(name):
    return lambda result, *parts: commands.refused(f"{name}.py", result, *parts)


@pytest.fixture
def finished(finished_run, name):
    """The directory of a finished run. Not to be changed."""
    return finished_run(name)[0]


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def config_class(example, name):
    """The configuration class of the example."""
    with mock.patch.object(sys, "argv", [f"{name}.py"]):
        return example.parse_arguments()[1].config_class


@pytest.fixture
def started(config_class, tmp_path):
    """The directory of a run that was killed after it had written its configuration."""
    directory = tmp_path / "started"
    directory.mkdir()
    config = config_class.from_preset("debug").to_json()
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def flag(name):
    return f"--{name.replace('_', '-')}"


@trainers
def test_resume_matches_uninterrupted_run(run, config_class, name, started, finished, monkeypatch):
    """Stopped before the first checkpoint and within an epoch; the preset changes in between."""
    (started / ".checkpoint.npz.dead.part").mkdir()
    (started / ".lock").write_text("process 1 on a machine that is gone")
    other = config_class.presets["debug"] | {"batch_size": 7, "learning_rate": 0.5}
    monkeypatch.setitem(config_class.presets, "debug", other)
    batches = {"language_modeling": 30, "dependency_language_model": 11}.get(name, 7)
    status, _, errors = run("--output", started, "--resume", "--steps", batches)
    assert (status, ours(errors)) == (0, []) and not results(started)
    with np.load(started / "checkpoint.npz") as file:
        assert json.loads(file["state.json"].tobytes())["batch"] > 0
    status, _, errors = run("--output", started, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert_same_run(started, finished)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("name", ["logic_inference"], scope="module")
def test_resume_after_sigkill(run, name, finished, tmp_path):
    directory = tmp_path / "run"
    process = commands.start(EXAMPLES / f"{name}.py", *DEBUG, "--output", directory)
    while process.poll() is None and not (directory / "checkpoint.npz").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    status, _, errors = run("--output", directory, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert_same_run(directory, finished)


OLD_NAMES = {
    "activation_regularization": "activation",
    "temporal_regularization": "temporal",
    "bptt": "window",
    "variable_bptt": "jitter",
    "clipnorm": "clip",
    "weight_decay": "decay",
    "compute_dtype": "precision",
    "init_from": "start_from",
    "num_processes": "hosts",
}
NEW_NAMES = {"schedule", "beta_1", "epsilon", "plateau_factor", "plateau_patience"}
OLD_ARGUMENTS = {  # stored separately from the other values
    *("preset", "recurrent", "data", "seed", "max_words", "characters", "sentences"),
    *("test_sentences", "precision", "start_from", "devices", "hosts"),
    *("trees", "left_dependents", "vectors"),
}


def convert_to_old_version(config):
    """Arguments and values of a run with the names of earlier versions."""
    values = {name: config[name] for name in config if name not in NEW_NAMES}
    optimizer = {"asgd": "sgd"}.get(config["optimizer"], config["optimizer"])
    values = {OLD_NAMES.get(name, name): value for name, value in values.items()}
    values |= {"optimizer": optimizer, "preset": "smoke", "data": config["data"] or None}
    arguments = {name: values.pop(name) for name in OLD_ARGUMENTS & values.keys()}
    return arguments, values


@pytest.mark.parametrize("name", ["language_modeling", "dependency_language_model"], scope="module")
def test_resumes_run_of_earlier_version(run, finished, tmp_path):
    directory = tmp_path / "run"
    assert run(*DEBUG, "--output", directory, "--steps", 11)[0] == 0
    path = directory / "config.json"
    config = json.loads(path.read_text())
    command = {name: config.pop(name) for name in ("model", "command", "versions")}["command"]
    arguments, values = convert_to_old_version(config)
    assert values.keys() - config.keys()
    earlier = {"arguments": arguments, "values": values, "command": command}
    path.write_text(json.dumps(earlier))
    with np.load(directory / "checkpoint.npz") as file:
        arrays = dict(file)
    state = json.loads(arrays["state.json"].tobytes())
    recorded = {"seed", "recurrent", "left_dependents"} & arguments.keys()
    state["record"] = values | {name: arguments[name] for name in recorded}
    arrays["state.json"] = np.frombuffer(json.dumps(state).encode(), dtype=np.uint8)
    np.savez(directory / "checkpoint.npz", **arrays)
    assert run("--output", directory, "--resume")[0] == 0
    assert_same_run(directory, finished)


@trainers
def test_second_evaluation_gives_same_results(run, copied):
    before = contents(copied)
    for arguments in (["--evaluate", copied], ["--output", copied, "--resume"]):
        previous = results(copied)
        for result in previous:
            (copied / result).unlink()
        status, output, errors = run(*arguments)
        assert (status, ours(errors)) == (0, []) and "Epoch" not in output
        assert without_times(results(copied)) == without_times(previous)
        after = contents(copied)
        assert after.keys() == before.keys()
        changed = {path for path in after if after[path] != before[path]}
        assert changed <= {"syntactic_evaluation.json"}  # it contains the duration


@trainers
def test_resume_rejects_other_values(run, refused, config_class, started):
    config, before = json.loads((started / "config.json").read_text()), contents(started)
    others = {int: lambda value: value + 1, float: lambda _: 0.123}
    for name, value in config.items():
        if name in config_class.free or name in DEPENDENT:
            continue
        if type(value) is bool:
            arguments = [flag(f"no_{name}" if value else name)]
            parts = [f"{flag(name)} {value}, not {not value}"]
        elif type(value) in others:
            arguments = [flag(name), others[type(value)](value)]
            parts = [f"{flag(name)} {value}, not {arguments[1]}"]
        else:
            continue
        result = run("--output", started, "--resume", *arguments)
        refused(result, started, "was started with", *parts, f"Leave {flag(name)} out")
    result = run("--output", started, "--resume", "--preset", "paper")
    refused(result, started, "--preset debug, not paper")
    assert contents(started) == before


DEPENDENT = {"test_sentences", "weight_decay"}  # need other flags
DAMAGED = [
    "", "[]", "{}", "[" * 100_000, "\xff",
    *(json.dumps({"arguments": value}) for value in ({}, [1], 3, None, {"preset": {}})),
]  # fmt: skip


@trainers
def test_rejects_damaged_configuration(run, refused, name, started):
    path = started / "config.json"
    config = json.loads(path.read_text())
    wrong = [{other: {}} for other in config if other not in ("command", "versions")]
    wrong += [{"seed": -1}, {"preset": "gone"}, {"brow": 1}, {"model": "gone"}, {"model": [1]}]
    texts = [*DAMAGED, *(json.dumps(config | change) for change in wrong)]
    texts.append(json.dumps({n: config[n] for n in config if n != "epochs"}))
    commands_of = [["--output", started, "--resume"]]
    if name != "syntactic_evaluation":  # it also evaluates models of other scripts
        commands_of.append(["--evaluate", started])
    for text in texts:
        path.write_text(text, encoding="latin-1")
        before = contents(started)
        for command in commands_of:
            refused(run(*command), path, "Name the --output directory")
        assert contents(started) == before


@trainers
def test_rejects_damaged_or_missing_checkpoint(run, refused, copied):
    path = copied / "checkpoint.npz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = contents(copied)
    refused(run("--output", copied, "--resume"), path, "not a complete checkpoint", "Restore it")
    assert contents(copied) == before
    path.unlink()
    refused(run("--output", copied, "--resume"), path, "no such checkpoint")


@trainers
def test_rejects_damaged_or_missing_model(run, refused, finished, copied):
    path = copied / "best.keras"
    whole, first = path.read_bytes(), contents(finished)
    for share in (0.0, 0.5, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        before = contents(copied)
        for runs in ([copied], [finished, copied]):
            refused(run("--evaluate", *runs), path, "not a complete model")
        assert contents(copied) == before and contents(finished) == first
    path.write_bytes(whole)
    model = keras.saving.load_model(path, compile=False)
    model.weights[0].assign(model.weights[0] * math.nan)
    model.save(path)
    refused(run("--evaluate", copied), path, "is not finite", "Train again")
    path.unlink()
    refused(run("--evaluate", copied), path, "no trained model")


@trainers
def test_rejects_model_of_another_kind(run, refused, name, copied):
    if name in ("language_modeling", "syntactic_evaluation"):
        model, kind = PairClassifier(12, 7, embedding_dim=4, units=4, chunk_size=2), "LanguageM"
        model((np.ones((1, 2), "int32"),) * 2)
    else:
        model, kind = LanguageModel(4, 4, 4, 1, chunk_size=2), ""
        model.build()
    model.save(copied / "best.keras")
    message = f"must be a {kind}", f"not a {type(model).__name__}. Pass another run"
    refused(run("--evaluate", copied), copied, *message)


@trainers
def test_rejects_missing_run(run, refused, tmp_path):
    missing = tmp_path / "missing"
    for arguments in (["--output", missing, "--resume"], ["--evaluate", missing]):
        refused(run(*arguments), missing, "no ")
    assert contents(tmp_path) == {}


@all_examples
def test_does_not_overwrite_existing_output(run, refused, tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("a file")
    before = contents(tmp_path)
    refused(run(*DEBUG, "--output", tmp_path / "foreign"), tmp_path / "foreign", "exists already")
    refused(run(*DEBUG, "--output", tmp_path / "file"), tmp_path / "file", "--output")
    assert contents(tmp_path) == before


@all_examples
def test_rejects_output_in_use_by_another_process(run, refused, name, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with locked(tmp_path):
        before = contents(tmp_path)
        for arguments in (DEBUG, ["--resume"]) if name in TRAINERS else (DEBUG,):
            result = run("--output", tmp_path, *arguments)
            refused(result, tmp_path, "in use by another process", "another directory")
        assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["logic_inference", "unsupervised_parsing"], scope="module")
def test_rejects_output_that_is_not_writable(run, refused, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file")
    below = tmp_path / "file" / "run"
    refused(run(*DEBUG, "--output", below), below, "--output")

    def mkdir(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    directory = tmp_path / "locked"
    refused(run(*DEBUG, "--output", directory), directory, "Permission denied", "--output")


PAIR_OF_LISTS = ["--lists", "a", "b", "--scores", "c", "d"]
PARSED = ["--prepare-brown", "x", "--parse", "y"]
WRONG = {
    "logic_inference": [
        (["--preset", "nonsense"], "--preset must be 'debug' or 'small'", "'nonsense'"),
        (["--seed", "-1"], "--seed must be an integer from 0 to", "not -1"),
        ([*DEBUG, "--unit", "1"], "unexpected argument --unit: did you mean --units?"),
        ([*DEBUG, "--chunk_size", "1"], "unexpected argument --chunk_size", "--chunk-size?"),
        ([*DEBUG, "--units", "many"], "--units must be an integer, 1 or above, not 'many'"),
        ([*DEBUG, "--units", "0"], "--units must be an integer, 1 or above, not 0"),
        ([*DEBUG, "--dropout", "1.5"], "--dropout must be a number from 0 to 0.9999, not 1.5"),
        (
            [*DEBUG, "--learning-rate", "nan"],
            "--learning-rate must be a number from 0 to 1e+06, not nan",
        ),
        ([*DEBUG, "--schedule", "sine"], "--schedule must be 'cosine' or 'plateau', not 'sine'"),
        (["--steps", "0"], "--steps", "0 is not an integer, 1 or above"),
        ([*DEBUG, "stray"], "unexpected argument stray"),
        ([*DEBUG, "--data", "missing"], "missing", "no such"),
    ],
    "language_modeling": [
        (["--model", "gpt"], "--model gpt: choose one of language_model, prpn"),
        ([*DEBUG, "--slots", "3"], "unexpected argument --slots: belongs to --model prpn"),
        ([*DEBUG, "--optimizer", "adam"], "--weight-decay 1.2e-06: needs --optimizer adamw"),
        (["--devices", "21", *DEBUG], "--devices 21", "20 sequences"),
        ([*DEBUG, "--test-sentences"], "--test-sentences", "--sentences"),
        ([*DEBUG, "--data", "missing"], "--data missing", "no such folder"),
        ([], "--data is missing", "ptb.train.txt"),
    ],
    "syntactic_evaluation": [
        ([], "--data or --brown is missing"),
        ([*DEBUG, "--grammar", "5"], "--grammar", "--data or --brown"),
        (["--pairs", "missing.tsv", "--write-pairs", "x.tsv"], "missing.tsv: no such file"),
    ],
    "dependency_language_model": [
        (["--data", "a", "b"], "--data", "three CoNLL files"),
        (["--data", "a", "b", "c"], "a: no such file"),
        ([*DEBUG, "--unit", "3"], "did you mean --units?"),
        (["--score", "a"], "config.json"),
        (["--generate", "0"], "--generate"),
        ([*DEBUG, "--left-dependents", "--trees", "chain"], "--left-dependents"),
    ],
    "sentence_completion": [
        ([], "--preset debug"),
        (["--questions", "x"], "--questions and --trees must be passed together"),
        (["--prepare-brown", "x"], "--prepare-brown", "--parse MODEL"),
        (["--parse", "x"], "--parse", "--questions and --trees"),
        (["--blanks"], "--models"),
        (["--models", "x"], "nothing to do"),
        ([*PARSED, "--models", "z"], "--models needs questions", "--blanks"),
        (["--blanks", "--unknown", "0", "--models", "x"], "--unknown", "0 is not an integer"),
        (["--questions", "x", "--trees", "y", "--models", "z"], "y: no such file"),
        (["--questions", "x", "--trees", "y", "--parse", "z"], "questions.txt: no such file"),
    ],
    "parse_reranking": [
        (["--lists", "a", "b"], "--lists and --scores"),
        (["--gold", "a", "b"], "--gold", "--lists"),
        (["--jackknife", "1"], "--jackknife", "1 is not an integer, 2 or above"),
        ([*PAIR_OF_LISTS, "--jackknife", "2"], "--jackknife"),
        ([*DEBUG, *PAIR_OF_LISTS], "a: no such file"),
        ([*DEBUG, "--model", "nowhere"], "nowhere", "no such model"),
    ],
    "unsupervised_parsing": [
        (["--sections", "23"], "--sections", "--corpus ptb"),
        (["--pictures", "-1"], "--pictures", "-1 is not an integer, 0 or above"),
        ([*DEBUG, "--models", "missing.npz"], "missing.npz: no such model"),
    ],
}


@all_examples
def test_rejects_invalid_arguments(run, refused, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for arguments, *parts in WRONG[name]:
        refused(run(*arguments), *parts)
        assert contents(tmp_path) == {}, arguments
