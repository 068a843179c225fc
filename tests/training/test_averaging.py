"""Averaged optimizers: the steps of the plain ones, and a plain mean of what they pass through."""

from unittest.mock import Mock

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import assert_close, assert_differ
from keras_onlstm.training import (
    AveragedAdam,
    AveragedSGD,
    NonMonotonicTrigger,
    load_checkpoint,
    save_checkpoint,
)
from keras_onlstm.training.adam import FusedAdam

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(12, 3)).astype("float32"), RNG.normal(size=(12, 2)).astype("float32")
PLAIN = {AveragedSGD: keras.optimizers.SGD, AveragedAdam: FusedAdam}


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
def test_the_mean_is_plain_and_the_steps_are_too(kind):
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


def test_weights_come_back_after_an_error():
    model = make(AveragedSGD(0.1))
    model.optimizer.start_averaging()
    step(model, 0)
    last = step(model, 1)
    with pytest.raises(RuntimeError, match="halfway"), model.optimizer.averaged_weights():
        raise RuntimeError("halfway")
    assert (weights(model) == last).all()


def test_a_checkpoint_holds_the_mean(tmp_path):
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


def published_start(scores, patience):
    """The epoch in which the authors' loop starts, or `None` (AWD-LSTM, algorithm 1)."""
    for epoch, score in enumerate(scores):
        before = scores[:epoch]
        if len(before) > patience and score > min(before[: epoch - patience]):
            return epoch
    return None


class Started:
    """Stands for an optimizer that averages."""

    is_averaging = False

    def start_averaging(self):
        self.is_averaging = True


@pytest.mark.parametrize("patience", [0, 1, 5])
def test_the_trigger_is_the_published_one(patience):
    found = set()
    for trial in range(50):
        generator = np.random.default_rng(trial)
        scores = (20 * 0.8 ** np.arange(15) + generator.exponential(2, 15)).tolist()
        model = Mock(optimizer=Started())
        trigger, start = NonMonotonicTrigger("val_loss", patience), None
        trigger.set_model(model)
        for epoch, score in enumerate(scores):
            trigger.on_epoch_end(epoch, {"val_loss": score})
            if start is None and model.optimizer.is_averaging:
                start = epoch
        assert start == published_start(scores, patience)
        found.add(start)
    assert len(found) > 3


def test_fit_averages_once_the_trigger_says_so():
    """In `keras.Model.fit`, as any Keras model would use it."""
    model = make(AveragedSGD(0.0))  # nothing is learnt, so no score is ever better

    class Worse(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["score"] = float(epoch)

    callbacks = [Worse(), NonMonotonicTrigger("score", 1)]
    model.fit(X, Y, batch_size=3, epochs=5, verbose=0, callbacks=callbacks)
    assert model.optimizer.is_averaging
    # Scores 0, 1, 2: the third is worse than the best but the last one. Two epochs of 4 steps.
    assert int(ops.convert_to_numpy(model.optimizer.counted)) == 8


def test_the_trigger_refuses_what_cannot_average():
    model = make(keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match=r"needs an optimizer that averages.*not SGD"):
        model.fit(X, Y, verbose=0, callbacks=[NonMonotonicTrigger()])
    with pytest.raises(ValueError, match="patience must be an integer, 0 or above, not -1"):
        NonMonotonicTrigger(patience=-1)
