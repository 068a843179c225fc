"""Compact models in NumPy: distances and trees match those of Keras."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers.commands import ROOT
from keras_onlstm.compact import CompactModel, read_compact
from keras_onlstm.loading import load_model
from keras_onlstm.models import Ensemble, LanguageModel
from keras_onlstm.models.ensemble import save_eight_bit
from keras_onlstm.parser import Parser

VOCABULARY = ["<eos>", "<unk>", "the", "cat", "dog", "saw", "a"]
SENTENCES = [["a", "cat"], [], ["the", "zebra", "saw", "a", "dog"], ["dog"], ["the", "cat"] * 20]


def model(seed, tied, layers, units=12):
    """A language model whose weights are far from zero, so that the gates vary."""
    made = LanguageModel(7, 8, units, layers, 4, tie_weights=tied, vocabulary=VOCABULARY)
    made.build()
    random = np.random.default_rng(seed)
    for weight in made.trainable_variables:
        weight.assign(random.normal(0.0, 0.7, weight.shape))
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of two models of different sizes, one of them with untied weights."""
    path = tmp_path_factory.mktemp("compact") / "both.npz"
    models = [model(1, True, 3), model(2, False, 2, 16)]
    save_eight_bit(Ensemble(models), path, ["one", "two"])
    return path


@pytest.mark.parametrize("gate", ["forget", "input", "both"])
def test_distances_match_keras(path, gate):
    (exact, about), (found, same) = load_model(path), load_model(path, keras=False)
    assert isinstance(exact, Ensemble) and isinstance(found, CompactModel) and about == same
    assert found.layers_per_model == exact.layers_per_model == (3, 2)
    assert found.num_layers == exact.num_layers == 5 and found.gates == exact.gates
    pairs = zip(exact.distances(SENTENCES, gate), found.distances(SENTENCES, gate), strict=True)
    for (wanted, got), sentence in zip(pairs, SENTENCES, strict=True):
        assert got.dtype == "float32" and got.shape == wanted.shape
        assert got.shape[1] == len(sentence)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    assert np.ptp(got) > 0.3  # the numbers differ


def test_shipped_model_matches_keras():
    texts = ["Prices fell.", "The committee that the board appointed has not met since 1987.", "Go"]
    found, exact = Parser.load(), Parser.load(keras=True)
    assert isinstance(found.model, CompactModel) and isinstance(exact.model, Ensemble)
    for got, wanted in zip(found.parse_detailed(texts), exact.parse_detailed(texts), strict=True):
        np.testing.assert_allclose(got.distances, wanted.distances, rtol=0, atol=1e-5)
        assert got.tree == wanted.tree
    assert found(texts[1]) == exact.parse(texts[1])


def test_call_is_parse(path):
    parser = Parser.load(path)
    text = 'The cat, "saw" a dog. A cat.'
    assert parser(text, split=False) == parser.parse(text, split=False)
    kept = parser(text, split=False, punctuation=True)
    assert kept == parser.parse(text, split=False, punctuation=True) != parser(text, split=False)


@pytest.mark.parametrize("keras", [False, True])
def test_threads_share_a_parser(path, keras):
    """Eight threads start together, two with each length."""
    sentences = [["the", "cat", "saw", "a", "dog"] * count for count in range(1, 5)]
    expected = list(map(Parser.load(path, keras=keras).distances, sentences))
    parser, start = Parser.load(path, keras=keras), threading.Barrier(8)

    def work(first):
        start.wait()
        for place in (*range(first, 4), *range(first)):
            found = parser.distances(sentences[place])
            np.testing.assert_allclose(found, expected[place], rtol=0, atol=1e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [0, 1, 2, 3] * 2))


def test_lstm_is_loaded_by_keras(tmp_path):
    lstm = LanguageModel(7, 8, 12, 1, recurrent="lstm", vocabulary=VOCABULARY)  # not built
    save_eight_bit(lstm, tmp_path / "lstm.npz")
    assert isinstance(load_model(tmp_path / "lstm.npz", keras=False)[0], LanguageModel)
    with pytest.raises(ValueError, match="This model has no distances, because it is an LSTM"):
        Parser.load(tmp_path / "lstm.npz")


def test_embeddings_stay_quantized(path):
    contents = read_compact(path)
    embeddings = contents.weights[0][0]
    assert embeddings.array.dtype == "int8" and embeddings.factors.shape == (8,)
    rows = np.array([[3, 0], [1, 3]])
    np.testing.assert_array_equal(embeddings.values(rows), embeddings.values()[rows])


WITHOUT_KERAS = """
import sys
from keras_onlstm.command_line import main
main(["parse", "Prices fell sharply"])
found = {"keras", "tensorflow", "jax", "h5py", "onnxruntime"} & sys.modules.keys()
assert not found, found
"""


@pytest.mark.keras_free
def test_parse_command_does_not_import_keras():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KERAS],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.strip() == "(X Prices (X fell sharply))"
