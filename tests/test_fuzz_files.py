"""A few cases of `fuzz_files.py`, and its classification of outcomes."""

import fuzz_files
import pytest

from helpers.file_kinds import KINDS, Kind

CONFIGS = ("language_model", "tree_lstm", "earlier language_model")
PLAIN = ("corpus", "mrg", "logic", "pickle", "conll", *CONFIGS)


@pytest.mark.keras_free
@pytest.mark.parametrize("name", PLAIN)
def test_corrupted_files_are_read_or_rejected(name, tmp_path):
    kind = KINDS[name]
    paths = kind.make(tmp_path)
    outcomes = [fuzz_files.run_case(kind, paths, 0, number) for number in range(40)]
    assert {"rejected"} <= set(outcomes) <= {"read", "rejected"}, outcomes


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("name", ["keras", "checkpoint", "onnx"])
def test_corrupted_models_are_read_or_rejected(name):
    outcomes = fuzz_files.outcomes(name, 0, range(8))
    assert set(outcomes) == set(range(8)), outcomes
    assert set(outcomes.values()) <= {"read", "rejected"}, outcomes


@pytest.mark.keras_free
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyError, "KeyError"),
        (RecursionError, "RecursionError"),
        (lambda path: ValueError("it is damaged"), "does not name a.txt"),
        (lambda path: ValueError(f"{path}: a\nb"), "more than one line"),
        (lambda path: ValueError(f"{path}: it is damaged"), "rejected"),
    ],
)
def test_outcomes_are_classified(tmp_path, error, outcome):
    def read(path):
        raise error(path)

    (tmp_path / "a.txt").write_text("text")
    kind = Kind("bad", None, lambda draw, data: b"damaged", read)
    assert outcome in fuzz_files.run_case(kind, [tmp_path / "a.txt"], 0, 1)
    assert (tmp_path / "a.txt").read_text() == "text"
