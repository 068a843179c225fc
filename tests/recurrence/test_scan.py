"""The loop over the leading axis against one in NumPy: values, and gradients by differences."""

import numpy as np
import pytest
from keras import ops

from helpers.checks import EXACT, as_array, assert_all_close, finite_differences, gradients, tensor
from keras_onlstm.recurrence.engine import scan

LONGEST = 5
RANDOM = np.random.default_rng(0)
DECAY = np.array([0.5, -0.9, 1.1])
START = [RANDOM.normal(size=(2, 3)), RANDOM.normal(size=2)]
ROWS = [RANDOM.normal(size=(LONGEST, 2, 3)), RANDOM.normal(size=(LONGEST, 2))]
SPECS = [((2, 3), "float64"), ((2,), "float64")]
NAMES = ("total", "count", "totals", "sums")
GIVEN = ("total", "count", "rows", "factors")
LOSSES = [RANDOM.normal(size=(LONGEST, *shape)) for shape in ((2, 3), (2,)) * 2]


def numbers(length):
    return [*START, *(rows[:length] for rows in ROWS)]


def in_numpy(reverse, total, count, rows, factors):
    """The carry, of two arrays, after all rows, and what every row leaves."""
    totals, sums = np.empty_like(rows), np.empty_like(factors)
    for place in sorted(range(len(rows)), reverse=reverse):
        total = DECAY * total + factors[place][:, None] * rows[place]
        count = count + factors[place] ** 2
        totals[place], sums[place] = total * total, total.sum(-1) - count
    return total, count, totals, sums


def scanned(reverse, total, count, rows, factors):
    def step(carry, row):
        total, count = carry
        total = tensor(DECAY, "float64") * total + row[1][:, None] * row[0]
        count = count + row[1] ** 2
        sums = total[:, 0] + total[:, 1] + total[:, 2] - count
        return (total, count), (total * total, sums), ()

    options = {"reverse": True} if reverse else {}
    carry, ys, _ = scan(step, (total, count), (rows, factors), SPECS, **options)
    assert len(carry) == len(ys) == 2
    return *carry, *ys


def loss_of(function, reverse, length, add):
    """The sum of all results, each times numbers of its own."""
    weights = [w[0] for w in LOSSES[:2]] + [w[:length] for w in LOSSES[2:]]

    def loss(*given):
        return sum(add(y, w) for y, w in zip(function(reverse, *given), weights, strict=True))

    return loss


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, LONGEST])
def test_values(length, reverse, float64):
    given = numbers(length)
    found = scanned(reverse, *(tensor(array, float64) for array in given))
    assert_all_close(found, in_numpy(reverse, *given), EXACT, NAMES)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, LONGEST])
def test_gradients(length, reverse, float64):
    given = numbers(length)
    expected = finite_differences(
        loss_of(in_numpy, reverse, length, lambda y, w: np.sum(y * w)), given
    )
    found = gradients(
        loss_of(scanned, reverse, length, lambda y, w: ops.sum(y * tensor(w, float64))), given
    )
    assert_all_close(found, expected, 1e-7, GIVEN)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("reverse", [False, True])
def test_graph_with_unknown_length(reverse):
    import tensorflow as tf

    unknown = [tf.TensorSpec([None, 2, 3], tf.float64), tf.TensorSpec([None, 2], tf.float64)]
    states = [tf.TensorSpec(array.shape, tf.float64) for array in START]
    shapes = []

    @tf.function(input_signature=[*states, *unknown])
    def traced(*given):
        found = scanned(reverse, *given)
        shapes[:] = [tuple(one.shape) for one in found]
        return found

    for length in (0, 1, LONGEST):
        given = numbers(length)
        found = traced(*(tensor(array, "float64") for array in given))
        assert_all_close(found, in_numpy(reverse, *given), EXACT, NAMES)
    assert shapes == [(2, 3), (2,), (None, 2, 3), (None, 2)]


@pytest.mark.backend("tensorflow")
def test_xla_compiles_and_differentiates_it():
    """For which it has to know how often a loop runs at most."""
    import tensorflow as tf

    @tf.function(jit_compile=True)
    def step(*given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = sum(tf.reduce_sum(one) for one in scanned(True, *given))
        return tape.gradient(loss, given)

    given = numbers(3)
    found = step(*(tensor(array, "float64") for array in given))
    expected = finite_differences(lambda *g: sum(one.sum() for one in in_numpy(True, *g)), given)
    assert_all_close(map(as_array, found), expected, 1e-7, GIVEN)
