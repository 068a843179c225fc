"""Where `keras.ops` loses precision, ours does not."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import EXACT, assert_close, dtype_of
from keras_onlstm.utils import numerics

RNG = np.random.default_rng(1)
X = RNG.normal(size=(3, 4, 7))


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_wide_dtype_is_at_least_float32(dtype, wide):
    assert numerics.wide_dtype(dtype) == wide


# Of float32: sums of 7 numbers up to 5, a rounding of 3e-7 each.
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", EXACT), ("float32", 2e-6)])
def test_sums_keep_their_dtype(dtype, tolerance, float64):
    x = ops.convert_to_tensor(X, dtype=dtype)
    for function, expected in ((numerics.cumsum, np.cumsum(X, -1)), (numerics.mean, X.mean(-1))):
        result = function(x)
        assert dtype_of(result) == dtype
        assert_close(result, expected, tolerance, function.__name__)


@pytest.mark.parametrize("shape", [(7,), (4, 7), (3, 4, 7)])
def test_matmul_keeps_float64_for_every_rank(float64, shape):
    kernel = RNG.normal(size=(7, 5))
    x = RNG.normal(size=shape)
    result = numerics.matmul(ops.convert_to_tensor(x, dtype=float64), kernel)
    assert dtype_of(result) == float64
    assert_close(result, x @ kernel, EXACT, "matmul")


def test_matmul_takes_the_dtype_of_the_inputs():
    kernel = keras.Variable(np.eye(3), dtype="float32")
    result = numerics.matmul(ops.ones((2, 3), dtype="bfloat16"), kernel)
    assert dtype_of(result) == "bfloat16"
    assert_close(result, np.ones((2, 3)), 0.0, "matmul with the identity")


def test_exact_tanh_keeps_float64(float64):
    exact = numerics.exact_activation(keras.activations.tanh, float64)
    x = np.concatenate([np.linspace(-800.0, 800.0, 9), np.linspace(-2.0, 2.0, 101)])
    result = exact(ops.convert_to_tensor(x, dtype=float64))
    assert dtype_of(result) == float64
    assert_close(result, np.tanh(x), EXACT, "tanh")


def test_other_activations_are_unchanged():
    for activation in (keras.activations.sigmoid, keras.activations.relu):
        assert numerics.exact_activation(activation, "float64") is activation
    assert numerics.exact_activation(keras.activations.tanh, "float32") is keras.activations.tanh
