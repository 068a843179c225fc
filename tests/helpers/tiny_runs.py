"""Training runs of a tiny model that can be killed at any event."""

import csv
import json
import os
import shutil

import keras
import numpy as np
import pytest
from keras import ops

from keras_onlstm.training import (
    HalvingWithRollback,
    PairBatches,
    PlateauSchedule,
    Trainer,
    trainer,
)
from keras_onlstm.utils import files

EPOCHS = 5
SCORES = [0.1, 0.3, 0.2, 0.3, 0.1]  # scores of the epochs; the second is the best


class PairModel(keras.Model):
    """A tiny model with dropout and two inputs."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = keras.layers.Embedding(10, 4)
        self.dropout = keras.layers.Dropout(0.3, seed=1)
        self.relation = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        left, right = (ops.mean(self.embedding(ids), axis=1) for ids in inputs)
        return self.relation(self.dropout(ops.concatenate([left, right], -1), training=training))


def make_batches():
    draw = np.random.default_rng(0).integers
    left, right = ([draw(1, 10, n).tolist() for n in draw(1, 4, 10)] for _ in range(2))
    return PairBatches(left, right, draw(0, 3, 10), batch_size=4, multiple=2, shuffle=True)


def make_trainer(directory, schedule="plateau", seed=0, epochs=EPOCHS, scores=SCORES, **kwargs):
    keras.utils.set_random_seed(seed)
    batches, model = make_batches(), PairModel()
    rate = 0.05
    if schedule == "cosine":
        rate = keras.optimizers.schedules.CosineDecay(0.05, len(batches) * epochs)
    model.compile(
        keras.optimizers.Adam(rate, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        run_eagerly=True,  # tracing would take most of the time
    )
    (left, right), classes = batches[0]
    model((left, right))
    model.optimizer.build(model.trainable_variables)
    model.test_on_batch((left, right), classes)

    def validate():
        done = int(ops.convert_to_numpy(model.optimizer.iterations)) // len(batches)
        model.test_on_batch((left, right), classes)  # changes the running metrics
        return {"val_score": scores[done - 1]}

    arguments = {"monitor": "val_score", "checkpoint_seconds": 0, "verbose": False}
    if schedule == "halving":
        arguments["schedules"] = [HalvingWithRollback(model)]
        arguments["schedules"][0].monitor = "val_score"
    elif schedule == "plateau" and "callbacks" not in kwargs:
        arguments["schedules"] = [PlateauSchedule(model.optimizer, 0.5, 2, "max")]
    arguments |= kwargs
    return Trainer(model, batches, validate, directory, epochs, **arguments)


def bits(model):
    """Dtype, shape and bytes of all variables in order."""
    variables = [*model.variables, *model.metrics_variables, *model.optimizer.variables]
    arrays = [np.ascontiguousarray(ops.convert_to_numpy(variable)) for variable in variables]
    return [(str(array.dtype), array.shape, array.tobytes()) for array in arrays]


def weights_of(model):
    return [ops.convert_to_numpy(weight).tobytes() for weight in model.trainable_variables]


def watch_steps(trained, before=lambda *batch: None, after=lambda logs: None):
    """Calls `before(batch)` before each training step and `after(logs)` after it."""
    step = trained.model.train_on_batch

    def watched(*batch, **kwargs):
        before(*batch)
        logs = step(*batch, **kwargs)
        after(logs)
        return logs

    trained.model.train_on_batch = watched


def read_records(directory):
    """The epochs in CSV and JSON, without their durations."""
    with open(directory / "metrics.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    rows = json.loads((directory / "metrics.json").read_text())["epochs"]
    assert all(row.pop("seconds") is not None for row in (*table, *rows))
    return table, rows


def best_weights(directory):
    model = keras.saving.load_model(
        directory / "best.keras", compile=False, custom_objects={"PairModel": PairModel}
    )
    return weights_of(model)


def what_is_left(trained):
    return {
        "bits": bits(trained.model),
        "records": read_records(trained.directory),
        "best": best_weights(trained.directory),
        "callbacks": trained.progress.callbacks,
    }


def assert_equal(ours, unbroken):
    for name, value in unbroken.items():
        assert ours[name] == value, f"{name} differ from those of an uninterrupted run"


class Killed(BaseException):
    """Not an `Exception`, so that it is not caught."""


class Killer:
    """Kills a run at event number `at`: batches, validations, schedules, writes, renamings."""

    def __init__(self, monkeypatch, trained, at=None):
        self.count, self.at = 0, at
        model, patch = trained.model, monkeypatch.setattr
        patch(model, "train_on_batch", self.around(model.train_on_batch))
        patch(model, "save", self.around(model.save))
        patch(trained, "validate", self.around(trained.validate))
        for callback in trained.callbacks:
            patch(callback, "on_epoch_end", self.around(callback.on_epoch_end))
        for schedule in trained.schedules:
            patch(schedule, "step", self.around(schedule.step))
        for name in ("write_history", "save_checkpoint", "write_tensorboard"):
            patch(trainer, name, self.around(getattr(trainer, name)))
        patch(files.os, "replace", self.around(os.replace))
        # A killed process does not clean up.
        remove = shutil.rmtree
        patch(files.shutil, "rmtree", lambda *a, **k: None if self.dead else remove(*a, **k))

    @property
    def dead(self):
        return self.at is not None and self.count > self.at

    def event(self):
        self.count += 1
        if self.dead:
            raise Killed

    def around(self, function):
        def counted(*args, **kwargs):
            self.event()
            result = function(*args, **kwargs)
            self.event()
            return result

        return counted


def started(directory, **kwargs):
    """Resumes a run with a newly initialized model, or starts it if the directory is empty."""
    if any(not path.name.startswith(".") for path in directory.iterdir()):
        trained = make_trainer(directory, seed=99, **kwargs)
        trained.resume()
        return trained
    return make_trainer(directory, **kwargs)


def unbroken_run(directory, **kwargs):
    whole = make_trainer(directory, **kwargs)
    with pytest.MonkeyPatch.context() as patch:
        killer = Killer(patch, whole)
        whole.run()
    return what_is_left(whole), killer.count


def kill(directory, at, **kwargs):
    """Starts or resumes a run and kills it. Returns False if it finished before."""
    victim = started(directory, **kwargs)
    with pytest.MonkeyPatch.context() as patch:
        Killer(patch, victim, at)
        try:
            victim.run()
        except Killed:
            return True
    return False
