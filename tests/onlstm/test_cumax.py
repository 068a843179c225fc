"""cumax: its values against NumPy, and the properties that make it a cumulative distribution."""

import sys

import keras
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from keras import ops

from helpers.checks import EXACT, as_array, assert_close, dtype_of, finite_differences, gradients
from keras_onlstm import cumax

ROUNDING = 2.0**-23  # between 0.5 and 1, float32 numbers lie 2^-24 apart; below, closer

# Few shapes, because JAX compiles for each, but one with the many terms that are summed in
# parallel.
logits = st.sampled_from([(1,), (7,), (2, 3, 4), (2, 40)]).flatmap(
    lambda shape: arrays("float32", shape, elements=st.floats(-1e4, 1e4, width=32))
)


def exact(x, axis=-1):
    """Eq. 6 in float64."""
    x = np.asarray(x, "float64")
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.cumsum(e / e.sum(axis, keepdims=True), axis)


@given(logits)
def test_is_a_cumulative_distribution(x):
    result = as_array(cumax(x))
    assert np.isfinite(result).all()
    assert result.min() >= 0.0
    assert result.max() <= 1.0
    assert (result[..., -1] == 1.0).all()
    # A parallel sum adds in another order for every position: it may fall by a rounding.
    assert (np.diff(result, axis=-1) >= -ROUNDING).all()


@pytest.mark.parametrize("size", [3, 115])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends_at_one_to_the_last_bit(dtype, size, request):
    if dtype == "float64":
        request.getfixturevalue("float64")
    x = np.random.default_rng(1).normal(size=(500, size)).astype(dtype)
    result = cumax(x)
    assert dtype_of(result) == dtype
    assert_close(result[:, -1], np.ones(500), 0.0, "last value")
    assert as_array(result).max() == 1.0


@pytest.mark.backend("tensorflow", "jax")
def test_ends_at_one_to_the_last_bit_where_it_is_compiled():
    """XLA divides by multiplying with a reciprocal, and a number times its own is not always 1."""
    x = np.random.default_rng(1).normal(size=(500, 115)).astype("float32")
    if keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(cumax)
    else:
        import tensorflow as tf

        compiled = tf.function(cumax, jit_compile=True)
    assert_close(compiled(x)[:, -1], np.ones(500), 0.0, "last value")


def test_a_sum_above_its_own_end_is_one(monkeypatch):
    """By a rounding, as parallel sums may come out."""
    sums = np.array([[0.5, 1.0 + ROUNDING, 1.0]], "float32")
    module = sys.modules[cumax.__module__]
    monkeypatch.setattr(module, "cumsum", lambda x: ops.convert_to_tensor(sums))
    assert_close(cumax(np.zeros((1, 3), "float32")), [[0.5, 1.0, 1.0]], 0.0, "cumax")


@given(logits)
def test_equals_the_equation(x):
    # Up to 40 positive terms, each with the two roundings of an exponential.
    assert_close(cumax(x), exact(x), 2e-6, "cumax")


@given(logits, st.floats(-1e3, 1e3, width=32))
def test_a_constant_added_changes_nothing(x, constant):
    shifted = x + np.float32(constant)
    # What is compared has the rounding of the addition already in it.
    assert_close(cumax(shifted), exact(shifted), 1e-6, "cumax of shifted logits")
    whole = np.rint(x)  # whole numbers below 2^24 are shifted without rounding
    assert_close(cumax(whole + np.float32(64)), cumax(whole), 1e-6, "shifted by 64")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_does_not_overflow(sign):
    x = sign * np.array([[1e4, 0.0, -1e4], [-1e4, 1e4, 0.0], [1e4, 1e4, 1e4]], "float32")
    assert_close(cumax(x), exact(x), 1e-6, "cumax at 1e4")
    gradient = gradients(lambda x: ops.sum(cumax(x)), [x])[0]
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_the_single_precision_rounded(dtype):
    numpy_dtype = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    # 300 terms: a sum in halves would stop growing long before its end.
    x = np.random.default_rng(0).normal(size=(4, 300)).astype(numpy_dtype)
    result = cumax(ops.cast(ops.convert_to_tensor(x.astype("float32")), dtype))
    assert dtype_of(result) == dtype
    wide = ops.convert_to_numpy(cumax(x.astype("float32")))
    assert_close(result, wide.astype(numpy_dtype), 0.0, "cumax of halves")


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_runs_along_every_axis(axis, float64):
    x = np.random.default_rng(2).normal(size=(3, 4, 5))
    result = cumax(ops.convert_to_tensor(x, dtype=float64), axis=axis)
    assert dtype_of(result) == float64
    assert_close(result, exact(x, axis), EXACT, f"cumax along {axis}")


def test_integers_become_the_default_float():
    result = cumax(np.array([0, 0, 0, 0], "int32"))
    assert dtype_of(result) == "float32"
    assert_close(result, [0.25, 0.5, 0.75, 1.0], 0.0, "cumax of integers")


def test_gradient(float64):
    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
    found = gradients(lambda x: ops.sum(cumax(x) * ops.convert_to_tensor(weight)), [x])
    expected = finite_differences(lambda x: np.sum(exact(x) * weight), [x])
    assert dtype_of(found[0]) == float64
    assert_close(found[0], expected[0], 1e-8, "gradient of cumax")


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((), -1), ((), 0), ((3,), 1), ((3, 4), 2), ((3, 4), 3), ((3, 4), -3), ((3, 4), -4)],
)
def test_a_scalar_and_an_axis_that_is_none_are_refused(shape, axis):
    message = f"axis={axis} is out of bounds for a tensor of rank {len(shape)}"
    with pytest.raises(ValueError, match=message):
        cumax(np.zeros(shape, "float32"), axis=axis)
