"""Models from files: old files give the same results, damaged ones an error of one line."""

import json
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

from helpers.checks import assert_close
from keras_onlstm import Parser
from keras_onlstm.loading import load_model
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.ensemble import save_eight_bit

DATA = Path(__file__).parent / "data"
SENTENCES = ["the cat saw a dog", "a bird saw the dog"]


@pytest.mark.parametrize("kind", ["keras", "npz"])
def test_files_of_earlier_versions(kind):
    model, _ = load_model(DATA / f"before_starts.{kind}")
    with np.load(DATA / "before_starts_expected.npz") as file:
        for number, sentence in enumerate(SENTENCES):
            distances, scores = model.distances([sentence])[0], model.score([sentence])[0]
            assert_close(distances, file[f"{kind}.{number}.distances"], 1e-6, "distances")
            assert_close(scores, file[f"{kind}.{number}.scores"], 1e-5, "scores")


WORDS = ["<eos>", "<unk>", "the", "cat"]


def language_model(words=WORDS):
    model = LanguageModel(4, 8, 12, 2, chunk_size=4, vocabulary=words, seed=0)
    model.build()
    return model


def assert_raises(path, match):
    with pytest.raises(ValueError, match=match) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: not a complete model")
    assert "\n" not in str(caught.value)


def test_keras_file_with_wrong_configuration_raises(tmp_path):
    path = tmp_path / "m.keras"
    language_model().save(path)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    assert b'"units": 12' in members["config.json"]
    for text in (members["config.json"].replace(b'"units": 12', b'"units": 16'), b"{", b"[]"):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in (members | {"config.json": text}).items():
                file.writestr(name, content)
        assert_raises(path, "Train again, or restore it from a copy")


def test_code_in_a_keras_file_is_not_run(tmp_path, capsys):
    inputs = keras.Input((2,))
    code = keras.layers.Lambda(lambda x: print("the code was run") or x)
    keras.Model(inputs, code(inputs)).save(tmp_path / "m.keras")
    capsys.readouterr()
    assert_raises(tmp_path / "m.keras", "lambda")
    assert capsys.readouterr() == ("", "")


def rewrite(path, **changes):
    """A compact file with another configuration."""
    with np.load(path) as file:
        arrays = dict(file)
    stored = json.loads(arrays["about.json"].tobytes())
    stored["config"].update(changes)
    arrays["about.json"] = np.frombuffer(json.dumps(stored).encode(), "u1")
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"units": 40_000}, r"is not int8 of shape \(8, 180000\)"),
        ({"vocabulary_size": 10**10}, r"is not int8 of shape \(10000000000, 8\)"),
        ({"num_layers": 10**9}, r"config\.num_layers must be an integer from 1 to 100, not"),
        ({"units": 16}, "is not int8 of shape"),
        ({"units": "12"}, r"config\.units must be an integer, 1 or above, not '12'"),
        ({"tie_weights": 1}, r"config\.tie_weights must be true or false, not 1"),
        ({"vocabulary": [["a"]]}, r"config\.vocabulary\[0\] must be a string, not \['a'\]"),
    ],
)
def test_invalid_compact_configurations_raise(tmp_path, changes, match):
    path = tmp_path / "m.npz"
    save_eight_bit(language_model(None), path)
    rewrite(path, **changes)
    assert_raises(path, match)


def test_weights_that_are_not_finite_raise(tmp_path):
    model = language_model()
    model.embeddings.assign(np.full((4, 8), np.nan))
    model.save(tmp_path / "m.keras")
    assert_raises(tmp_path / "m.keras", "embeddings is not finite: its training has diverged")
    save_eight_bit(language_model(), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = dict(file)
    arrays["0.factors"] = np.full(8, np.inf, "f4")
    np.savez(tmp_path / "m.npz", **arrays)
    assert_raises(tmp_path / "m.npz", r"0\.integers times 0\.factors is not finite")


def test_model_without_eos_raises(tmp_path):
    for words in (["a", "b", "c", "d"], None):
        language_model(words).save(tmp_path / "m.keras")
        with pytest.raises(ValueError, match=r"m\.keras: the model has no vocabulary with <eos>"):
            Parser.load(tmp_path / "m.keras")
