"""Optimizers: Adam with an L2 penalty, and those that keep the mean of the weights."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import EXACT, as_array, assert_close, assert_differ, tensor
from keras_onlstm.training import (
    AveragedAdam,
    AveragedSGD,
    PenalizedAdam,
    load_checkpoint,
    save_checkpoint,
)

# 32 bits hold these numbers exactly: Keras rounds some of them to 32 bits.
RATE, CLIP, PENALTY = 0.125, 0.5, 0.25
BETAS = {"beta_1": 0.875, "beta_2": 1 - 2**-10, "epsilon": 2**-20}
OPTIONS = {
    "plain": BETAS,
    "clipped": {**BETAS, "global_clipnorm": CLIP},
    "without momentum": {"beta_1": 0.0, "beta_2": 0.875, "epsilon": 2**-10},
}


def drawn():
    """Two variables (5, 3), and eight gradients of each."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(2, 5, 3)), rng.normal(size=(8, 2, 5, 3))


def steps_of(optimizer, around=lambda step: step):
    """The variables after each step (8, 2, 5, 3)."""
    start, gradients = drawn()
    variables = [keras.Variable(one, dtype="float64") for one in start]
    optimizer.build(variables)
    step = around(lambda *gradients: optimizer.apply(gradients, variables))
    passed = []
    for both in gradients:
        step(*(tensor(one, "float64") for one in both))
        passed.append(np.stack([as_array(variable) for variable in variables]))
    return np.stack(passed)


def equations(penalty, beta_1, beta_2, epsilon, global_clipnorm=None):
    """The same by Kingma and Ba's formula, of the clipped gradients and those of the penalty."""
    weights, gradients = drawn()
    m, v, passed = 0.0, 0.0, []
    for number, gradient in enumerate(gradients, 1):
        if global_clipnorm is not None:
            gradient = gradient * min(1.0, global_clipnorm / np.sqrt((gradient**2).sum()))
        gradient = gradient + penalty * weights
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        rate = RATE * np.sqrt(1 - beta_2**number) / (1 - beta_1**number)
        weights = weights - rate * m / (np.sqrt(v) + epsilon)
        passed.append(weights)
    return np.stack(passed)


def in_graph(jit_compile):
    import tensorflow as tf

    return lambda step: tf.function(step, jit_compile=jit_compile)


@pytest.mark.backend("tensorflow", "torch")
@pytest.mark.parametrize("run", ["eagerly", "in a graph", "compiled"])
@pytest.mark.parametrize("name", OPTIONS)
def test_penalty_is_added_to_the_gradient(name, run):
    is_torch = keras.backend.backend() == "torch"
    if is_torch and run != "eagerly":
        pytest.skip("PyTorch has no such graphs")
    around = {} if run == "eagerly" else {"around": in_graph(run == "compiled")}
    found = steps_of(PenalizedAdam(RATE, PENALTY, **OPTIONS[name]), **around)
    # On PyTorch Keras clips gradients in float32.
    tolerance = 1e-7 if is_torch and name == "clipped" else EXACT
    assert_close(found, equations(PENALTY, **OPTIONS[name]), tolerance, "weights")
    assert_differ(found, equations(0.0, **OPTIONS[name]), 1e-2, "weights without a penalty")


def test_penalized_adam_config_round_trip():
    config = PenalizedAdam(RATE, PENALTY, beta_1=0.5, global_clipnorm=2.0).get_config()
    found = keras.optimizers.get({"class_name": "keras_onlstm>PenalizedAdam", "config": config})
    assert type(found) is PenalizedAdam and found.get_config() == config
    assert config["penalty"] == PENALTY


RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(12, 3)).astype("float32"), RNG.normal(size=(12, 2)).astype("float32")
PLAIN = {AveragedSGD: keras.optimizers.SGD, AveragedAdam: keras.optimizers.Adam}


def make(optimizer):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    return model


def weights(model):
    return np.concatenate([ops.convert_to_numpy(w).ravel() for w in model.trainable_variables])


def step(model, number):
    rows = slice(number % 4 * 3, number % 4 * 3 + 3)
    model.train_on_batch(X[rows], Y[rows])
    return weights(model)


def averaged(model):
    with model.optimizer.averaged_weights():
        return weights(model)


@pytest.mark.parametrize("kind", [AveragedSGD, AveragedAdam])
def test_mean_and_steps_of_averaging_optimizers(kind):
    model = make(kind(0.1))
    plain = make(PLAIN[kind](0.1))
    steps = []
    for number in range(3):
        steps.append(step(model, number))
        assert (averaged(model) == steps[-1]).all()
    assert not model.optimizer.is_averaging
    model.optimizer.start_averaging()
    assert model.optimizer.is_averaging
    assert (averaged(model) == steps[-1]).all()  # no step yet
    for number in range(3, 12):
        steps.append(step(model, number))
        model.optimizer.start_averaging()  # again, which changes nothing
        assert_close(averaged(model), np.mean(steps[3:], axis=0), 1e-6, "the mean")
        assert (weights(model) == steps[-1]).all()
    assert_differ(averaged(model), steps[-1], 1e-3, "the mean and the last weights")
    for number in range(12):
        assert_close(step(plain, number), steps[number], 1e-6, "a step")


def test_weights_are_restored_after_an_error():
    model = make(AveragedSGD(0.1))
    model.optimizer.start_averaging()
    step(model, 0)
    last = step(model, 1)
    with pytest.raises(RuntimeError, match="halfway"), model.optimizer.averaged_weights():
        raise RuntimeError("halfway")
    assert (weights(model) == last).all()


def test_checkpoint_includes_the_mean(tmp_path):
    model = make(AveragedSGD(0.1))
    model.optimizer.start_averaging()
    steps = [step(model, number) for number in range(3)]
    save_checkpoint(tmp_path / "a.npz", model, {})
    other = make(AveragedSGD(0.1))
    load_checkpoint(tmp_path / "a.npz", other)
    assert (averaged(other) == averaged(model)).all()
    steps.append(step(other, 3))
    assert_close(averaged(other), np.mean(steps, axis=0), 1e-6, "the mean")


@pytest.mark.parametrize("kind", [AveragedSGD, AveragedAdam])
def test_configuration_round_trip(kind):
    given = kind(0.25, weight_decay=1e-3, global_clipnorm=0.5)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(given))
    assert type(again) is kind and again.get_config() == given.get_config()
