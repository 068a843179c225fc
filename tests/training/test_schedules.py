"""Learning rates by the share of the training or by its scores, and when averaging starts."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from helpers.tiny_runs import make_trainer
from keras_onlstm.training import AveragedSGD, NonMonotonicTrigger, PlateauSchedule, WarmupSchedule


@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.5])
def test_warmup_then_cosine_decay(warmup):
    schedule = WarmupSchedule(0.1, warmup)
    done = np.linspace(0.0, 1.0, 101)[1:]
    found = np.array([schedule.rate(share) for share in done])
    cosine = 0.1 * 0.5 * (1.0 + np.cos(np.pi * done))
    rising = 0.1 * done / warmup if warmup else np.full(100, np.inf)
    np.testing.assert_allclose(found, np.minimum(rising, cosine), rtol=1e-12)
    assert (rising < cosine).sum() == {0.0: 0, 0.05: 4, 0.5: 35}[warmup]
    assert schedule.rate(0.0) == 0.0 and schedule.rate(1.0) == pytest.approx(0.0, abs=1e-17)
    assert schedule.get_state() == {}


def test_rate_is_constant_without_warmup():
    schedule = WarmupSchedule(0.1)
    assert [schedule.rate(share) for share in (0.0, 0.3, 1.0)] == [0.1] * 3


def rates_of_keras(scores, factor, patience, mode):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    callback = keras.callbacks.ReduceLROnPlateau(
        "val_loss", factor, patience, mode=mode, min_delta=0.0
    )
    callback.set_model(model)
    callback.on_train_begin()
    for epoch, score in enumerate(scores):
        callback.on_epoch_end(epoch, {"val_loss": score})
        yield float(ops.convert_to_numpy(model.optimizer.learning_rate))


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_plateau_matches_reduce_lr_on_plateau(mode, patience):
    """There are few different scores, so that many equal the best."""
    falls = []
    for seed in range(20):
        scores = np.random.default_rng(seed).integers(0, 12, 15).astype(float).tolist()
        if seed == 0:
            scores[4] = math.nan
        optimizer = keras.optimizers.SGD(0.5)
        schedule = PlateauSchedule(optimizer, 0.25, patience, mode)
        found = []
        for score in scores:
            schedule.step(score)
            found.append(float(ops.convert_to_numpy(optimizer.learning_rate)))
            # As if it was resumed after every epoch.
            state, schedule = schedule.get_state(), PlateauSchedule(optimizer, 0.25, patience, mode)
            schedule.set_state(state)
        assert found == list(rates_of_keras(scores, 0.25, patience, mode))
        falls.append(len(set(found)))
    assert len(set(falls)) > 1 and max(falls) > 3


def test_plateau_rejects_zero_patience():
    with pytest.raises(ValueError, match="patience must be an integer, 1 or above, not 0"):
        PlateauSchedule(keras.optimizers.SGD(), 0.5, 0)


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
def test_trigger_matches_the_published_algorithm(patience):
    found = set()
    for trial in range(50):
        generator = np.random.default_rng(trial)
        scores = (20 * 0.8 ** np.arange(15) + generator.exponential(2, 15)).tolist()
        optimizer = Started()
        trigger, start = NonMonotonicTrigger(optimizer, patience), None
        for epoch, score in enumerate(scores):
            trigger.step(score)
            if start is None and optimizer.is_averaging:
                start = epoch
        assert start == published_start(scores, patience)
        found.add(start)
    assert len(found) > 3


def test_trigger_starts_averaging_in_training(tmp_path):
    trained = make_trainer(tmp_path, epochs=5, schedules=[], scores=[0.0, 1.0, 2.0, 3.0, 4.0])
    model = trained.model
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AveragedSGD(0.1), loss, run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    model.test_on_batch(*trained.batches[0])
    trained.schedules = [NonMonotonicTrigger(model.optimizer, 1)]
    trained.run()
    assert model.optimizer.is_averaging
    # The third score is worse than the first one. Two epochs of 3 steps follow.
    assert int(ops.convert_to_numpy(model.optimizer.counted)) == 6


def test_trigger_rejects_other_optimizers():
    with pytest.raises(ValueError, match=r"needs AveragedSGD or AveragedAdam, not SGD"):
        NonMonotonicTrigger(keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="patience must be an integer, 0 or above, not -1"):
        NonMonotonicTrigger(AveragedSGD(), patience=-1)
