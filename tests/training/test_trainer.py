"""Trainer: metrics, history, best model and output."""

import math
import re
import sys

import keras
import numpy as np
import pytest
from keras import ops

from helpers.tiny_runs import (
    best_weights,
    bits,
    make_batches,
    make_trainer,
    read_records,
    watch_steps,
    weights_of,
)
from keras_onlstm.training import AveragedSGD, load_checkpoint, save_checkpoint
from keras_onlstm.training.optimizers import Stateful


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    trained = make_trainer(tmp_path_factory.mktemp("finished"), epochs=1)
    trained.run()
    return trained, load_checkpoint(trained.directory / "checkpoint.npz", trained.model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", -1),
        ("seconds", None),
        ("sums", {"loss": "low"}),
        ("history", [{"epoch": 1, "loss": None}]),
        ("callbacks", [{"wait": "long"}]),
    ],
)
def test_invalid_progress_is_rejected_without_changes(finished, name, value):
    """In a checkpoint whose variables are right."""
    trained, state = finished
    save_checkpoint(trained.directory / "checkpoint.npz", trained.model, {**state, name: value})
    trained.model.set_weights([variable * 2 for variable in trained.model.get_weights()])
    before = bits(trained.model), vars(trained.schedules[0]).copy(), trained.progress
    with pytest.raises(ValueError, match=r"checkpoint\.npz: not a checkpoint of a Trainer"):
        trained.resume()
    assert (bits(trained.model), vars(trained.schedules[0]), trained.progress) == before


def test_metrics_are_means_over_the_epoch(tmp_path):
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


def test_batches_of_an_epoch_depend_on_its_number(tmp_path):
    """After a resumption too, which a comparison of two runs that both forget it would not show."""
    seen = []
    for epochs in (2, 4):
        trained = make_trainer(tmp_path, epochs=epochs)
        watch_steps(trained, lambda x, y: seen.append(y.tolist()))
        if epochs == 4:
            trained.resume()
        trained.run()
    batches, wanted = make_batches(), []
    for epoch in range(4):
        batches.set_epoch(epoch)
        wanted.append([batches[i][1].tolist() for i in range(3)])
    assert [seen[i : i + 3] for i in range(0, len(seen), 3)] == wanted
    assert len(set(map(str, wanted))) == 4


@pytest.mark.parametrize(
    ("mode", "scores", "best"),
    [
        ("max", [math.nan, 0.1, math.nan, 0.1], 0.1),
        ("min", list(np.float32([0.5, 0.25, 0.5])), 0.25),
    ],
)
def test_best_score_follows_mode_and_ignores_nan(tmp_path, mode, scores, best):
    trained = make_trainer(tmp_path, epochs=len(scores), mode=mode, scores=scores)
    trained.run()
    assert trained.progress.best == best
    two = make_trainer(tmp_path / "two", epochs=2)
    two.run()
    assert best_weights(tmp_path) == weights_of(two.model)
    if mode == "min":  # NumPy's numbers are recorded
        assert [row["val_score"] for row in read_records(tmp_path)[1]] == scores


class Rates(Stateful):
    """A learning rate that is the share of the training that is done."""

    def rate(self, done):
        return done


@pytest.mark.parametrize("shares", [(1.0, 1.0, 1.0), (2.0, 0.5, 1.5)])
def test_schedule_sets_the_rate_of_every_batch(tmp_path, shares):
    """Times the share of the batch, such as the length of its window."""
    seen = []
    trained = make_trainer(tmp_path, epochs=2, schedules=[Rates()])
    optimizer = trained.model.optimizer
    if shares != (1.0, 1.0, 1.0):
        trained.batches.share = lambda index: shares[index]
    watch_steps(
        trained, lambda *_: seen.append(float(ops.convert_to_numpy(optimizer.learning_rate)))
    )
    history = trained.run()
    expected = np.arange(6) / 6 * np.tile(shares, 2)
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    # Of 10 pairs the last batch of an epoch may have any of 4, 4 and 2.
    sizes = [len(make_batches()[index][1]) for index in range(3)]
    mean = sum(n * rate for n, rate in zip(sizes, expected[:3], strict=True)) / 10
    assert history[0]["learning_rate"] == pytest.approx(mean)


