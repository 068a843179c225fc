"""examples/language_modeling.py --init-from: runs that start from the model of another run."""

import json
import shutil

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import EXAMPLES, contents, ours

# JAX would compile for minutes. `.ci/run` runs the script once on JAX and once on PyTorch.
pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "language_modeling.py"
ADAM = ["--optimizer", "adam", "--weight-decay", 0, "--epochs", 1]
FROZEN = [*ADAM, "--learning-rate", "1e-12"]  # weights do not change


@pytest.fixture
def first(finished_run, tmp_path):
    """A trained run."""
    return shutil.copytree(finished_run("language_modeling")[0], tmp_path / "first")


def start(run, first, output, *arguments, values=FROZEN):
    options = ["--preset", "debug", "--init-from", first, "--output", output]
    return run(*options, *arguments, *values)


def load_best(directory):
    return keras.saving.load_model(directory / "best.keras", compile=False, safe_mode=True)


def results(directory):
    return json.loads((directory / "results.json").read_text())


def test_starts_with_weights_of_other_run(run, first, tmp_path):
    again = tmp_path / "again"
    status, _, errors = start(
        run, first, again, "--seed", 1, values=[*FROZEN, "--input-dropout", 0.6]
    )
    assert (status, ours(errors)) == (0, [])
    for old, new in zip(load_best(first).weights, load_best(again).weights, strict=True):
        np.testing.assert_allclose(new, old, rtol=0, atol=1e-7, err_msg=old.path)
    assert results(again)["test_loss"] == pytest.approx(results(first)["test_loss"], abs=1e-6)
    assert (
        "--init-from first --epochs 1" in json.loads((again / "config.json").read_text())["command"]
    )


def test_resumes_exactly_after_other_run_was_deleted(run, first, tmp_path):
    values = [*ADAM, "--learning-rate", "3e-3"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert start(run, first, whole, values=values)[0] == 0
    assert start(run, first, parts, "--steps", 1, values=values)[0] == 0
    (parts / "checkpoint.npz").unlink()  # as if killed before the first checkpoint
    assert run("--output", parts, "--resume", "--steps", 3)[0] == 0
    shutil.rmtree(first)
    assert run("--output", parts, "--resume")[0] == 0
    for expected, weight in zip(load_best(whole).weights, load_best(parts).weights, strict=True):
        assert np.array_equal(expected, weight), weight.path


def test_new_corpus_is_read_with_vocabulary_of_other_run(run, first, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for part, count in (("train", 60), ("valid", 20), ("test", 20)):
        (data / f"{part}.txt").write_text("( a ( and zebra ) )\n" * count)
    again = tmp_path / "again"
    status, text, errors = start(run, first, again, "--data", data)
    assert (status, ours(errors)) == (0, []) and "480 tokens, 13 words" in text
    vocabulary = (first / "vocabulary.txt").read_text()
    assert (again / "vocabulary.txt").read_text() == vocabulary and "zebra" not in vocabulary
    assert load_best(again).vocabulary == load_best(first).vocabulary
    assert results(again)["test_loss"] < np.log(13) * 2  # includes `<unk>`, which was never trained
    assert run("--output", again, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("parts", "arguments", "values"),
    [
        (["units 20, not 30", "flags"], [], ["--units", 30]),
        (["must be of kind LSTM, got ON-LSTM"], ["--recurrent", "lstm"], FROZEN),
        (["--init-from", "reads words", "--characters"], ["--characters"], FROZEN),
        (["--max-words", "--init-from"], ["--max-words", 9], FROZEN),
    ],
)
def test_rejects_different_model(run, first, tmp_path, parts, arguments, values):
    before, again = contents(first), tmp_path / "again"
    commands.refused(SCRIPT, start(run, first, again, *arguments, values=values), *parts)
    assert contents(first) == before and not again.exists()


def test_rejects_missing_or_changed_directories(run, first, tmp_path):
    none, again = tmp_path / "none", tmp_path / "again"
    commands.refused(SCRIPT, start(run, none, again), none, "best.keras", "no trained model")
    assert start(run, first, again, "--steps", 2)[0] == 0
    result = run("--output", again, "--resume", "--init-from", tmp_path / "other")
    commands.refused(SCRIPT, result, again, "--init-from", "--output")
    (again / "vocabulary.txt").unlink()
    commands.refused(SCRIPT, run("--output", again, "--resume"), "vocabulary.txt", "Restore it")
