"""A few of the damaged files of `fuzz_files.py`, and what that would make of a bad reader."""

import json
import random
import zipfile

import numpy as np
import pytest

import damages
import fuzz_files
from corpora import corpora_in
from file_kinds import KINDS, Kind, a_file
from keras_onlstm.datasets import treebank

PLAIN = (
    *("corpus", "mrg", "brown", "logic", "pickle", "tsv", "lines"),
    *("conll", "dependency_treebank", "questions", "vectors"),
)
SEED = 0


@pytest.mark.keras_free
@pytest.mark.parametrize("name", PLAIN)
def test_damaged_files_are_read_or_refused_by_name(name, tmp_path):
    kind = KINDS[name]
    target = kind.make(tmp_path)
    outcomes = [fuzz_files.run_case(kind, target, SEED, number) for number in range(40)]
    assert "refused" in outcomes


@pytest.mark.keras_free
def test_a_corpus_that_is_loaded_already_is_not_read_in_its_place(tmp_path):
    kind = KINDS["mrg"]
    targets = [kind.make(tmp_path / name) for name in ("before", "now")]
    with corpora_in(targets[0].directory):
        treebank.load()
        outcomes = [fuzz_files.run_case(kind, targets[1], SEED, number) for number in range(10)]
    assert "refused" in outcomes


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    "name", ["language_modeling", "compact", "tree_keras", "checkpoint", "onnx"]
)
def test_damaged_models_in_a_process_of_their_own(name):
    outcomes = dict(fuzz_files.watch(name, SEED, range(8)))
    assert set(outcomes) == set(range(8)), outcomes
    assert set(outcomes.values()) <= {"read", "refused"}, outcomes


def outcome(tmp_path, read):
    kind = Kind("bad", a_file("a.txt", "text"), damages.spans, read)
    return fuzz_files.run_case(kind, kind.make(tmp_path), SEED, 1)


def raises(make):
    def read(target, path):
        raise make(path)

    return read


@pytest.mark.keras_free
@pytest.mark.parametrize(
    ("read", "match"),
    [
        (raises(lambda path: KeyError(path)), "KeyError"),
        (raises(lambda path: RecursionError(path)), "RecursionError"),
        (raises(lambda path: ValueError("it is damaged")), "does not name a.txt"),
        (raises(lambda path: ValueError(f"{path}: a\nb")), "more than a line"),
        (raises(lambda path: ValueError(f"{path}: MemoryError")), "memory is at its end"),
        (lambda target, path: len(np.ones(10**8)), "MB"),
    ],
)
def test_what_a_finding_is(tmp_path, read, match):
    with pytest.raises(fuzz_files.Finding, match=match):
        outcome(tmp_path, read)
    assert (tmp_path / "a.txt").read_text() == "text"


@pytest.mark.keras_free
def test_what_none_is(tmp_path):
    assert outcome(tmp_path, lambda target, path: None) == "read"
    assert outcome(tmp_path, raises(lambda path: ValueError(f"{path}: it is damaged"))) == "refused"


@pytest.mark.keras_free
def test_cases_follow_from_the_seed(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(5.0), state=np.frombuffer(b'{"a": 1}', "u1"))
    whole = (tmp_path / "a.npz").read_bytes()
    first, again = ([damages.archive(random.Random(n), whole) for n in range(50)] for _ in range(2))
    assert first == again and len(set(first)) > 30 and whole not in first


@pytest.mark.keras_free
def test_damages_stay_in_their_format(tmp_path):
    """Most get past the first look of a reader: they are whole archives, and JSON."""
    np.savez(tmp_path / "a.npz", a=np.arange(5.0), b=np.zeros(3))
    whole = (tmp_path / "a.npz").read_bytes()
    opened = texts = 0
    for number in range(100):
        (tmp_path / "b.npz").write_bytes(damages.archive(random.Random(number), whole))
        opened += zipfile.is_zipfile(tmp_path / "b.npz")
        text = damages.json_text(random.Random(number), b'{"a": [1, {"b": "c"}]}')
        try:
            texts += json.loads(text) != {"a": [1, {"b": "c"}]}
        except ValueError:
            continue
    assert opened > 70 and texts > 60