class Scores(Stateful):
    """Records the scores of every epoch."""

    def __init__(self, **attributes):
        self.seen = []
        vars(self).update(attributes)

    def step(self, score):
        self.seen.append(score)


def test_schedules_get_their_monitored_value(tmp_path):
    usual, other = Scores(), Scores(monitor="other")
    trained = make_trainer(tmp_path, epochs=2, schedules=[usual, other])
    score = trained.validate
    trained.validate = lambda: {**score(), "other": 7.0}
    trained.run()
    assert (usual.seen, other.seen) == ([0.1, 0.3], [7.0, 7.0])


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


def test_sample_weights_weigh_the_metrics(tmp_path):
    trained = make_trainer(tmp_path, epochs=1)
    trained.batches = Weighted()
    placed, given, losses = [], [], []
    trained.distribute = lambda batch: placed.append(batch) or batch
    watch_steps(
        trained, lambda *batch: given.append(batch), lambda logs: losses.append(logs["loss"])
    )
    (row,) = trained.run()
    assert given == placed and all(len(batch) == 3 for batch in placed)
    counts = [float(batch[2].sum()) for batch in placed]
    assert len(set(counts)) > 1
    assert row["loss"] == pytest.approx(np.average(losses, weights=counts))


def test_epoch_hooks_are_called_once_per_epoch(tmp_path):
    began, ended = [], []
    for stop in (4, None):
        callback = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: began.append(epoch),
            on_epoch_end=lambda epoch, logs: ended.append(epoch),
        )
        trained = make_trainer(tmp_path, epochs=3, callbacks=[callback])
        if stop is None:
            trained.resume()
        trained.run(max_batches=stop)
    assert began == ended == [0, 1, 2]


def test_averaged_weights_are_validated_and_saved(tmp_path):
    """Training continues from the plain weights."""
    trained = make_trainer(tmp_path, epochs=2)
    model = trained.model
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AveragedSGD(0.5), loss, run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    model.optimizer.start_averaging()
    model.test_on_batch(*trained.batches[0])
    steps, validated = [], []

    def weights():
        return [ops.convert_to_numpy(w).copy() for w in model.trainable_variables]

    def before(*_):
        if len(steps) == 3:
            assert all((a == b).all() for a, b in zip(weights(), steps[-1], strict=True))

    def validate():
        validated.append(weights())
        return {"val_score": float(len(validated))}

    watch_steps(trained, before, lambda logs: steps.append(weights()))
    trained.validate = validate
    trained.run()
    for count, found in ((3, validated[0]), (6, validated[1])):
        for place, mean in enumerate(found):
            expected = np.mean([step[place] for step in steps[:count]], axis=0)
            np.testing.assert_allclose(mean, expected, atol=1e-6)
    assert best_weights(tmp_path) == [weight.tobytes() for weight in validated[1]]


def test_prints_a_line_per_epoch(tmp_path, capsys):
    make_trainer(tmp_path, epochs=2, verbose=True).run()
    lines = capsys.readouterr().out
    assert re.findall(r"^Epoch (\d)/2: .*val_score (.*)$", lines, re.M) == [
        ("1", "0.1"),
        ("2", "0.3"),
    ]


@pytest.mark.parametrize(
    ("log_every", "terminal", "numbers"), [(2, False, ["2", "2"]), (0, False, []), (2, True, [])]
)
def test_log_every_prints_lines_without_a_terminal(
    tmp_path, capsys, monkeypatch, log_every, terminal, numbers
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    make_trainer(tmp_path, epochs=2, verbose=True, log_every=log_every).run()
    lines = capsys.readouterr().out
    found = re.findall(r"^Epoch \d/2, batch (\d)/3: accuracy .*, loss .*$", lines, re.M)
    assert found == numbers
