"""ONNX files of the package's models beside plain Keras."""

import keras
import numpy as np
import pytest

import exports
from checks import SINGLE, as_array, assert_close, assert_differ
from exports import BATCHES, TIMES
from keras_onlstm import ONLSTM, runtime
from keras_onlstm.exporting import to_onnx

pytestmark = pytest.mark.backend("tensorflow")


SCANS = {"parser": 2, "language_model": 2, "step": 0, "classifier": 2, "layer": 1}


@pytest.fixture(scope="module")
def model():
    return exports.language_model(vocabulary=exports.WORDS, name="english")


@pytest.fixture(scope="module")
def classifier():
    return exports.classifier()


@pytest.fixture(scope="module")
def layer():
    x, mask = keras.Input((None, 5), name="x"), keras.Input((None,), dtype="bool", name="mask")
    return exports.with_weights(
        keras.Model([x, mask], ONLSTM(24, 4, return_sequences=True)(x, mask=mask))
    )


@pytest.fixture(scope="module")
def exported(model, classifier, layer, tmp_path_factory):
    """What `to_onnx` says of each graph, by name."""
    directory, found = tmp_path_factory.mktemp("onnx"), {}
    for name in ("parser", "language_model", "step"):
        path, check = directory / f"{name}.onnx", name == "language_model"
        found[name] = to_onnx(model, path, name, check=check, about={"by": "a test"})
    path = directory / "classifier.onnx"
    found["classifier"] = to_onnx(classifier, path, check=False, labels=list("=<>^|v#"))
    found["layer"] = to_onnx(layer, directory / "layer.onnx", check=False)
    return found


@pytest.fixture(scope="module")
def files(exported):
    return {name: runtime.load(one.path, threads=1) for name, one in exported.items()}


@pytest.fixture(scope="module")
def read(model):
    """Sentences of the largest size, and what Keras makes of them; fewer and shorter are in it."""
    ids, _ = exports.sentences(max(BATCHES), max(TIMES))
    return ids, exports.read(model, ids)


# --- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", ["parser", "language_model"])
def test_sentences(files, read, name, batch, time, padded):
    _, lengths = exports.sentences(batch, time, seed=time)
    lengths = lengths if padded else np.full(batch, time)
    found = files[name].run(ids=read[0][:batch, :time], lengths=lengths)
    expected = exports.part(read[1], time, lengths)
    wanted = {"forget_distances", "input_distances"}
    assert found.keys() == (wanted if name == "parser" else expected.keys())
    for output, array in found.items():
        assert_close(array, expected[output], SINGLE, output)


@pytest.mark.parametrize("name", ["parser", "language_model"])
def test_padding_has_no_effect(files, name):
    ids, lengths = exports.sentences(5, 17)
    run, padding = files[name].run, np.arange(17) >= lengths[:, None]
    together = run(ids=ids, lengths=lengths)
    other = run(ids=np.where(padding, (ids + 7) % 100, ids), lengths=lengths)
    for output, array in together.items():
        assert_close(other[output], array, 0.0, f"{output} with another padding")
    for row, length in enumerate(lengths):
        alone = run(ids=ids[row : row + 1, :length], lengths=[length])
        rest = {output: array[row : row + 1] for output, array in together.items()}
        for output, array in exports.part(rest, length, [length]).items():
            assert_close(alone[output], array, SINGLE, f"{output} of sentence {row}")


@pytest.mark.parametrize("batch", BATCHES)
def test_steps_are_the_whole_sentence(model, files, read, batch):
    ids = read[0][:batch, :50]
    found = exports.step_by_step(files["step"].run, model, ids)
    expected = exports.part(read[1], 50, np.full(batch, 50))
    for output, array in expected.items():
        assert_close(found[output], array, SINGLE, output)


def test_a_softmax_with_weights_of_its_own(tmp_path):
    model = exports.language_model(tie_weights=False)
    exported = to_onnx(model, tmp_path / "model.onnx", "language_model", check=False)
    ids, lengths = exports.sentences(3, 17)
    found = runtime.load(exported.path).run(ids=ids, lengths=lengths)
    for output, array in exports.part(exports.read(model, ids), 17, lengths).items():
        assert_close(found[output], array, SINGLE, output)


