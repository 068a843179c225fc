"""One step against the equations in NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import EXACT, SINGLE, assert_all_close, dtype_of, finite_differences, gradients
from keras_onlstm.onlstm.gates import GATES, gate_offsets, gate_width
from keras_onlstm.onlstm.step import StepOutput, step

UNITS = 6
NAMES = StepOutput._fields


def problem(chunk_size, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, gate_width(UNITS, chunk_size))), rng.normal(size=(3, UNITS))


def run(z, c, chunk_size, activation="tanh", recurrent_activation="sigmoid"):
    return step(
        z,
        c,
        chunk_size=chunk_size,
        activation=keras.activations.get(activation),
        recurrent_activation=keras.activations.get(recurrent_activation),
    )


@pytest.mark.parametrize("chunk_size", [1, 3, UNITS])
def test_equals_the_equations(chunk_size, float64):
    z, c = problem(chunk_size)
    tensors = [ops.convert_to_tensor(x, dtype=float64) for x in (z, c)]
    assert_all_close(run(*tensors, chunk_size), oracle.step(z, c, chunk_size), EXACT, NAMES)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_computes_in_float32(dtype):
    z, c = (ops.cast(ops.convert_to_tensor(x, dtype="float32"), dtype) for x in problem(2))
    found = run(z, c, 2)
    assert {dtype_of(x) for x in found} == {"float32"}
    # What the inputs lost when they were rounded, the oracle gets rounded as well.
    rounded = [np.asarray(ops.convert_to_numpy(x)).astype("float64") for x in (z, c)]
    assert_all_close(found, oracle.step(*rounded, 2), SINGLE, NAMES)


def test_activations(float64):
    z, c = problem(2)
    tensors = [ops.convert_to_tensor(x, dtype=float64) for x in (z, c)]
    found = run(*tensors, 2, activation="relu", recurrent_activation="softsign")
    expected = oracle.step(
        z,
        c,
        2,
        activation=lambda x: np.maximum(x, 0.0),
        recurrent_activation=lambda x: x / (1.0 + np.abs(x)),
    )
    assert_all_close(found, expected, EXACT, NAMES)


@pytest.mark.parametrize("chunk_size", [1, 3, UNITS])
def test_gradients(chunk_size, float64):
    z, c = problem(chunk_size)
    rng = np.random.default_rng(9)
    weights = [rng.normal(size=x.shape) for x in oracle.step(z, c, chunk_size)]

    def loss(z, c):
        pairs = zip(run(z, c, chunk_size), weights, strict=True)
        return sum(ops.sum(x * ops.convert_to_tensor(w, dtype=float64)) for x, w in pairs)

    def expected(z, c):
        pairs = zip(oracle.step(z, c, chunk_size), weights, strict=True)
        return sum(np.sum(x * w) for x, w in pairs)

    assert_all_close(
        gradients(loss, [z, c]), finite_differences(expected, [z, c]), 1e-8, ["z", "c"]
    )


@pytest.mark.parametrize("chunk_size", [1, 3, UNITS])
def test_the_gates_fill_the_kernel_in_their_order(chunk_size):
    offsets = gate_offsets(UNITS, chunk_size)
    assert tuple(offsets) == GATES
    columns = [column for at in offsets.values() for column in range(at.start, at.stop)]
    assert columns == list(range(gate_width(UNITS, chunk_size)))
    sizes = [at.stop - at.start for at in offsets.values()]
    assert sizes == [UNITS // chunk_size] * 2 + [UNITS] * 4
