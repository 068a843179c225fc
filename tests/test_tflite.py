"""TensorFlow Lite files beside plain Keras: few of them, since converting takes long."""

import keras
import numpy as np
import pytest

import exports
from checks import SINGLE, assert_close
from exports import TIMES
from keras_onlstm import ONLSTM, ONLSTMCell, runtime
from keras_onlstm.exporting import to_tflite
from keras_onlstm.exporting.graphs import draw_inputs, make_graph
from keras_onlstm.models import LanguageModel

pytestmark = pytest.mark.backend("tensorflow")

BATCH = 3
# How far log-probabilities may be off, and distances; and the size, by float32's.
BOUNDS = {
    None: (SINGLE, SINGLE, (1.0, 1.0)),
    "float16": (5e-3, 5e-4, (0.49, 0.52)),
    "dynamic": (0.3, 2e-2, (0.24, 0.30)),
}


@pytest.fixture(scope="module")
def model():
    return exports.language_model(vocabulary=exports.WORDS)


@pytest.fixture(scope="module")
def classifier():
    return exports.classifier()


def ways():
    """A model whose outputs are named after how its layers are used."""
    x, mask = keras.Input((None, 3), name="x"), keras.Input((None,), dtype="bool", name="mask")
    h, c = (keras.Input((12,), name=name) for name in "hc")
    options = {"return_sequences": True, "zero_output_for_mask": True}
    cells = keras.layers.RNN(ONLSTMCell(12, 1), go_backwards=True, **options)
    hidden = cells(x, mask=mask)
    _, last_h, last_c, forget_distance, _ = ONLSTM(
        12, 3, return_state=True, return_distances=True, use_bias=False
    )(hidden, initial_state=[h, c], mask=mask)
    outputs = {
        "cells": hidden,
        "last_h": last_h,
        "last_c": last_c,
        "forget_distance": forget_distance,
        "activation": ONLSTM(12, 4, activation="softsign", return_sequences=True)(x, mask=mask),
    }
    return exports.with_weights(keras.Model([x, mask, h, c], outputs), 0.6)


@pytest.fixture(scope="module")
def layers():
    return ways()


@pytest.fixture(scope="module")
def exported(model, classifier, layers, tmp_path_factory):
    """What `to_tflite` says of each graph, by name."""
    directory, found = tmp_path_factory.mktemp("tflite"), {}
    for name in ("parser", "language_model", "step"):
        path, check = directory / f"{name}.tflite", name == "language_model"
        found[name] = to_tflite(model, path, name, batch=BATCH, check=check, about={"by": "me"})
    for name, other in (("classifier", classifier), ("layer", layers)):
        path = directory / f"{name}.tflite"
        found[name] = to_tflite(other, path, batch=BATCH, check=False)
    return found


@pytest.fixture(scope="module")
def files(exported):
    return {name: runtime.load(one.path, threads=1) for name, one in exported.items()}


@pytest.fixture(scope="module")
def read(model):
    """Sentences of the largest size, and what Keras makes of them; shorter ones are in it."""
    ids, _ = exports.sentences(BATCH, max(TIMES))
    return ids, exports.read(model, ids)


# --- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("name", ["parser", "language_model"])
def test_sentences(files, read, name, time, padded):
    _, lengths = exports.sentences(BATCH, time, seed=time)
    lengths = lengths if padded else np.full(BATCH, time)
    ids, valid = read[0][:, :time], np.arange(time) < lengths[:, None]
    found = files[name].run(ids=ids, lengths=lengths)
    expected = exports.part(read[1], time, lengths)
    wanted = {"forget_distances", "input_distances"}
    assert found.keys() == (wanted if name == "parser" else expected.keys())
    for output, array in found.items():
        assert_close(array, expected[output], SINGLE, output)
    again = files[name].run(ids=np.where(valid, ids, 0), lengths=lengths)
    for output, array in found.items():
        assert_close(again[output], array, 0.0, f"{output} with another padding")


