"""PRPN exported in every format, beside Keras."""

import subprocess
import sys

import numpy as np
import pytest

import exports
from checks import SINGLE, as_array, assert_close
from keras_onlstm import Parser, runtime
from keras_onlstm.exporting import graph_names, to_onnx, to_saved_model, to_tflite
from keras_onlstm.prpn.step import WALL
from test_saved_model import endpoints

pytestmark = pytest.mark.backend("tensorflow")

GRAPHS = ("parser", "language_model", "step")
BATCH, TIMES = 8, (1, 17, 200)


@pytest.fixture(scope="module")
def model():
    return exports.prpn(vocabulary=exports.WORDS, name="prpn")


@pytest.fixture(scope="module")
def directory(model, tmp_path_factory):
    """onnx/, tflite/ with a file for each graph, and saved/."""
    directory = tmp_path_factory.mktemp("prpn")
    for suffix, to, options in (("onnx", to_onnx, {}), ("tflite", to_tflite, {"batch": BATCH})):
        (directory / suffix).mkdir()
        for name in GRAPHS:
            path = directory / suffix / f"{name}.{suffix}"
            # One of them is compared with Keras by the exporter too.
            options = {**options, "check": (suffix, name) == ("onnx", "language_model")}
            exported = to(model, path, name, **options)
            if options["check"]:
                assert exported.difference.largest < SINGLE
    to_saved_model(model, directory / "saved", check=False)
    return directory


@pytest.fixture(scope="module")
def files(directory):
    """Functions by format and graph."""
    found = {
        (suffix, name): runtime.load(directory / suffix / f"{name}.{suffix}", threads=1).run
        for suffix in ("onnx", "tflite")
        for name in GRAPHS
    }
    saved = endpoints(directory / "saved")
    return {**found, **{("saved", name): saved[name] for name in GRAPHS}}


@pytest.fixture(scope="module")
def read(model):
    """Sentences of the largest size, and what Keras makes of them; fewer and shorter are in it."""
    ids, _ = exports.sentences(BATCH, max(TIMES))
    return ids, exports.read(model, ids)


def test_the_model_has_gates_of_every_kind(model, read):
    parsed = model.parsing(model._embed(read[0]))
    gates = as_array(parsed.gates)
    for kind in (gates == 0.0, gates == 1.0, (gates > 0.0) & (gates < 1.0)):
        assert 0.1 < kind.mean() < 0.8


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("name", ["parser", "language_model"])
@pytest.mark.parametrize("suffix", ["onnx", "tflite", "saved"])
def test_sentences(files, read, suffix, name, batch, time):
    if suffix == "tflite" and batch != BATCH:
        pytest.skip("a TensorFlow Lite file has one size of batch")
    _, lengths = exports.sentences(batch, time, seed=time)
    found = files[suffix, name](ids=read[0][:batch, :time], lengths=lengths)
    expected = exports.part(read[1], time, lengths)
    if name == "parser":
        del expected["log_probabilities"]
    assert found.keys() == expected.keys()
    for output, array in found.items():
        assert_close(array, expected[output], SINGLE, output)


@pytest.mark.parametrize("suffix", ["onnx", "tflite", "saved"])
def test_steps_are_the_whole_sentence(model, files, read, suffix):
    ids = read[0][:, :40]
    found = exports.step_by_step(files[suffix, "step"], model, ids)
    for output, array in exports.part(read[1], 40, np.full(BATCH, 40)).items():
        assert_close(found[output], array, SINGLE, output)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_a_step_says_what_states_start_with(directory, suffix):
    metadata = runtime.load(directory / suffix / f"step.{suffix}").metadata
    assert metadata["starts"] == {"history": WALL}  # all others are zeros


def test_a_parser_is_the_parsing_network_alone(directory):
    """Whoever wants trees does not wait for words to be predicted."""
    sizes = {
        name: (directory / "onnx" / f"{name}.onnx").stat().st_size for name in ("parser", "step")
    }
    weights = 4 * (exports.VOCABULARY_SIZE * 12 + 3 * 12 * 10 + 10 + 10)
    assert weights < sizes["parser"] < weights + 30_000 < sizes["step"]


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_trees_and_scores_without_keras(model, directory, suffix):
    sentence = "word3 word1 word4 word1 word5"
    of_keras = Parser(model)
    parser = Parser.load(directory / suffix / f"parser.{suffix}")
    assert_close(parser.distances(sentence), of_keras.distances(sentence), SINGLE, "distances")
    assert str(parser(sentence)) == str(of_keras(sentence))
    scoring = runtime.ExportedModel(runtime.load(directory / suffix / f"language_model.{suffix}"))
    assert_close(scoring.score([sentence])[0], model.score([sentence])[0], SINGLE, "scores")
    command = (
        "import sys; from keras_onlstm import Parser; "
        f"print(Parser.load({str(directory / suffix / f'parser.{suffix}')!r})({sentence!r}));"
        "assert 'keras' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert done.stdout.split() == str(of_keras(sentence)).split(), done.stderr


@pytest.mark.parametrize("quantize", ["dynamic", "float16"])
@pytest.mark.parametrize(("suffix", "to"), [("onnx", to_onnx), ("tflite", to_tflite)])
def test_smaller_weights(tmp_path, suffix, to, quantize):
    model = exports.prpn()
    exported = to(model, tmp_path / f"parser.{suffix}", "parser", quantize=quantize)
    bound = {"dynamic": 0.05, "float16": 0.005}[quantize]
    assert 0.0 < exported.difference.largest < bound


def test_without_what_can_be_left_out(tmp_path):
    parts = ("parsing_network", "reading_attention", "predict_attention", "tie_weights")
    model = exports.prpn(**dict.fromkeys(parts, False))
    assert graph_names(model) == GRAPHS
    exported = to_onnx(model, tmp_path / "step.onnx", "step")
    assert exported.difference.largest < SINGLE