@pytest.mark.parametrize("times", [(1, 1), (2, 17), (17, 2), (200, 40)])
def test_pairs(files, classifier, times):
    left, right = exports.pair(max(BATCHES), *times)
    expected = exports.classified(classifier, left, right)
    assert_differ(expected[:1], expected[1:], 0.2, "probabilities of pairs")
    for batch in BATCHES:
        found = files["classifier"].run(left=left[:batch], right=right[:batch])
        assert_close(found["probabilities"], expected[:batch], SINGLE, "probabilities")
    longer = [np.pad(ids, ((0, 0), (0, 3))) for ids in (left, right)]
    found = files["classifier"].run(left=longer[0], right=longer[1])
    assert_close(found["probabilities"], expected, SINGLE, "with more padding")


@pytest.fixture(scope="module")
def sequences(layer):
    """Vectors, a mask with holes, and what Keras makes of them, of the largest size."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(max(BATCHES), max(TIMES), 5)).astype("float32")
    mask = rng.random(x.shape[:2]) < 0.7
    return x, mask, as_array(exports.plain(layer)(x, mask))


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("batch", BATCHES)
def test_sequences(files, sequences, batch, time):
    x, mask, expected = (array[:batch, :time] for array in sequences)
    assert_close(files["layer"].run(x=x, mask=mask)["output"], expected, SINGLE, "output")


# --- What is in a file ---------------------------------------------------------------------------


def test_what_is_said_of_a_file(exported, files):
    for name, one in exported.items():
        assert one.graphs == (name,) and one.size == one.path.stat().st_size
        checked = name == "language_model"
        assert (one.difference is None, one.latency is None) == (not checked, not checked)
    one = exported["language_model"]
    assert 0.0 < one.difference.largest < SINGLE and 0.0 < one.latency < 1.0
    assert files["classifier"].metadata["labels"] == list("=<>^|v#")
    about = files["language_model"].metadata
    assert about["vocabulary"] == exports.WORDS and about["num_layers"] == 2
    assert about["about"] == {"by": "a test"} and about["quantize"] is None
    assert {"tf2onnx", "onnx", "onnxruntime", "keras", "tensorflow"} <= about["versions"].keys()


def test_axes_have_names(exported):
    import onnx

    def axes(name):
        graph = onnx.load(exported[name].path).graph
        return {
            value.name: [
                axis.dim_param or axis.dim_value or None
                for axis in value.type.tensor_type.shape.dim
            ]
            for value in (*graph.input, *graph.output)
        }

    found = axes("language_model")
    assert found["ids"] == ["batch", "time"] and found["lengths"] == ["batch"]
    assert found["log_probabilities"][::2] == ["batch", 100]
    assert axes("step")["c_1"] == ["batch", 12]
    assert axes("classifier")["right"] == ["batch", "time_right"]


def test_recurrences_are_scans(exported):
    operators = {name: one.operators for name, one in exported.items()}
    for name, scans in SCANS.items():
        assert operators[name].get("Scan", 0) == scans and "Loop" not in operators[name], name
    assert operators["parser"].get("LogSoftmax") is None  # nobody asks for it


@pytest.mark.parametrize("name", ["parser", "language_model", "step", "classifier"])
def test_weights_stand_in_a_file_once(exported, model, classifier, name):
    import onnx
    from onnx import numpy_helper

    def numbers(array):
        return np.sort(np.abs(array), axis=None).astype("float32")  # whatever their order and sign

    graph = onnx.load(exported[name].path).graph
    inner = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
    constants = [c for part in (graph, *inner) for c in part.initializer]
    constants = [numbers(numpy_helper.to_array(constant)) for constant in constants]
    source = classifier if name == "classifier" else model
    matrices = [numbers(w) for w in source.get_weights() if w.ndim == 2 and w.size >= 1024]
    assert len(matrices) == (3 if name == "classifier" else 4)
    for matrix in matrices:
        assert sum(np.array_equal(matrix, constant) for constant in constants) == 1
