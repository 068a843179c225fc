"""Constants of ONNX files: 8-bit weights and logits summed in parts. Also invalid opsets."""

import keras
import numpy as np
import pytest

from helpers import exports
from helpers.checks import SINGLE, assert_close
from keras_onlstm import ONLSTM
from keras_onlstm.exporting import onnx_weights, to_onnx
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit


@pytest.mark.backend("tensorflow")
def test_int8_weights_of_an_8_bit_model_are_lossless(tmp_path):
    """Weights of an 8-bit model keep their values, in any order of columns."""
    model = LanguageModel(2000, 150, 200, 2, 10, seed=0)
    model.build()
    exports.with_weights(model, 0.12)
    save_eight_bit(model, tmp_path / "model.npz")
    stored, _ = load_eight_bit(tmp_path / "model.npz")
    written = to_onnx(stored, tmp_path / "parser.onnx", "parser", quantize="weights")
    assert written.difference.largest < SINGLE
    assert written.size < 0.3 * to_onnx(stored, tmp_path / "32.onnx", "parser", check=False).size


def softmax_model(features, words=200):
    """An ONNX model of a product, a bias and log-softmax, its inputs and exact outputs."""
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
def test_split_logit_sums(features, parts):
    model, rows, exact = softmax_model(features)
    before = np.abs(run(model, rows) - exact).mean()
    onnx_weights.split_logit_sums(model)
    kinds = [node.op_type for node in model.graph.node]
    if parts == 1:
        assert kinds == ["MatMul", "Reshape", "Add", "LogSoftmax"]
        return
    assert kinds == ["Split"] * 2 + ["MatMul"] * parts + ["Sum", "Reshape", "Add", "LogSoftmax"]
    result = run(model, rows)
    assert_close(result, exact, SINGLE, "log-probabilities")
    assert np.abs(result - exact).mean() < 0.9 * before


@pytest.mark.keras_free
def test_float16_values_are_clipped():
    from onnx import numpy_helper

    model, rows, _ = softmax_model(128)
    matrix = numpy_helper.to_array(model.graph.initializer[0]).copy()
    matrix[0, :2] = 1e6, -1e6
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(matrix, "matrix"))
    onnx_weights.to_float16(model)
    constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    half = constants.pop("matrix/float16")
    assert half.dtype == "float16" and list(half[0, :2]) == [65504, -65504]
    assert_close(half[1:], matrix[1:], 1e-3, "the rest")
    assert {name: array.dtype for name, array in constants.items()} == {
        "bias": "float32",  # small constants are left unchanged
        "shape": "int64",
    }
    rows[:, 0] = 0.0
    wide = half.astype("float32")
    expected = exports.log_softmax(rows.astype("float64") @ wide + constants["bias"])
    assert_close(run(model, rows), expected, 2 * SINGLE, "log-probabilities")


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("opset", [17, 0, -1, 99, True, "18", None])
def test_invalid_opset_raises(tmp_path, opset):
    import tf2onnx

    maximum = max(tf2onnx.constants.OPSET_TO_IR_VERSION)
    model = keras.Sequential([keras.Input((None, 3)), ONLSTM(4)])
    with pytest.raises(ValueError, match=f"opset must be an integer, from 18 to {maximum}, not "):
        to_onnx(model, tmp_path / "model.onnx", opset=opset)
    assert list(tmp_path.iterdir()) == []