def test_steps_are_the_whole_sentence(model, files, read):
    found = exports.step_by_step(files["step"].run, model, read[0][:, :50])
    for output, array in exports.part(read[1], 50, np.full(BATCH, 50)).items():
        assert_close(found[output], array, SINGLE, output)


@pytest.mark.parametrize("times", [(1, 2), (17, 1), (2, 17), (200, 17)])
def test_pairs(files, classifier, times):
    left, right = exports.pair(BATCH, *times)
    found = files["classifier"].run(left=left, right=right)["probabilities"]
    assert_close(found, exports.classified(classifier, left, right), SINGLE, "probabilities")


@pytest.mark.parametrize("time", [6, 2, 1])
def test_layers(files, layers, time):
    given = draw_inputs(make_graph(layers), BATCH, time, seed=time)
    expected, found = layers(given), files["layer"].run(**given)
    assert found.keys() == expected.keys()
    for output, array in expected.items():
        assert_close(found[output], array, SINGLE, output)


# --- What is in a file ---------------------------------------------------------------------------


def test_operators(exported):
    import re

    for name, one in exported.items():
        odd = [kind for kind in one.operators if not re.fullmatch(r"[A-Z0-9_]+", kind)]
        assert not odd and not {"CUSTOM", "FLEX", "DELEGATE"} & one.operators.keys(), name
        assert one.operators["CUMSUM"] >= 2, name  # the other way would be a product in 8 bits
    loops = {name: one.operators.get("WHILE", 0) for name, one in exported.items()}
    assert loops == {"parser": 2, "language_model": 2, "step": 0, "classifier": 2, "layer": 3}


def test_what_is_said_of_a_file(exported, files):
    one = exported["language_model"]
    assert one.graphs == ("language_model",) and one.size == one.path.stat().st_size
    assert 0.0 < one.difference.largest < SINGLE and 0.0 < one.latency < 1.0
    assert one.difference.sizes[0] == BATCH == files["parser"].batch
    about = files["language_model"].metadata
    assert about["vocabulary"] == exports.WORDS and about["num_layers"] == 2
    assert about["about"] == {"by": "me"} and about["quantize"] is None
    assert {"ai-edge-litert", "keras", "tensorflow"} <= about["versions"].keys()
    assert exported["parser"].difference is None and exported["parser"].latency is None


@pytest.mark.parametrize("batch", [0, -1, True, 1.5, "2", None])
def test_batches_are_counted(model, tmp_path, batch):
    with pytest.raises(ValueError, match="batch must be an integer, 1 or above"):
        to_tflite(model, tmp_path / "model.tflite", "step", batch=batch)
    assert list(tmp_path.iterdir()) == []


# --- Smaller weights -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    """A model with one matrix for embedding and softmax, and what Keras makes of sentences."""
    model = LanguageModel(2000, 150, 200, 2, 10, seed=0)
    model.build()
    exports.with_weights(model, 0.12)
    ids = np.random.default_rng(0).integers(0, 2000, (BATCH, 20))
    return model, ids, exports.read(model, ids)


@pytest.fixture(scope="module")
def quantized(large, tmp_path_factory):
    directory, found = tmp_path_factory.mktemp("quantized"), {}
    for quantize in BOUNDS:
        path = directory / f"{quantize}.tflite"
        options = {"batch": BATCH, "quantize": quantize, "check": False}
        found[quantize] = to_tflite(large[0], path, "language_model", **options)
    return found


@pytest.mark.parametrize("quantize", BOUNDS)
def test_quantized_files(large, quantized, quantize):
    (_, ids, read), (off, distances_off, (least, most)) = large, BOUNDS[quantize]
    share = quantized[quantize].size / quantized[None].size
    assert least <= share <= most  # the shared matrix is there once
    graph = runtime.load(quantized[quantize].path)
    assert graph.metadata["quantize"] == quantize
    found = graph.run(ids=ids, lengths=np.full(BATCH, 20))
    errors = {name: np.abs(array - read[name]).max() for name, array in found.items()}
    for name, error in errors.items():
        assert error <= (off if name == "log_probabilities" else distances_off), name
    assert quantize is None or errors["log_probabilities"] > off / 20  # they are coarser
