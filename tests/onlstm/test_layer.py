"""ONLSTM and keras.layers.RNN over the cell against the equations: values and gradients.

In float64, so that only rounding differs. Masks have a file of their own.
"""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import (
    EXACT,
    SINGLE,
    assert_all_close,
    assert_close,
    dtype_of,
    finite_differences,
    gradients,
    loaded,
    tensor,
)
from keras_onlstm import ONLSTM, ONLSTMCell

UNITS = 6
NAMES = oracle.Result._fields
EVERYTHING = {"return_sequences": True, "return_state": True}


def onlstm(problem, chunk_size, **options):
    layer = ONLSTM(UNITS, chunk_size, return_distances=True, **EVERYTHING, **options)
    return loaded(layer, problem)


def rnn(problem, chunk_size, go_backwards=False, dtype=None, **options):
    cell = ONLSTMCell(UNITS, chunk_size, dtype=dtype, **options)
    layer = keras.layers.RNN(cell, go_backwards=go_backwards, dtype=dtype, **EVERYTHING)
    return loaded(layer, problem)


@pytest.mark.parametrize(
    ("chunk_size", "time", "with_state", "go_backwards"),
    [
        (1, 1, True, False),
        (1, 5, True, False),
        (3, 1, False, False),
        (3, 5, False, False),
        (3, 5, True, True),
        (UNITS, 1, True, True),
        (UNITS, 8, False, True),
    ],
)
def test_equals_the_equations(chunk_size, time, with_state, go_backwards, float64):
    problem = oracle.draw(UNITS, chunk_size, time=time, seed=time)
    if not with_state:
        problem = problem._replace(h=0 * problem.h, c=0 * problem.c)
    expected = oracle.onlstm(*problem, chunk_size=chunk_size, go_backwards=go_backwards)
    x = tensor(problem.x, float64)
    states = [tensor(s, float64) for s in problem.states] if with_state else None
    layer = onlstm(problem, chunk_size, go_backwards=go_backwards, dtype=float64)
    found = layer(x, initial_state=states)
    assert {dtype_of(y) for y in found} == {float64}
    assert_all_close(found, expected, EXACT, NAMES)
    layer = rnn(problem, chunk_size, go_backwards=go_backwards, dtype=float64)
    assert_all_close(layer(x, initial_state=states), expected[:3], EXACT, NAMES[:3])


def test_in_single_precision():
    problem = oracle.draw(UNITS, 2, time=7)
    expected = oracle.onlstm(*problem, chunk_size=2)
    states = [tensor(s, "float32") for s in problem.states]
    x = tensor(problem.x, "float32")
    found = onlstm(problem, 2)(x, initial_state=states)
    assert {dtype_of(y) for y in found} == {"float32"}
    assert_all_close(found, expected, SINGLE, NAMES)
    assert_all_close(rnn(problem, 2)(x, initial_state=states), expected[:3], SINGLE, NAMES[:3])


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
@pytest.mark.parametrize("return_distances", [False, True])
def test_number_and_shapes_of_results(return_sequences, return_state, return_distances):
    problem = oracle.draw(UNITS, 2)
    result = oracle.onlstm(problem.x, 0 * problem.h, 0 * problem.c, *problem.weights, chunk_size=2)
    expected = [result.outputs if return_sequences else result.outputs[:, -1]]
    expected += [result.h, result.c] if return_state else []
    expected += [result.forget_distance, result.input_distance] if return_distances else []
    layer = ONLSTM(
        UNITS,
        2,
        return_sequences=return_sequences,
        return_state=return_state,
        return_distances=return_distances,
    )
    x = tensor(problem.x, "float32")
    found = loaded(layer, problem)(x)
    is_single = len(expected) == 1
    assert isinstance(found, tuple) is not is_single
    shapes = layer.compute_output_shape(problem.x.shape)
    symbolic = layer(keras.KerasTensor((None, None, 3)))
    if is_single:
        found, shapes, symbolic = [found], [shapes], [symbolic]
    assert_all_close(found, expected, SINGLE, [str(i) for i in range(len(expected))])
    assert [tuple(y.shape) for y in expected] == list(shapes)
    assert [len(y.shape) for y in expected] == [len(y.shape) for y in symbolic]
    assert [dtype_of(y) for y in found] == [y.dtype for y in symbolic]


