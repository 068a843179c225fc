"""Batches without sequences, sequences without steps: nothing is read, and nothing is an error."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import (
    SINGLE,
    as_array,
    assert_all_close,
    assert_close,
    gradients,
    loaded,
    tensor,
)
from keras_onlstm import ONLSTM, ONLSTMCell

PROBLEM = oracle.draw(6, 2, batch=4, time=5)
ALL = {"return_sequences": True, "return_state": True, "return_distances": True}


def drawn(batch, time):
    """Inputs, states and a mask of these sizes."""
    return PROBLEM.x[:batch, :time], [s[:batch] for s in PROBLEM.states], np.ones((batch, time))


def results_and_gradients(layer, x, states, mask):
    def results(x, h, c):
        found = layer(x, initial_state=[h, c], mask=mask, training=True)
        return found if isinstance(found, tuple) else (found,)

    def loss(*given):
        return sum(ops.sum(y * (place + 1.0)) for place, y in enumerate(results(*given)))

    given = [np.asarray(a, "float32") for a in (x, *states)]
    found = results(*(tensor(a, "float32") for a in given))
    return found, gradients(loss, given, layer.trainable_variables)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("batch", "time"), [(0, 5), (4, 0), (0, 0)])
def test_results_and_gradients(batch, time, fused, masked):
    x, states, mask = drawn(batch, time)
    layer = loaded(ONLSTM(6, 2, fused=fused, **ALL), PROBLEM)
    found, by_all = results_and_gradients(layer, x, states, mask if masked else None)
    # No step: the states that were given are the last ones.
    no_distances = np.zeros((batch, time))
    expected = [np.zeros((batch, time, 6)), *states, no_distances, no_distances]
    if batch:
        assert_all_close(found, expected, 1e-6, oracle.Result._fields)
    else:
        assert [tuple(y.shape) for y in found] == [y.shape for y in expected]
    ones = np.ones_like(states[0])
    expected = [np.zeros_like(x), 2 * ones, 3 * ones, *(0 * w for w in PROBLEM.weights)]
    assert_all_close(by_all, expected, 0.0, PROBLEM._fields)


@pytest.mark.parametrize("sizes", [(0, 5), (4, 0)])
def test_in_a_model_of_any_batch_and_length(sizes):
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, ONLSTM(6, 2)(inputs))
    found = model(np.ones((*sizes, 3), "float32"))
    assert_close(found, np.zeros((sizes[0], 6)), 0.0, "last output")


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(("known", "batch", "time"), [(None, 0, 5), (4, 4, 0)])
def test_in_a_graph_that_does_not_know_the_length(known, batch, time):
    import tensorflow as tf

    layer = loaded(ONLSTM(6, 2), PROBLEM)

    @tf.function(input_signature=[tf.TensorSpec([known, None, 3])])
    def step(x):
        with tf.GradientTape() as tape:
            found = layer(x, training=True)
            loss = tf.reduce_sum(found)
        return found, tape.gradient(loss, [v.value for v in layer.trainable_variables])

    found, by_weights = step(tf.ones((batch, time, 3)))
    assert_close(found, np.zeros((batch, 6)), 0.0, "last output")
    expected = [0 * w for w in PROBLEM.weights]
    assert_all_close(by_weights, expected, 0.0, PROBLEM._fields[3:])


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 4])
def test_states_that_know_the_batch_of_sequences_that_do_not(batch, fused):
    import tensorflow as tf

    layer = loaded(ONLSTM(6, 2, fused=fused), PROBLEM)
    x, *states = (tensor(a[:batch], "float32") for a in (PROBLEM.x, *PROBLEM.states))

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3])])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = layer(x, initial_state=states, training=True)
            loss = tf.reduce_sum(found)
        return found, tape.gradient(loss, x)

    found, by_x = step(x)
    given = [array[:batch] for array in (PROBLEM.x, *PROBLEM.states)]
    result = oracle.onlstm(*given, *PROBLEM.weights, chunk_size=2)
    assert_close(found, result.h, SINGLE, "last output")
    by_hand = gradients(lambda x: ops.sum(layer(x, initial_state=states)), [as_array(x)])[0]
    assert_close(by_x, by_hand, SINGLE, "gradient by the inputs")


@pytest.mark.backend("tensorflow")
def test_states_of_two_batches_are_refused_where_the_sequences_know_of_none():
    import tensorflow as tf

    layer = loaded(ONLSTM(6, 2), PROBLEM)
    states = [tf.zeros((3, 6)), tf.zeros((4, 6))]

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3])])
    def step(x):
        return layer(x, initial_state=states)

    with pytest.raises(ValueError, match=r"initial_state .* got shapes \[\(3, 6\), \(4, 6\)\]"):
        step(tf.ones((3, 5, 3)))


def test_cells_read_batches_without_sequences():
    layer = keras.layers.RNN(ONLSTMCell(6, 2), return_sequences=True)
    assert tuple(layer(np.ones((0, 5, 3), "float32")).shape) == (0, 5, 6)


@pytest.mark.parametrize("make", [lambda: ONLSTM(6, 2), lambda: keras.layers.RNN(ONLSTMCell(6, 2))])
def test_no_features_are_refused_by_name(make):
    layer = make()
    with pytest.raises(ValueError, match="with a known input_dim, 1 or above"):
        layer(np.ones((4, 5, 0), "float32"))
