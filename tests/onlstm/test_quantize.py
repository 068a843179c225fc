"""`quantize` of Keras: matrices in 8 bits, and a refusal of what there is not."""

import keras
import numpy as np
import pytest

from helpers import oracle
from helpers.checks import (
    EXACT,
    SINGLE,
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    dtype_of,
    loaded,
)
from keras_onlstm import ONLSTM, ONLSTMCell, exporting
from keras_onlstm.models import LanguageModel, PairClassifier

# Keras says it of every model with an InputLayer.
pytestmark = pytest.mark.filterwarnings("ignore:Layer InputLayer does not have a `quantize`")

UNITS, CHUNK = 6, 2
PROBLEM = oracle.draw(UNITS, CHUNK, time=5)
X = PROBLEM.x.astype("float32")
MASK = oracle.masks(4, 5)["left"]
ALL = {"return_sequences": True, "return_state": True, "return_distances": True}
NAMES = oracle.Result._fields


def in_8_bits(matrix):
    """What is left of a matrix: 127 steps to the largest of each column."""
    scale = 127 / (np.abs(matrix).max(axis=0) + 1e-7)
    return np.rint(matrix * scale) / scale


KERNEL, RECURRENT_KERNEL, BIAS = PROBLEM.weights
ROUNDED = [in_8_bits(KERNEL), in_8_bits(RECURRENT_KERNEL), BIAS]
STORED = {"bias": "float32", "kernel": "int8", "kernel_scale": "float32"}
STORED |= {f"recurrent_{name}": dtype for name, dtype in STORED.items() if name != "bias"}


def expected(**options):
    zeros = np.zeros_like(PROBLEM.h)
    return oracle.onlstm(PROBLEM.x, zeros, zeros, *ROUNDED, chunk_size=CHUNK, **options)


@pytest.mark.parametrize("options", [{}, {"fused": False}, {"trainable": False}])
def test_a_layer_computes_with_the_rounded_matrices(options):
    layer = loaded(ONLSTM(UNITS, CHUNK, **ALL, **options), PROBLEM)
    before = layer(X, mask=MASK)
    layer.quantize("int8")
    assert {v.name: v.dtype for v in layer.weights} == STORED
    assert [v.name for v in layer.trainable_weights] == ["bias"][: layer.trainable]
    after = layer(X, mask=MASK)
    assert_all_close(after, expected(mask=MASK), SINGLE, NAMES)
    # What 8 bits cost: small beside the values, which are of order 1, and not nothing.
    assert_all_close(after, before, 0.05, NAMES)
    assert_differ(after[0], before[0], 1e-4, "output")
    with pytest.raises(ValueError, match="already quantized"):
        layer.quantize("int8")


@pytest.mark.parametrize(
    "dtype",
    [
        "mixed_bfloat16",
        # JAX has float64 only where JAX_ENABLE_X64 says so.
        pytest.param("float64", marks=pytest.mark.backend("tensorflow", "torch")),
    ],
)
def test_matrices_have_the_compute_dtype(dtype):
    cell = ONLSTMCell(UNITS, CHUNK, dtype=dtype)
    cell.build((None, 3))
    cell.set_weights(PROBLEM.weights)
    cell.quantize("int8")
    tolerance = {"mixed_bfloat16": 0.01, "float64": EXACT}[dtype]
    for matrix, rounded in zip((cell.kernel, cell.recurrent_kernel), ROUNDED, strict=False):
        assert dtype_of(matrix) == cell.compute_dtype
        assert_close(matrix, rounded, tolerance, "what the integers stand for")


def model_with_both():
    inputs = keras.Input((None, 3))
    x = ONLSTM(UNITS, CHUNK, return_sequences=True)(inputs)
    x = keras.layers.Bidirectional(ONLSTM(4, 2, return_sequences=True))(x)
    return keras.Model(inputs, [keras.layers.RNN(ONLSTMCell(4, 2))(x), keras.layers.Dense(2)(x)])


