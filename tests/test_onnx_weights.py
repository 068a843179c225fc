"""The constants of ONNX files: in half or a quarter of their size, and logits in parts."""

import keras
import numpy as np
import pytest

import exports
from checks import SINGLE, assert_close
from keras_onlstm import ONLSTM, runtime
from keras_onlstm.exporting import onnx_weights, to_onnx
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.eight_bit import load_eight_bit, save_eight_bit

# How far log-probabilities may be off, and distances; and the size, by float32's.
BOUNDS = {
    None: (SINGLE, SINGLE, (1.0, 1.0)),
    "float16": (5e-3, 2e-4, (0.49, 0.52)),
    "dynamic": (0.2, 1e-2, (0.24, 0.30)),
    "weights": (0.1, 5e-3, (0.24, 0.30)),
}


# --- Quantized files -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    model = LanguageModel(2000, 150, 200, 2, 10, seed=0)
    model.build()
    return exports.with_weights(model, 0.12)


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    directory, found = tmp_path_factory.mktemp("quantized"), {}
    for quantize in BOUNDS:
        path = directory / f"{quantize}.onnx"
        found[quantize] = to_onnx(model, path, "language_model", quantize=quantize, check=False)
    return found


@pytest.fixture(scope="module")
def read(model):
    ids = np.random.default_rng(0).integers(0, 2000, (5, 20))
    return ids, exports.read(model, ids)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("quantize", BOUNDS)
def test_quantized_files(exported, read, quantize):
    one, (off, distances_off, (least, most)) = exported[quantize], BOUNDS[quantize]
    assert least <= one.size / exported[None].size <= most
    graph = runtime.load(one.path)
    assert graph.metadata["quantize"] == quantize
    found = graph.run(ids=read[0], lengths=np.full(5, 20))
    assert found.keys() == read[1].keys()
    for name, array in found.items():
        bound = off if name == "log_probabilities" else distances_off
        assert_close(array, read[1][name], bound, f"{name}, {quantize}")


@pytest.mark.backend("tensorflow")
def test_quantized_weights_are_used(exported, read):
    """Coarser weights give other numbers: nothing was left in float32 by oversight."""
    runs = [runtime.load(exported[quantize].path).run for quantize in BOUNDS]
    given = {"ids": read[0], "lengths": np.full(5, 20)}
    errors = [
        np.abs(run(**given)["log_probabilities"] - read[1]["log_probabilities"]).max()
        for run in runs
    ]
    assert errors[1] > 10 * errors[0] and min(errors[2:]) > 10 * errors[1]


@pytest.mark.backend("tensorflow")
def test_what_stays_in_float32(exported):
    import onnx

    model = onnx.load(exported["dynamic"].path)
    parts = list(onnx_weights.subgraphs(model.graph))
    nodes = [node for part in parts for node in part.node]
    assert not any(node.op_type == "MatMul" for node in nodes)
    sums = [node for node in nodes if node.op_type == "Gemm"]  # of shares, and their means
    constants = {constant.name: constant for part in parts for constant in part.initializer}
    matrices = [constants[node.input[1]] for node in sums]
    wanted = [[n, size] for n, units in ((20, 200), (15, 150)) for size in (units, units, 1, 1)]
    assert [matrix.dims[:] for matrix in matrices] == wanted
    assert all(matrix.data_type == onnx.TensorProto.FLOAT for matrix in matrices)
    assert exported["dynamic"].operators["MatMulInteger"] == 5  # two a layer, and the softmax


@pytest.mark.backend("tensorflow")
def test_weights_of_eight_bits_lose_nothing(model, tmp_path):
    """What is in 8 bits already keeps its values, however the graph orders its columns."""
    save_eight_bit(model, tmp_path / "model.npz")
    stored, _ = load_eight_bit(tmp_path / "model.npz")
    written = to_onnx(stored, tmp_path / "parser.onnx", "parser", quantize="weights")
    assert written.difference.largest < SINGLE
    assert written.size < 0.3 * to_onnx(stored, tmp_path / "32.onnx", "parser", check=False).size


