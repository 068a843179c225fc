"""The trainer: killed anywhere and resumed, it ends with the bits of a run that never stopped."""

import csv
import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import keras
import numpy as np
import pytest
from keras import ops

from keras_onlstm import files
from keras_onlstm.training import (
    AveragedSGD,
    PairBatches,
    Trainer,
    load_checkpoint,
    trainer,
)

ROOT = Path(__file__).resolve().parents[1]
EPOCHS = 5
SCORES = [0.1, 0.3, 0.2, 0.3, 0.1]  # of the epochs: the second is the best, no other is better
BEST_EPOCH = 2


class PairModel(keras.Model):
    """As small as a model with dropout and two inputs can be."""

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
    rate, callbacks = 0.05, []
    if schedule == "cosine":
        rate = keras.optimizers.schedules.CosineDecay(0.05, len(batches) * epochs)
    else:
        callbacks = [
            keras.callbacks.ReduceLROnPlateau(
                "val_score", mode="max", factor=0.5, patience=2, min_delta=0.0
            )
        ]
    model.compile(
        keras.optimizers.Adam(rate, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        run_eagerly=True,  # tracing would take longer than all else here
    )
    (left, right), classes = batches[0]
    model((left, right))
    model.optimizer.build(model.trainable_variables)
    model.test_on_batch((left, right), classes)

    def validate():
        done = int(ops.convert_to_numpy(model.optimizer.iterations)) // len(batches)
        model.test_on_batch((left, right), classes)  # changes the running metrics
        return {"val_score": scores[done - 1]}

    arguments = {"monitor": "val_score", "callbacks": callbacks, "checkpoint_seconds": 0}
    arguments |= {"verbose": False, **kwargs}
    return Trainer(model, batches, validate, directory, epochs, **arguments)


def bits(model):
    variables = [*model.variables, *model.metrics_variables, *model.optimizer.variables]
    arrays = [np.ascontiguousarray(ops.convert_to_numpy(variable)) for variable in variables]
    return [(str(array.dtype), array.shape, array.tobytes()) for array in arrays]


def read_records(directory):
    """Epochs as CSV and as JSON, without the time they took."""
    with open(directory / "metrics.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    rows = json.loads((directory / "metrics.json").read_text())["epochs"]
    assert all(row.pop("seconds") is not None for row in (*table, *rows))
    return table, rows


def best_weights(directory):
    model = keras.saving.load_model(
        directory / "best.keras", compile=False, custom_objects={"PairModel": PairModel}
    )
    return [ops.convert_to_numpy(weight).tobytes() for weight in model.trainable_variables]


def what_is_left(trained):
    return {
        "bits": bits(trained.model),
        "records": read_records(trained.directory),
        "best": best_weights(trained.directory),
        "callbacks": trained.progress.callbacks,
    }


def assert_equal(ours, unbroken):
    for name, value in unbroken.items():
        assert ours[name] == value, f"{name} differ from those of a run that was not killed"


class Killed(BaseException):
    """Not an `Exception`: nothing may catch it."""


class Killer:
    """Kills at the `at`-th of all events: batches, validations, callbacks, writes, renamings."""

    def __init__(self, monkeypatch, trained, at=None):
        self.count, self.at = 0, at
        model, patch = trained.model, monkeypatch.setattr
        patch(model, "train_on_batch", self.around(model.train_on_batch))
        patch(model, "save", self.around(model.save))
        patch(trained, "validate", self.around(trained.validate))
        for callback in trained.callbacks:
            patch(callback, "on_epoch_end", self.around(callback.on_epoch_end))
        for name in ("write_history", "save_checkpoint", "write_tensorboard"):
            patch(trainer, name, self.around(getattr(trainer, name)))
        patch(files.os, "replace", self.around(os.replace))
        # One that is dead tidies nothing up.
        unlink = Path.unlink
        patch(Path, "unlink", lambda *a, **k: None if self.dead else unlink(*a, **k))

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
    """Resumes, as a user would, with a model of other weights, unless there is nothing yet."""
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


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """What a run that is never killed leaves, and how many events it has, for each schedule."""
    return {
        schedule: unbroken_run(tmp_path_factory.mktemp(schedule), schedule=schedule)
        for schedule in ("plateau", "cosine")
    }


def kill(directory, at, **kwargs):
    """Starts or resumes a run and kills it; whether there was anything left to kill."""
    victim = started(directory, **kwargs)
    with pytest.MonkeyPatch.context() as patch:
        Killer(patch, victim, at)
        try:
            victim.run()
        except Killed:
            return True
    return False


def check_killed_once(directory, at, expected, **kwargs):
    directory.mkdir()
    assert kill(directory, at, **kwargs)
    survivor = started(directory, **kwargs)
    survivor.run()
    assert_equal(what_is_left(survivor), expected)
    assert not [path for path in directory.iterdir() if path.name.startswith(".")]


PARTS = 4  # of the events: each part is a test of its own, to see where it fails
STEP = 1 if keras.backend.backend() == "tensorflow" else 5


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_any_event_of_an_epoch_and_resumed(tmp_path, unbroken, part):
    """The second epoch: its model is the best one, and the plateau is about to begin."""
    expected, events = unbroken["plateau"]
    epoch = events // EPOCHS
    for at in range(epoch + part, 2 * epoch + PARTS, 2 * PARTS * STEP):
        check_killed_once(tmp_path / str(at), at, expected)


@pytest.mark.parametrize("schedule", ["plateau", "cosine"])
def test_killed_anywhere_in_a_run_and_resumed(tmp_path, unbroken, schedule):
    expected, events = unbroken[schedule]
    for at in [0, 1, 2, 3, 4, *range(11, events - 1, 23 * STEP), events - 1]:
        check_killed_once(tmp_path / str(at), at, expected, schedule=schedule)


@pytest.mark.parametrize("at", [23, 31])
def test_killed_again_and_again(tmp_path, unbroken, at):
    expected, _ = unbroken["plateau"]
    kills = 0
    while kill(tmp_path, at):
        kills += 1
    assert kills >= 3
    assert_equal(what_is_left(started(tmp_path)), expected)


def test_two_runs_are_equal(tmp_path, unbroken):
    again, events = unbroken_run(tmp_path)
    assert_equal(again, unbroken["plateau"][0])
    assert events == unbroken["plateau"][1]
    other = make_trainer(tmp_path / "other", seed=1)
    other.run()
    assert bits(other.model) != again["bits"]


def test_how_often_checkpoints_are_written_changes_nothing(tmp_path, unbroken):
    trained = make_trainer(tmp_path, checkpoint_seconds=1000)
    with pytest.MonkeyPatch.context() as patch:
        written = []
        save = trainer.save_checkpoint
        patch.setattr(trainer, "save_checkpoint", lambda *a: (written.append(a), save(*a)))
        trained.run()
    assert len(written) == 1 + EPOCHS  # at the start and after every epoch
    assert_equal(what_is_left(trained), unbroken["plateau"][0])


def test_the_same_trainer_goes_on_after_an_interruption(tmp_path, unbroken):
    expected, events = unbroken["plateau"]
    trained = make_trainer(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        Killer(patch, trained, events // 2)
        with pytest.raises(Killed):
            trained.run()
    trained.resume()
    trained.run()
    assert_equal(what_is_left(trained), expected)


def test_the_unbroken_run_is_as_described(tmp_path, unbroken):
    """Numbers that the tests above compare are the right ones."""
    expected, _ = unbroken["plateau"]
    table, rows = expected["records"]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["val_score"] for row in rows] == SCORES
    # Two epochs without a better score, the third and the fourth: the rate of the fifth is halved.
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.05] * 4 + [0.025])
    assert [{k: float(v) for k, v in row.items()} for row in table] == rows
    assert set(rows[0]) == {"epoch", "loss", "accuracy", "val_score", "learning_rate"}
    _, rows = unbroken["cosine"][0]["records"]
    steps = len(make_batches()) * EPOCHS
    rates = [0.025 * (1 + math.cos(math.pi * (e + 1) / EPOCHS)) for e in range(EPOCHS)]
    assert steps == 15 and [row["learning_rate"] for row in rows] == pytest.approx(rates, abs=1e-8)


def test_loss_and_accuracy_are_means_over_the_pairs_of_the_epoch(tmp_path):
    """By hand from the logits; without dropout and at a rate of 0 no batch changes them."""
    trained = make_trainer(tmp_path, epochs=2)
    trained.model.dropout.rate = 0.0
    trained.model.optimizer.learning_rate = 0.0
    expected = []
    for epoch in range(2):  # in other batches: they pad differently, and this model sees it
        trained.batches.set_epoch(epoch)
        losses, hits = [], []
        for inputs, classes in (trained.batches[i] for i in range(3)):
            logits = np.float64(ops.convert_to_numpy(trained.model(inputs)))
            logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            losses += (-logs[np.arange(len(classes)), classes]).tolist()
            hits += (logits.argmax(-1) == classes).tolist()
        assert len(hits) == 10 and 0 < sum(hits) < 10
        expected.append((np.mean(losses), np.mean(hits)))
    for row, (loss, accuracy) in zip(trained.run(), expected, strict=True):
        assert row["loss"] == pytest.approx(loss, abs=1e-6)
        assert row["accuracy"] == pytest.approx(accuracy, abs=1e-6)


def test_every_epoch_has_the_batches_of_its_number(tmp_path):
    """After a resumption too, which a comparison of two runs that both forget it would not show."""
    seen = []

    def recording(trained):
        step = trained.model.train_on_batch

        def recorded(x, y, **kwargs):
            seen.append(y.tolist())
            return step(x, y, **kwargs)

        trained.model.train_on_batch = recorded
        return trained

    recording(make_trainer(tmp_path, epochs=2)).run()
    longer = recording(make_trainer(tmp_path, epochs=4, seed=99))
    longer.resume()
    longer.run()
    batches, wanted = make_batches(), []
    for epoch in range(4):
        batches.set_epoch(epoch)
        wanted.append([batches[i][1].tolist() for i in range(3)])
    assert [seen[i : i + 3] for i in range(0, len(seen), 3)] == wanted
    assert len(set(map(str, wanted))) == 4


def test_there_is_a_checkpoint_before_the_first_batch(tmp_path, unbroken):
    trained = make_trainer(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained.model, "train_on_batch", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            trained.run()
    survivor = make_trainer(tmp_path, seed=99)
    survivor.resume()
    survivor.run()
    assert_equal(what_is_left(survivor), unbroken["plateau"][0])


def test_best_is_the_model_of_the_best_epoch(tmp_path, unbroken):
    for epochs in range(1, EPOCHS + 1):
        trained = make_trainer(tmp_path / str(epochs), epochs=epochs)
        trained.run()
        last = [ops.convert_to_numpy(w).tobytes() for w in trained.model.trainable_variables]
        best = best_weights(trained.directory)
        assert (best == last) == (epochs <= BEST_EPOCH)
        assert (best == unbroken["plateau"][0]["best"]) == (epochs >= BEST_EPOCH)
        assert trained.progress.best == max(SCORES[:epochs])


def test_a_score_that_is_no_number_is_never_best(tmp_path):
    trained = make_trainer(tmp_path, epochs=3, scores=[math.nan, 0.1, math.nan])
    history = trained.run()
    assert trained.progress.best == 0.1
    two = make_trainer(tmp_path / "two", epochs=2, scores=[math.nan, 0.1])
    two.run()
    assert best_weights(tmp_path) == best_weights(tmp_path / "two")
    assert len(history) == 3


def test_numbers_of_numpy_are_recorded(tmp_path):
    trained = make_trainer(tmp_path, epochs=2, scores=list(np.float32([0.5, 0.25])))
    trained.run()
    _, rows = read_records(tmp_path)
    assert [row["val_score"] for row in rows] == [0.5, 0.25]


def test_a_finished_run_stays_as_it_is(tmp_path):
    make_trainer(tmp_path, epochs=2).run()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = make_trainer(tmp_path, seed=99, epochs=2)
    again.resume()
    history = again.run()
    assert [row["epoch"] for row in history] == [1, 2]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_finished_run_can_be_prolonged(tmp_path, unbroken):
    make_trainer(tmp_path, epochs=3).run()
    longer = make_trainer(tmp_path, seed=99)
    longer.resume()
    longer.run()
    assert_equal(what_is_left(longer), unbroken["plateau"][0])


def test_lower_can_be_better(tmp_path):
    trained = make_trainer(tmp_path, mode="min", scores=[0.5, 0.2, 0.3, 0.2, 0.4])
    trained.run()
    assert trained.progress.best == 0.2
    two = make_trainer(tmp_path / "two", epochs=2)
    two.run()
    last = [ops.convert_to_numpy(w).tobytes() for w in two.model.trainable_variables]
    assert best_weights(tmp_path) == last


def test_learning_rates_of_batches(tmp_path):
    given = []

    def rate(epoch, batch):
        given.append((epoch, batch))
        return 0.01 * (1 + batch) / (1 + epoch)

    trained = make_trainer(tmp_path, epochs=2, learning_rate=rate)
    seen = []
    train_on_batch = trained.model.train_on_batch

    def watched(*args, **kwargs):
        seen.append(float(ops.convert_to_numpy(trained.model.optimizer.learning_rate)))
        return train_on_batch(*args, **kwargs)

    trained.model.train_on_batch = watched
    history = trained.run()
    assert given == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    np.testing.assert_allclose(seen, [0.01, 0.02, 0.03, 0.005, 0.01, 0.015], rtol=1e-6)
    # Of 10 pairs the last batch of an epoch may have any of 4, 4 and 2.
    sizes = [len(make_batches()[index][1]) for index in range(3)]
    expected = sum(n * r for n, r in zip(sizes, seen[:3], strict=True)) / 10
    assert history[0]["learning_rate"] == pytest.approx(expected)


class Weighted:
    """Batches with weights of targets: only some count."""

    def __init__(self):
        self.batches = make_batches()

    def __len__(self):
        return len(self.batches)

    def set_epoch(self, epoch):
        self.batches.set_epoch(epoch)

    def __getitem__(self, index):
        inputs, classes = self.batches[index]
        return inputs, classes, (np.arange(len(classes)) <= index).astype("float32")


def test_weights_say_what_counts(tmp_path):
    trained = make_trainer(tmp_path, epochs=1)
    trained.batches = Weighted()
    placed = []
    trained.place = lambda batch: placed.append(batch) or batch
    logs = []
    train_on_batch = trained.model.train_on_batch
    trained.model.train_on_batch = lambda *args, **kwargs: (
        logs.append((args, train_on_batch(*args, **kwargs))) or logs[-1][1]
    )
    (row,) = trained.run()
    assert [args for args, _ in logs] == placed and all(len(batch) == 3 for batch in placed)
    counts = [float(batch[2].sum()) for batch in placed]
    assert len(set(counts)) > 1
    mean = sum(n * log["loss"] for n, (_, log) in zip(counts, logs, strict=True)) / sum(counts)
    assert row["loss"] == pytest.approx(mean)


@pytest.mark.parametrize("stops", [[1], [3, 1], [4, 4, 4], [15]])
def test_stopped_after_so_many_batches_and_resumed(tmp_path, unbroken, stops):
    for count in stops:
        trained = started(tmp_path)
        before = int(ops.convert_to_numpy(trained.model.optimizer.iterations))
        trained.run(max_batches=count)
        assert int(ops.convert_to_numpy(trained.model.optimizer.iterations)) == before + count
    survivor = started(tmp_path)
    survivor.run()
    assert_equal(what_is_left(survivor), unbroken["plateau"][0])


def test_a_part_of_the_model_is_saved(tmp_path):
    trained = make_trainer(tmp_path, epochs=1)
    part = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    trained.saved = part
    trained.run()
    found = keras.saving.load_model(tmp_path / "best.keras", compile=False)
    for one, other in zip(found.weights, part.weights, strict=True):
        assert (ops.convert_to_numpy(one) == ops.convert_to_numpy(other)).all()


class Began(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(epoch)


def test_epochs_begin_once(tmp_path):
    """Also where a run stops within one; a callback's list of numbers is part of the checkpoint."""
    callback = Began()
    make_trainer(tmp_path, epochs=3, callbacks=[callback]).run(max_batches=4)
    assert callback.epochs == [0, 1]
    later = Began()
    resumed = make_trainer(tmp_path, epochs=3, callbacks=[later])
    resumed.resume()
    assert later.epochs == [0, 1]
    resumed.run()
    assert later.epochs == [0, 1, 2]


def test_an_average_is_what_is_validated_and_saved(tmp_path):
    """And training goes on from the weights themselves."""
    trained = make_trainer(tmp_path, epochs=2)
    model = trained.model
    model.compile(
        AveragedSGD(0.5),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,
    )
    (left, right), classes = trained.batches[0]
    model.optimizer.build(model.trainable_variables)
    model.optimizer.start_averaging()
    model.test_on_batch((left, right), classes)
    steps, validated = [], []
    train_on_batch = model.train_on_batch

    def weights():
        return [ops.convert_to_numpy(w).copy() for w in model.trainable_variables]

    def watched(*args, **kwargs):
        if len(steps) == 3:
            assert all((a == b).all() for a, b in zip(weights(), steps[-1], strict=True))
        logs = train_on_batch(*args, **kwargs)
        steps.append(weights())
        return logs

    def validate():
        validated.append(weights())
        return {"val_score": float(len(validated))}

    model.train_on_batch, trained.validate = watched, validate
    trained.run()
    for count, found in ((3, validated[0]), (6, validated[1])):
        for place, mean in enumerate(found):
            expected = np.mean([step[place] for step in steps[:count]], axis=0)
            np.testing.assert_allclose(mean, expected, atol=1e-6)
    assert best_weights(tmp_path) == [weight.tobytes() for weight in validated[1]]


# --- Refusals: nothing is changed --------------------------------------------------------------


def assert_resume_refused(refused, error, match):
    before, progress = bits(refused.model), refused.progress
    with pytest.raises(error, match=match) as caught:
        refused.resume()
    assert str(caught.value).startswith(str(refused.directory / "checkpoint.npz"))
    assert bits(refused.model) == before and refused.progress is progress


def test_resuming_what_is_not_there(tmp_path):
    assert_resume_refused(make_trainer(tmp_path), FileNotFoundError, "no such checkpoint")


def test_resuming_another_run(tmp_path):
    make_trainer(tmp_path, epochs=1).run()
    refused = make_trainer(tmp_path, seed=99)
    refused.callbacks = []
    assert_resume_refused(refused, ValueError, "1 callbacks.*here are 0.*Resume with the arguments")
    refused = make_trainer(tmp_path, schedule="cosine", seed=99)
    assert_resume_refused(refused, ValueError, "another model")  # no learning rate to restore


def test_resuming_with_less_data(tmp_path):
    trained = make_trainer(tmp_path, epochs=1)
    trained.run()
    trained.progress.batch = 3
    trained._save()
    refused = make_trainer(tmp_path, seed=99)
    refused.batches = PairBatches([[1]], [[2]], [0], batch_size=4)
    assert_resume_refused(refused, ValueError, "batch 3.*1 batches")


@pytest.mark.parametrize("state", [None, [], {}, {"epoch": 1}, "text", 3])
def test_resuming_from_a_checkpoint_of_something_else(tmp_path, state):
    saved = make_trainer(tmp_path)
    files_of_saved = tmp_path / "checkpoint.npz"
    trainer.save_checkpoint(files_of_saved, saved.model, state)
    assert_resume_refused(make_trainer(tmp_path, seed=99), ValueError, "not a checkpoint of a Tr")
    assert load_checkpoint(files_of_saved, saved.model) == state


# --- What a user sees ---------------------------------------------------------------------------


def test_progress_is_shown(tmp_path, capsys):
    make_trainer(tmp_path, epochs=2, verbose=True).run()
    lines = capsys.readouterr().out
    assert "Epoch 1/2" in lines and "Epoch 2/2" in lines
    assert "3/3" in lines
    assert "epoch 2, " in lines and "val_score 0.3, learning_rate 0.05, seconds " in lines


def test_seconds_go_on_after_a_kill(tmp_path, monkeypatch):
    """Each batch takes 10 seconds by the trainer's clock, those before the kill included."""
    clock = iter(range(0, 10**6, 10))
    monkeypatch.setattr(trainer.time, "monotonic", lambda: float(next(clock)))
    trained = make_trainer(tmp_path, epochs=2)
    step, calls = trained.model.train_on_batch, []

    def dies(*args, **kwargs):
        calls.append(1)
        if len(calls) == 5:  # the second batch of the second epoch
            raise Killed
        return step(*args, **kwargs)

    trained.model.train_on_batch = dies
    with pytest.raises(Killed):
        trained.run()
    survivor = make_trainer(tmp_path, seed=99, epochs=2)
    survivor.resume()
    assert [row["seconds"] for row in survivor.run()] == [30.0, 30.0]


# --- A real kill, of a real ON-LSTM -------------------------------------------------------------

DRIVER = """
import sys
from pathlib import Path

import keras

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.models import PairClassifier
from keras_onlstm.training import PairBatches, Trainer

directory = Path(sys.argv[1])
pairs, _ = logic.generate(300).split(2)
batches = PairBatches(
    [logic.encode(pair.left) for pair in pairs], [logic.encode(pair.right) for pair in pairs],
    [logic.LABELS.index(pair.label) for pair in pairs], 4, multiple=12, shuffle=True,
)
keras.utils.set_random_seed(0)
model = PairClassifier(12, 7, embedding_dim=32, units=60, dropout=0.3, seed=0)
model.compile(
    keras.optimizers.Adam(0.01, global_clipnorm=1.0),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
)
(left, right), classes = batches[0]
model((left, right))
model.optimizer.build(model.trainable_variables)
model.test_on_batch((left, right), classes)
trainer = Trainer(
    model, batches,
    lambda: {"val": -model.test_on_batch((left, right), classes, return_dict=True)["loss"]},
    directory, epochs=2, monitor="val", checkpoint_seconds=0, verbose=False,
    callbacks=[keras.callbacks.ReduceLROnPlateau("val", mode="max", patience=1)],
)
if (directory / "checkpoint.npz").is_file():
    trainer.resume()
print("go", trainer.progress.epoch, trainer.progress.batch, flush=True)
trainer.run()
print("done", flush=True)
"""


def start_driver(tmp_path, directory):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        [sys.executable, str(script), str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    line = process.stdout.readline()
    if not line.startswith("go "):
        pytest.fail(process.communicate()[1])
    return process, tuple(map(int, line.split()[1:]))


def finish_driver(process):
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, output) == (0, "done\n"), errors


def arrays_of(directory):
    """The variables in the checkpoint, and the state without times."""
    with np.load(directory / "checkpoint.npz") as file:
        arrays = {name: file[name] for name in file.files}
    state = json.loads(arrays.pop("state.json").tobytes())
    for row in state["history"]:
        del row["seconds"]
    digests = {name: hashlib.sha256(a.tobytes()).hexdigest() for name, a in arrays.items()}
    return digests, state


def weights_in(archive, directory):
    model = keras.saving.load_model(directory / archive, compile=False, safe_mode=True)
    return [ops.convert_to_numpy(weight).tobytes() for weight in model.weights]


# Five processes: on JAX each would compile for minutes. In one process, the tests above kill and
# resume on every backend.
@pytest.mark.backend("tensorflow")
def test_kill_9_and_resume(tmp_path):
    runs = [tmp_path / name for name in ("whole", "again", "killed")]
    for directory in runs[:2]:
        process, _ = start_driver(tmp_path, directory)
        finish_driver(process)
    whole = arrays_of(runs[0])
    assert arrays_of(runs[1]) == whole, "two unbroken runs differ"
    assert len(whole[0]) > 20 and whole[1]["epoch"] == 2

    generator, places = random.Random(1), []
    for _ in range(2):
        process, place = start_driver(tmp_path, runs[2])
        places.append(place)
        # Once it has come further than before, to be killed at whatever it is doing then.
        checkpoint = runs[2] / "checkpoint.npz"
        before = checkpoint.stat().st_mtime_ns if len(places) > 1 else None
        while process.poll() is None:
            if checkpoint.is_file() and checkpoint.stat().st_mtime_ns != before:
                break
            time.sleep(0.01)
        time.sleep(generator.uniform(0.0, 1.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
    process, place = start_driver(tmp_path, runs[2])
    finish_driver(process)
    assert places == sorted(places), "a resumed run went back behind the checkpoint"
    assert place != (0, 0), "it was always killed before the first checkpoint within an epoch"
    assert arrays_of(runs[2]) == whole
    assert read_records(runs[2]) == read_records(runs[0])
    assert weights_in("best.keras", runs[2]) == weights_in("best.keras", runs[0])
