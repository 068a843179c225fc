"""Training through `fit`, compiled and not: steps equal, weights change and stay finite."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import SINGLE, assert_all_close, assert_differ
from keras_onlstm import ONLSTM, ONLSTMCell

UNITS, CHUNK = 6, 2
PROBLEM = oracle.draw(UNITS, CHUNK, time=6)
X = PROBLEM.x.astype("float32")
EXPECTED = oracle.onlstm(*PROBLEM, chunk_size=CHUNK)
DROPOUTS = {"dropout": 0.2, "recurrent_dropout": 0.3, "recurrent_weight_dropout": 0.4, "seed": 1}


def training_model(over_cell, dropouts, **compiling):
    inputs = keras.Input((6, 3))
    x = keras.layers.Masking()(inputs)
    if over_cell:
        x = keras.layers.RNN(ONLSTMCell(UNITS, CHUNK, **dropouts), return_sequences=True)(x)
        outputs = [keras.layers.RNN(ONLSTMCell(UNITS, CHUNK, **dropouts))(x)]
    else:
        x = ONLSTM(UNITS, CHUNK, return_sequences=True, **dropouts)(x)
        outputs = ONLSTM(UNITS, CHUNK, return_distances=True, **dropouts)(x)[:2]
    model = keras.Model(inputs, outputs)
    model.layers[-2].set_weights(PROBLEM.weights)
    model.layers[-1].set_weights(oracle.draw(UNITS, CHUNK, input_dim=UNITS, seed=3).weights)
    # The distances have a mask, by which Keras weighs the losses: one value a step, not a row.
    losses = ["mse", lambda wanted, distance: ops.square(wanted - distance)][: len(outputs)]
    model.compile(keras.optimizers.SGD(0.1), losses, **compiling)
    # Without them the first step is traced twice.
    model.optimizer.build(model.trainable_variables)
    return model


def trained(over_cell, dropouts, **compiling):
    """The weights after two steps."""
    x = X * oracle.masks(4, 6)["holes"][..., None]
    y = [np.full((4, UNITS), 0.5, "float32")]
    y += [] if over_cell else [np.full((4, 6), 0.5, "float32")]
    model = training_model(over_cell, dropouts, **compiling)
    before = [ops.convert_to_numpy(v) for v in model.trainable_variables]
    history = model.fit(x, y, epochs=2, batch_size=4, shuffle=False, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    after = [ops.convert_to_numpy(v) for v in model.trainable_variables]
    for new, old in zip(after, before, strict=True):
        assert np.isfinite(new).all()
        assert_differ(new, old, 1e-4, "weights before and after training")
    return after


@functools.cache
def trained_eagerly(over_cell, **dropouts):
    return trained(over_cell, dropouts, run_eagerly=True)


@pytest.mark.backend("tensorflow", "jax")
@pytest.mark.parametrize("over_cell", [False, True])
def test_fit_with_xla_equals_eager(over_cell):
    # TensorFlow's stateless dropout draws other numbers in XLA than outside.
    dropouts = DROPOUTS if keras.backend.backend() == "jax" else {}
    compiled = trained(over_cell, dropouts, jit_compile=True)
    eager = trained_eagerly(over_cell, **dropouts)
    assert_all_close(compiled, eager, SINGLE, [f"weight {i}" for i in range(6)])


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("over_cell", [False, True])
def test_fit_with_xla_and_every_dropout(over_cell):
    dropped = trained(over_cell, DROPOUTS, jit_compile=True)
    plain = trained_eagerly(over_cell)
    for number, (one, other) in enumerate(zip(dropped, plain, strict=True)):
        assert_differ(one, other, 1e-4, f"effect of dropout on weight {number}")


@pytest.mark.parametrize("over_cell", [False, True])
def test_fit_learns(over_cell):
    model = training_model(over_cell, {})
    y = [EXPECTED.h.astype("float32")]
    y += [] if over_cell else [EXPECTED.forget_distance.astype("float32")]
    losses = model.fit(X, y, epochs=5, batch_size=4, verbose=0).history["loss"]
    assert (np.diff(losses) < 0).all()