def test_the_last_chunk_stays_zero_from_a_zero_state():
    problem = oracle.draw(UNITS, 2, time=7)
    layer = ONLSTM(UNITS, 2, **EVERYTHING)
    outputs, h, c = loaded(layer, problem)(tensor(problem.x, "float32"))
    assert_close(outputs[:, :, -2:], np.zeros((4, 7, 2)), 0.0, "last chunk of the outputs")
    assert_close(h[:, -2:], np.zeros((4, 2)), 0.0, "last chunk of h")
    assert_close(c[:, -2:], np.zeros((4, 2)), 0.0, "last chunk of c")


def loss_weights(results, seed=11):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=result.shape) for result in results]


def oracle_loss(problem, which, weights, options):
    """The weighted sum of the fields `which` of the oracle's result, a function of the arrays."""

    def loss(*arrays):
        result = oracle.onlstm(*arrays, **options)
        return sum(np.sum(result[i] * weights[i]) for i in which)

    return loss


def layer_gradients(layer, problem, which, weights, dtype, mask=None):
    """Gradients by everything in `problem`, in its order."""

    def loss(x, h, c):
        results = layer(x, initial_state=[h, c], mask=mask)
        return sum(ops.sum(results[i] * tensor(weights[i], dtype)) for i in which)

    return gradients(loss, problem[:3], layer.trainable_variables)


GRADIENT_CASES = {
    "plain": (3, 5, None, {}),
    "one step": (1, 1, None, {}),
    "one chunk, backwards": (UNITS, 3, None, {"go_backwards": True}),
    "holes and a row without any": (2, 5, "a row without any", {}),
    "left, backwards": (2, 4, "left", {"go_backwards": True}),
    "right, zero output": (3, 4, "right", {"zero_output_for_mask": True}),
}


@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_gradients(case, float64):
    chunk_size, time, mask, options = GRADIENT_CASES[case]
    problem = oracle.draw(UNITS, chunk_size, batch=3, time=time, input_dim=2, seed=5)
    mask = None if mask is None else oracle.masks(3, time)[mask]
    settings = {"chunk_size": chunk_size, "mask": mask, **options}
    weights = loss_weights(oracle.onlstm(*problem, **settings))
    everything = range(len(NAMES))
    loss = oracle_loss(problem, everything, weights, settings)
    expected = finite_differences(loss, problem)
    layer = onlstm(problem, chunk_size, dtype=float64, **options)
    found = layer_gradients(layer, problem, everything, weights, float64, mask)
    # The error of the differences: rounding of a sum of order 100, over the step of 1e-6.
    assert_all_close(found, expected, 1e-7, problem._fields)


def test_gradients_equal_those_of_the_cell_in_rnn(float64):
    problem = oracle.draw(UNITS, 3, seed=6)
    weights = loss_weights(oracle.onlstm(*problem, chunk_size=3))
    of_both = range(3)  # RNN knows no distances
    found, expected = (
        layer_gradients(
            make(problem, 3, go_backwards=True, dtype=float64), problem, of_both, weights, float64
        )
        for make in (onlstm, rnn)
    )
    assert_all_close(found, expected, EXACT, problem._fields)


@pytest.mark.parametrize("result", ["c", "forget_distance", "input_distance"])
def test_gradients_of_one_result(result, float64):
    problem = oracle.draw(UNITS, 2, batch=2, time=3, input_dim=2, seed=7)
    which = [NAMES.index(result)]
    weights = loss_weights(oracle.onlstm(*problem, chunk_size=2))
    expected = finite_differences(oracle_loss(problem, which, weights, {"chunk_size": 2}), problem)
    layer = onlstm(problem, 2, dtype=float64)
    found = layer_gradients(layer, problem, which, weights, float64)
    assert_all_close(found, expected, 1e-8, problem._fields)


def test_lengths_may_vary_from_call_to_call():
    problem = oracle.draw(UNITS, 2, time=9)
    layer = onlstm(problem, 2)
    zeros = np.zeros_like(problem.h)
    for batch, time in ((4, 9), (2, 1), (3, 4)):
        x = problem.x[:batch, :time]
        expected = oracle.onlstm(x, zeros[:batch], zeros[:batch], *problem.weights, chunk_size=2)
        assert_all_close(layer(tensor(x, "float32")), expected, SINGLE, NAMES)