def test_whole_models_and_their_files(tmp_path):
    model = model_with_both()
    before = model(X)
    model.quantize("int8")
    assert sum(v.dtype == "int8" for v in model.weights) == 2 * 4 + 1
    after = model(X)
    assert_all_close(after, before, 0.05, ["states", "logits"])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert_all_close(again(X), after, 0.0, ["loaded states", "loaded logits"])
    assert [v.dtype for v in again.weights] == [v.dtype for v in model.weights]


def test_the_quantizer_of_the_user():
    coarse = keras.quantizers.AbsMaxQuantizer(axis=0, value_range=(-3, 3))
    cell = ONLSTMCell(UNITS, CHUNK)
    cell.build((None, 3))
    cell.set_weights(PROBLEM.weights)
    cell.quantize(config=keras.quantizers.Int8QuantizationConfig(weight_quantizer=coarse))
    scale = 3 / np.abs(KERNEL).max(axis=0)
    steps = as_array(cell.kernel) * scale
    assert_close(steps, np.rint(KERNEL * scale), SINGLE, "steps of the kernel")
    rows = keras.quantizers.AbsMaxQuantizer(axis=1)
    other = ONLSTMCell(UNITS, CHUNK)
    other.build((None, 3))
    with pytest.raises(ValueError, match=r"scales of shape \(3, 1\).* 30 columns of kernel"):
        other.quantize(config=keras.quantizers.Int8QuantizationConfig(weight_quantizer=rows))
    assert len(other.trainable_weights) == 3, "as it was"


@pytest.mark.parametrize("mode", ["float8", "int4"])
def test_other_modes_are_refused_by_name(mode):
    layer = loaded(ONLSTM(UNITS, CHUNK, name="ordered"), PROBLEM)
    cell = ONLSTMCell(UNITS, CHUNK, name="single")
    cell.build((None, 3))
    model = keras.Sequential([keras.Input((None, 3)), ONLSTM(UNITS, CHUNK, name="within")])
    for one, name in ((layer, "ordered"), (cell, "single"), (model, "within/onlstm_cell")):
        refusal = rf"{name}: ON-LSTM has weights in 'int8', not in '{mode}'\. [^\n]*$"
        with pytest.raises(ValueError, match=refusal):
            one.quantize(mode)
        assert {v.dtype for v in one.weights} == {"float32"}
    assert_close(layer(X), oracle_output(), SINGLE, "output after the refusal")


def oracle_output():
    zeros = np.zeros_like(PROBLEM.h)
    weights = PROBLEM.weights
    return oracle.onlstm(PROBLEM.x, zeros, zeros, *weights, chunk_size=CHUNK).outputs[:, -1]


def test_a_policy_of_another_mode_is_refused():
    with pytest.raises(ValueError, match="not in 'int4'"):
        ONLSTM(UNITS, CHUNK, dtype="int4_from_float32").build((None, None, 3))


@pytest.mark.parametrize("mode", ["int8", "float8"])
def test_the_models_of_the_package_name_their_own_ways(mode):
    reader = LanguageModel(5, embedding_dim=4, units=8, chunk_size=2)
    reader.build()
    classifier = PairClassifier(5, classes=2, embedding_dim=3, units=4, chunk_size=2)
    ids = np.array([[1, 2]])
    classifier((ids, ids))
    for model, remedy in ((reader, "keras-onlstm compact"), (classifier, "to_onnx")):
        with pytest.raises(ValueError, match=f"is not quantized by Keras.*{remedy}"):
            model.quantize(mode)
        assert {v.dtype for v in model.trainable_weights} == {"float32"}


@pytest.mark.backend("tensorflow")
def test_exports_want_the_model_of_before(tmp_path):
    model = keras.Sequential([keras.Input((None, 3)), ONLSTM(UNITS, CHUNK)])
    model.quantize("int8")
    with pytest.raises(ValueError, match=r"onlstm.* is quantized to int8.*without quantization"):
        exporting.to_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