@pytest.mark.backend("tensorflow")
def test_logits_of_float32_are_added_in_parts(exported):
    assert [exported[quantize].operators.get("Sum") for quantize in BOUNDS] == [1, None, None, None]


# --- Small graphs --------------------------------------------------------------------------------


def softmax_model(features, words=200):
    """An ONNX model of a product, a bias and log-softmax, and what goes in and comes out."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(features)
    rows = rng.normal(0.3, 0.5, (64, features)).astype("float32")
    matrix = rng.normal(0.05, 0.3, (features, words)).astype("float32")
    bias = rng.normal(size=words).astype("float32")
    nodes = [
        helper.make_node("MatMul", ["rows", "matrix"], ["product"]),
        helper.make_node("Reshape", ["product", "shape"], ["reshaped"]),
        helper.make_node("Add", ["reshaped", "bias"], ["logits"]),
        helper.make_node("LogSoftmax", ["logits"], ["found"]),
    ]
    constants = {"matrix": matrix, "bias": bias, "shape": np.array([-1, words])}
    graph = helper.make_graph(
        nodes,
        "softmax",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None, features])],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, [None, words])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return model, rows, exports.log_softmax(rows.astype("float64") @ matrix + bias)


def run(model, rows):
    import onnxruntime

    content, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(content, providers=providers).run(None, {"rows": rows})[0]


@pytest.mark.keras_free
@pytest.mark.parametrize(("features", "parts"), [(128, 1), (129, 2), (290, 3), (300, 3)])
def test_logits_in_parts(features, parts):
    model, rows, exact = softmax_model(features)
    before = np.abs(run(model, rows) - exact).mean()
    onnx_weights.sharpen(model)
    kinds = [node.op_type for node in model.graph.node]
    if parts == 1:
        assert kinds == ["MatMul", "Reshape", "Add", "LogSoftmax"]
        return
    assert kinds == ["Split"] * 2 + ["MatMul"] * parts + ["Sum", "Reshape", "Add", "LogSoftmax"]
    found = run(model, rows)
    assert_close(found, exact, SINGLE, "log-probabilities")
    assert np.abs(found - exact).mean() < 0.9 * before


@pytest.mark.keras_free
def test_halves_are_finite():
    from onnx import numpy_helper

    model, rows, _ = softmax_model(128)
    matrix = numpy_helper.to_array(model.graph.initializer[0]).copy()
    matrix[0, :2] = 1e6, -1e6
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(matrix, "matrix"))
    onnx_weights.as_float16(model)
    constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    half = constants.pop("matrix/float16")
    assert half.dtype == "float16" and list(half[0, :2]) == [65504, -65504]
    assert_close(half[1:], matrix[1:], 1e-3, "the rest")
    assert {name: array.dtype for name, array in constants.items()} == {
        "bias": "float32",  # small ones are not worth it
        "shape": "int64",
    }
    rows[:, 0] = 0.0
    wide = half.astype("float32")
    expected = exports.log_softmax(rows.astype("float64") @ wide + constants["bias"])
    assert_close(run(model, rows), expected, 2 * SINGLE, "log-probabilities")


# --- Opsets --------------------------------------------------------------------------------------


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("opset", [17, 0, -1, 99, True, "18", None])
def test_opsets_that_are_not_there(tmp_path, opset):
    import tf2onnx

    most = max(tf2onnx.constants.OPSET_TO_IR_VERSION)
    model = keras.Sequential([keras.Input((None, 3)), ONLSTM(4)])
    with pytest.raises(ValueError, match=f"opset must be an integer, from 18 to {most}, not "):
        to_onnx(model, tmp_path / "model.onnx", opset=opset)
    assert list(tmp_path.iterdir()) == []
