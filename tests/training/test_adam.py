"""The fused Adam: steps of the equations, whatever surrounds them."""

import keras
import numpy as np
import pytest

from helpers.checks import EXACT, SINGLE, as_array, assert_close, assert_differ, tensor
from keras_onlstm.training.adam import FusedAdam

RATE, CLIP, DECAY = 0.125, 0.5, 0.25  # which 32 bits hold exactly
OPTIONS = {
    "plain": {},
    "clipped": {"global_clipnorm": CLIP},
    "decayed": {"weight_decay": DECAY},
    "without momentum": {"epsilon": 1e-3, "beta_1": 0.0, "beta_2": 0.9},
}
OF_KERAS = {
    "amsgrad": {"amsgrad": True},
    "averaged": {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3},
}


def drawn():
    """Two variables (5, 3), and eight gradients of each."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(2, 5, 3)), rng.normal(size=(8, 2, 5, 3))


def steps_of(kind, around=lambda step: step, dtype="float64", **options):
    """The variables after each step (8, 2, 5, 3)."""
    start, gradients = drawn()
    variables = [keras.Variable(one, dtype=dtype) for one in start]
    optimizer = kind(RATE, **options)
    optimizer.build(variables)
    step = around(lambda *gradients: optimizer.apply(gradients, variables))
    passed = []
    for both in gradients:
        step(*(tensor(one, dtype) for one in both))
        passed.append(np.stack([as_array(variable) for variable in variables]))
    return np.stack(passed)


def equations(beta_1=0.9, beta_2=0.999, epsilon=1e-7, global_clipnorm=None, weight_decay=0.0):
    """The same by Kingma and Ba's formula, with the decay of Loshchilov and Hutter."""
    weights, gradients = drawn()
    m, v, passed = 0.0, 0.0, []
    for number, gradient in enumerate(gradients, 1):
        if global_clipnorm is not None:
            gradient = gradient * min(1.0, global_clipnorm / np.sqrt((gradient**2).sum()))
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        rate = RATE * np.sqrt(1 - beta_2**number) / (1 - beta_1**number)
        weights = weights * (1 - RATE * weight_decay) - rate * m / (np.sqrt(v) + epsilon)
        passed.append(weights)
    return np.stack(passed)


def in_graph(jit_compile):
    import tensorflow as tf

    return lambda step: tf.function(step, jit_compile=jit_compile)


@pytest.mark.backend("tensorflow", "torch")
@pytest.mark.parametrize("run", ["eagerly", "in a graph", "compiled"])
@pytest.mark.parametrize("name", OPTIONS)
def test_steps_are_those_of_the_equations(name, run):
    is_torch = keras.backend.backend() == "torch"
    if is_torch and run != "eagerly":
        pytest.skip("PyTorch has no such graphs")
    around = {} if run == "eagerly" else {"around": in_graph(run == "compiled")}
    found = steps_of(FusedAdam, **around, **OPTIONS[name])
    # Keras passes what it clips on PyTorch through 32 bits.
    tolerance = 1e-7 if is_torch and name == "clipped" else EXACT
    assert_close(found, equations(**OPTIONS[name]), tolerance, "weights")
    assert_differ(found[0], found[-1], 0.3, "the first step and the last")


@pytest.mark.parametrize("name", {**OPTIONS, **OF_KERAS})
def test_and_those_of_keras(name):
    options = {**OPTIONS, **OF_KERAS}[name]
    found, wanted = (
        steps_of(kind, dtype="float32", **options) for kind in (FusedAdam, keras.optimizers.Adam)
    )
    # What is left of 0.999 in 32 bits differs by 1e-5 from the 0.001 that Keras takes.
    assert_close(found, wanted, SINGLE, "weights")
    assert_differ(found[0], found[-1], 0.3, "the first step and the last")


@pytest.mark.backend("tensorflow")
def test_rows_that_come_twice_are_summed():
    import tensorflow as tf

    dense = np.zeros((4, 2))
    dense[1], dense[3] = 3.0, -1.0
    rows = tf.constant([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0]], "float64")
    after = []
    for gradient in (tf.IndexedSlices(rows, [1, 3, 1], (4, 2)), tf.constant(dense)):
        variable = keras.Variable(np.ones((4, 2)), dtype="float64")
        optimizer = FusedAdam(RATE)
        optimizer.build([variable])
        optimizer.apply([gradient], [variable])
        after.append(as_array(variable))
    assert (after[0] == after[1]).all()
    assert_close(after[0][:, 0], [1.0, 1.0 - RATE, 1.0, 1.0 + RATE], 1e-6, "steps of the rate")


def test_it_comes_back_from_its_configuration():
    config = FusedAdam(RATE, beta_1=0.5, global_clipnorm=2.0).get_config()
    named = {"class_name": "keras_onlstm>FusedAdam", "config": config}
    found = keras.optimizers.get(named)
    assert type(found) is FusedAdam and found.get_config() == config
