"""The trainer: what it counts, records, keeps and shows."""

import math
import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_onlstm.training import AveragedSGD, load_checkpoint, save_checkpoint
from toy_runs import best_weights, bits, make_batches, make_trainer, read_records


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", "1"),
        ("epoch", -1),
        ("batch", 1.5),
        ("seconds", None),
        ("samples", []),
        ("sums", []),
        ("sums", {"loss": "low"}),
        ("best", "high"),
        ("history", {}),
        ("history", [1]),
        ("history", [{"epoch": 1, "loss": None}]),
        ("callbacks", None),
        ("callbacks", [[]]),
        ("callbacks", [{"wait": "long"}]),
    ],
)
def test_progress_of_wrong_kinds_changes_nothing(finished, name, value):
    """In a checkpoint whose variables are right."""
    trained, state = finished
    before = bits(trained.model), vars(trained.callbacks[0]).copy(), trained.progress
    save_checkpoint(trained.directory / "checkpoint.npz", trained.model, {**state, name: value})
    other = [variable * 2 for variable in trained.model.get_weights()]
    trained.model.set_weights(other)
    changed = bits(trained.model)
    with pytest.raises(ValueError, match=r"checkpoint\.npz: not a checkpoint of a Trainer"):
        trained.resume()
    assert (bits(trained.model), vars(trained.callbacks[0]), trained.progress) == (
        changed,
        *before[1:],
    )
    assert changed != before[0]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    trained = make_trainer(tmp_path_factory.mktemp("finished"), epochs=1)
    trained.run()
    path = trained.directory / "checkpoint.npz"
    state = load_checkpoint(path, trained.model)
    trained.resume()
    return trained, state


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


def test_a_part_of_the_model_is_saved(tmp_path):
    trained = make_trainer(tmp_path, epochs=1)
    part = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    trained.saved = part
    trained.run()
    found = keras.saving.load_model(tmp_path / "best.keras", compile=False)
    for one, other in zip(found.weights, part.weights, strict=True):
        assert (ops.convert_to_numpy(one) == ops.convert_to_numpy(other)).all()


def test_epochs_begin_once_also_where_a_run_stops_within_one(tmp_path):
    epochs = []
    for stop in (4, None):
        began = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: epochs.append(epoch)
        )
        trained = make_trainer(tmp_path, epochs=3, callbacks=[began])
        if stop is None:
            trained.resume()
        trained.run(max_batches=stop)
    assert epochs == [0, 1, 2]


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


def test_every_epoch_has_a_line(tmp_path, capsys):
    make_trainer(tmp_path, epochs=2, verbose=True).run()
    lines = capsys.readouterr().out
    for epoch, line in enumerate(lines.splitlines(), start=1):
        begins = rf"Epoch {epoch}/2: 10 samples in \d+ s, [\d,]+ a second, "
        numbers = r"accuracy \d[\d.]*, loss \d[\d.]*, val_score 0\.\d+"
        assert re.fullmatch(begins + numbers, line), line
    assert epoch == 2 and line.endswith("val_score 0.3")
