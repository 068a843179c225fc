"""Models from files: those of before give what they gave, and no file takes more than it has."""

import json
import random
import zipfile
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import Variable

from checks import assert_close
from keras_onlstm import ONLSTM, Parser
from keras_onlstm.loading import load_model
from keras_onlstm.models import Ensemble, LanguageModel
from keras_onlstm.models.eight_bit import save_eight_bit
from keras_onlstm.utils import keras_private

DATA = Path(__file__).parent / "data"
SENTENCES = ["the cat saw a dog", "a bird saw the dog"]


@pytest.mark.parametrize("kind", ["keras", "npz"])
def test_models_of_before(kind):
    model, _ = load_model(DATA / f"before_starts.{kind}")
    with np.load(DATA / "before_starts_expected.npz") as file:
        for number, sentence in enumerate(SENTENCES):
            distances, scores = model.distances([sentence])[0], model.score([sentence])[0]
            assert_close(distances, file[f"{kind}.{number}.distances"], 1e-6, "distances")
            assert_close(scores, file[f"{kind}.{number}.scores"], 1e-5, "scores")


# --- Files that claim more than they have --------------------------------------------------------

WORDS = ["<eos>", "<unk>", "the", "cat"]


def language_model(words=WORDS, **options):
    model = LanguageModel(4, 8, 12, 2, chunk_size=4, vocabulary=words, seed=0, **options)
    model.build()
    return model


def ensemble():
    model = Ensemble([language_model()])
    model.build()
    return model


def layers():
    inputs = keras.Input((None, 6))
    return keras.Model(inputs, ONLSTM(12, chunk_size=4)(inputs))


def refused(path, match):
    with pytest.raises(ValueError, match=match) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: not a complete model")
    assert "\n" not in str(caught.value)


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_members(path, members, packed=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, content in members.items():
            file.writestr(name, content)


@pytest.fixture
def nothing_is_made(monkeypatch):
    """Fails where a variable of more than 1 MB is made, not planned."""
    original = Variable.__init__

    def made(self, initializer, shape=None, *args, **kwargs):
        large = shape is not None and np.prod(shape, dtype="float64") > 2**18
        assert in_stateless_scope() or not large, f"a variable of shape {shape} is made"
        return original(self, initializer, shape, *args, **kwargs)

    monkeypatch.setattr(Variable, "__init__", made)


@pytest.mark.parametrize(
    ("make", "old", "new"),
    [
        (lambda: language_model(None), '"vocabulary_size": 4', '"vocabulary_size": 1000000000'),
        (language_model, '"units": 12', '"units": 40000'),
        (language_model, '"units": 12, "num_layers": 2', '"units": 400, "num_layers": 40'),
        (layers, '"units": 12', '"units": 120000'),
        (ensemble, '"embedding_dim": 8', '"embedding_dim": 80000'),
    ],
)
@pytest.mark.usefixtures("nothing_is_made")
def test_sizes_without_numbers(tmp_path, make, old, new):
    """A configuration that asks for gigabytes, in a file of some kB."""
    path = tmp_path / "m.keras"
    make().save(path)
    members = members_of(path)
    text = members["config.json"].decode()
    assert old in text
    write_members(path, members | {"config.json": text.replace(old, new).encode()})
    refused(path, "its sizes ask for more than")


def test_weights_that_claim_much(tmp_path):
    path = tmp_path / "m.keras"
    language_model().save(path)
    members = members_of(path)
    (tmp_path / "w.h5").write_bytes(members["model.weights.h5"])
    with h5py.File(tmp_path / "w.h5", "a") as file:
        file["vars"].create_dataset("9", (20_000, 20_000), "f4", chunks=(1000, 1000))
    weights = (tmp_path / "w.h5").read_bytes()
    write_members(path, members | {"model.weights.h5": weights})
    refused(path, "bytes of weights claim to be 1,600,")
    text = members["config.json"] + b" " * 20_000_000
    write_members(path, members | {"config.json": text}, zipfile.ZIP_DEFLATED)
    refused(path, "bytes claim to be 20,0")


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
        ({"num_layers": 10**9}, r"config\.num_layers is an integer from 1 to 100, not"),
        ({"units": 16}, "is not int8 of shape"),
        ({"units": "12"}, r"config\.units is an integer, 1 or above, not '12'"),
        ({"tie_weights": 1}, r"config\.tie_weights is true or false, not 1"),
        ({"vocabulary": [["a"]]}, r"config\.vocabulary\[0\] is a text, not \['a'\]"),
    ],
)
@pytest.mark.usefixtures("nothing_is_made")
def test_compact_configurations(tmp_path, changes, match):
    path = tmp_path / "m.npz"
    save_eight_bit(language_model(None), path)
    rewrite(path, **changes)
    refused(path, match)


# --- Models that are of no use -------------------------------------------------------------------


def test_weights_that_are_not_finite(tmp_path):
    """Training that diverged is told from health when its model is loaded."""
    model = language_model()
    model.embeddings.assign(np.full((4, 8), np.nan))
    model.save(tmp_path / "m.keras")
    refused(tmp_path / "m.keras", "embeddings is not finite: its training has diverged")
    save_eight_bit(language_model(), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = dict(file)
    arrays["0.factors"] = np.full(8, np.inf, "f4")
    np.savez(tmp_path / "m.npz", **arrays)
    refused(tmp_path / "m.npz", r"0\.integers times 0\.factors is not finite")


def test_a_model_without_eos(tmp_path):
    for words in (["a", "b", "c", "d"], None):
        language_model(words).save(tmp_path / "m.keras")
        with pytest.raises(ValueError, match=r"m\.keras: its model has no vocabulary with <eos>"):
            Parser.load(tmp_path / "m.keras")


def test_other_endings(tmp_path):
    (tmp_path / "m.h5").write_bytes(b"")
    with pytest.raises(ValueError, match=r"m\.h5: ends neither in \.keras nor in \.npz"):
        load_model(tmp_path / "m.h5")


def test_planning_leaves_no_trace():
    """Neither names nor numbers of a later model depend on whether another one was planned."""
    drawn, state = [], random.getstate()
    for planned in (False, True):
        random.setstate(state)
        keras.utils.clear_session()
        if planned:
            keras_private.check_room(lambda: LanguageModel(4, 8, 12, 2, 4).build(), 10**6)
        drawn.append((LanguageModel(4, 8, 12, 2, 4).name, random.random()))
    assert drawn[0] == drawn[1] and drawn[0][0] == "language_model"
    with pytest.raises(ValueError, match="more than the 1,000 bytes of numbers that it has"):
        keras_private.check_room(language_model, 1000)
