"""examples/language_modeling.py --init-from: a run that begins with the model of another one."""

import json
import shutil

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import EXAMPLES, contents, ours

# On JAX every process compiles for minutes; `.ci/run` runs the script there, and on PyTorch, once.
pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "language_modeling.py"
ADAM = ["--optimizer", "adam", "--weight-decay", 0, "--epochs", 1]
STILL = [*ADAM, "--learning-rate", "1e-12"]  # nothing moves


@pytest.fixture
def first(finished_run, tmp_path):
    """A trained run, of formulas."""
    return shutil.copytree(finished_run("language_modeling")[0], tmp_path / "first")


def start(run, first, output, *arguments, values=STILL):
    options = ["--preset", "debug", "--init-from", first, "--output", output]
    return run(*options, *arguments, *values)


def model_of(directory):
    return keras.saving.load_model(directory / "best.keras", compile=False, safe_mode=True)


def results(directory):
    return json.loads((directory / "results.json").read_text())


def test_it_begins_where_the_other_ended(run, first, tmp_path):
    again = tmp_path / "again"
    status, _, errors = start(
        run, first, again, "--seed", 1, values=[*STILL, "--input-dropout", 0.6]
    )
    assert (status, ours(errors)) == (0, [])
    for old, new in zip(model_of(first).weights, model_of(again).weights, strict=True):
        np.testing.assert_allclose(new, old, rtol=0, atol=1e-7, err_msg=old.path)
    assert results(again)["test_loss"] == pytest.approx(results(first)["test_loss"], abs=1e-6)
    assert (
        "--init-from first --epochs 1" in json.loads((again / "config.json").read_text())["command"]
    )


def test_it_resumes_to_the_same_bits_without_the_other(run, first, tmp_path):
    values = [*ADAM, "--learning-rate", "3e-3"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert start(run, first, whole, values=values)[0] == 0
    assert start(run, first, parts, "--steps", 1, values=values)[0] == 0
    (parts / "checkpoint.npz").unlink()  # as if killed before the first one
    assert run("--output", parts, "--resume", "--steps", 3)[0] == 0
    shutil.rmtree(first)
    assert run("--output", parts, "--resume")[0] == 0
    for one, other in zip(model_of(whole).weights, model_of(parts).weights, strict=True):
        assert np.array_equal(one, other), one.path


def test_another_corpus_is_read_with_the_words_of_the_first(run, first, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for part, count in (("train", 60), ("valid", 20), ("test", 20)):
        (data / f"{part}.txt").write_text("( a ( and zebra ) )\n" * count)
    again = tmp_path / "again"
    status, text, errors = start(run, first, again, "--data", data)
    assert (status, ours(errors)) == (0, []) and "480 tokens, 13 words" in text
    vocabulary = (first / "vocabulary.txt").read_text()
    assert (again / "vocabulary.txt").read_text() == vocabulary and "zebra" not in vocabulary
    assert model_of(again).vocabulary == model_of(first).vocabulary
    assert results(again)["test_loss"] < np.log(13) * 2  # `<unk>`, which it has not seen, included
    assert run("--output", again, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("parts", "arguments", "values"),
    [
        (["units 20, not 30", "flags"], [], ["--units", 30]),
        (["a model of LSTM cannot start from one of ON-LSTM"], ["--recurrent", "lstm"], STILL),
        (["--init-from", "reads words", "--characters"], ["--characters"], STILL),
        (["--max-words", "--init-from"], ["--max-words", 9], STILL),
    ],
)
def test_models_that_differ_are_refused(run, first, tmp_path, parts, arguments, values):
    before, again = contents(first), tmp_path / "again"
    commands.refused(SCRIPT, start(run, first, again, *arguments, values=values), *parts)
    assert contents(first) == before and not again.exists()


def test_mistakes_in_directories(run, first, tmp_path):
    none, again = tmp_path / "none", tmp_path / "again"
    commands.refused(SCRIPT, start(run, none, again), none, "best.keras", "no trained model")
    assert start(run, first, again, "--steps", 2)[0] == 0
    result = run("--output", again, "--resume", "--init-from", tmp_path / "other")
    commands.refused(SCRIPT, result, again, "--init-from", "--output")
    (again / "vocabulary.txt").unlink()
    commands.refused(SCRIPT, run("--output", again, "--resume"), "vocabulary.txt", "Restore it")
