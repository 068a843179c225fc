"""Callbacks in the trainer: when they are called, and their states in a resumed run."""

import csv
import math

import keras
import numpy as np
import pytest
from keras import callbacks as keras_callbacks
from keras import ops

from keras_onlstm.training import (
    HalvingWithRollback,
    NonMonotonicTrigger,
    load_checkpoint,
    save_checkpoint,
)
from keras_onlstm.training.callback_state import restore_state, state_of
from toy_runs import (
    assert_equal,
    best_weights,
    kill,
    make_batches,
    make_trainer,
    read_records,
    started,
    unbroken_run,
    what_is_left,
)

STEP = 1 if keras.backend.backend() == "tensorflow" else 3


class Calls(keras_callbacks.Callback):
    """Keeps the names of the methods that are called, and their arguments except empty logs."""

    def __init__(self):
        super().__init__()
        self.seen = []
        for name in ("train", "epoch", "train_batch", "test"):
            for when in ("begin", "end"):
                setattr(self, f"on_{name}_{when}", self.seeing(f"{name} {when}"))

    def seeing(self, name):
        def see(*given, logs=None):
            self.seen.append((name, *(x for x in (*given, logs) if x is not None and x != {})))

        return see


def recorded(trained):
    """The loss and the number of pairs of every batch that a trainer trains on."""
    step, losses = trained.model.train_on_batch, []

    def train(x, y, **kwargs):
        logs = step(x, y, **kwargs)
        losses.append((float(logs["loss"]), len(y)))
        return logs

    trained.model.train_on_batch = train
    return losses


def mean(losses):
    return pytest.approx(sum(x * n for x, n in losses) / sum(n for _, n in losses), abs=1e-6)


def test_hooks_are_called_in_the_order_of_fit(tmp_path):
    calls = Calls()
    trained = make_trainer(tmp_path, epochs=2, callbacks=[calls])
    losses = recorded(trained)
    history = trained.run()
    epoch = ["epoch begin", *["train_batch begin", "train_batch end"] * 3]
    epoch += ["test begin", "test end", "epoch end"]
    assert [name for name, *_ in calls.seen] == ["train begin", *epoch, *epoch, "train end"]

    def given(name):
        return [tuple(given) for seen, *given in calls.seen if seen == name]

    assert given("train_batch begin") == [(0,), (1,), (2,)] * 2
    assert given("epoch begin") == [(0,), (1,)]
    ends = given("train_batch end")
    assert [at for at, _ in ends] == [0, 1, 2] * 2
    for place, (_, logs) in enumerate(ends):  # means over the samples of the epoch so far
        assert logs["loss"] == mean(losses[place // 3 * 3 : place + 1])
        assert set(logs) == {"loss", "accuracy"}
    wanted = [{name: row[name] for name in ("loss", "accuracy", "val_score")} for row in history]
    assert given("epoch end") == [(0, wanted[0]), (1, wanted[1])]
    assert given("test end") == [({"val_score": 0.1},), ({"val_score": 0.3},)]
    assert given("train end") == [(wanted[1],)]
    assert calls.model is trained.model
    assert calls.params == {"epochs": 2, "steps": 3, "verbose": 0}


class Slow(keras_callbacks.Callback):
    """With no method of its own for batches, which Keras would call in another thread."""

    def __init__(self):
        super().__init__()
        self.async_safe = True
        self.threads = []

    def on_batch_end(self, batch, logs=None):
        import threading

        self.threads.append(float(threading.current_thread() is threading.main_thread()))


def test_callbacks_are_called_in_the_thread_that_trains(tmp_path):
    slow = Slow()
    make_trainer(tmp_path, epochs=1, callbacks=[slow]).run()
    assert slow.threads == [1.0] * 3


# --- Stopping ----------------------------------------------------------------------------------


def early(**kwargs):
    given = {"mode": "max", "patience": 2, "restore_best_weights": True, **kwargs}
    return keras_callbacks.EarlyStopping("val_score", **given)


def plateau():
    return keras_callbacks.ReduceLROnPlateau("val_score", mode="max", factor=0.5, patience=1)


def weights_of(model):
    return [ops.convert_to_numpy(w).tobytes() for w in model.trainable_variables]


def test_early_stopping_ends_the_run(tmp_path):
    """Scores are 0.1, 0.3, 0.2, 0.3, 0.1: the second is best, and two more are no better."""
    stopping = early()
    trained = make_trainer(tmp_path, callbacks=[stopping])
    history = trained.run()
    assert [row["epoch"] for row in history] == [1, 2, 3, 4]
    assert (stopping.stopped_epoch, stopping.wait, stopping.best) == (3, 2, 0.3)
    assert stopping.best_epoch == 1 and trained.progress.stopped and trained.model.stop_training
    assert weights_of(trained.model) == best_weights(tmp_path)  # restored
    _, rows = read_records(tmp_path)
    assert len(rows) == 4


def test_without_restoring_the_last_weights_stay(tmp_path):
    trained = make_trainer(tmp_path / "early", callbacks=[early(restore_best_weights=False)])
    trained.run()
    four = make_trainer(tmp_path / "four", epochs=4, callbacks=[])
    four.run()
    assert weights_of(trained.model) == weights_of(four.model)
    assert weights_of(trained.model) != best_weights(tmp_path / "early")


def files_of(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_run_that_was_stopped_stays_stopped(tmp_path):
    first = make_trainer(tmp_path, callbacks=[early()])
    first.run()
    before = files_of(tmp_path)
    again = make_trainer(tmp_path, seed=99, epochs=50, callbacks=[early()])
    again.resume()
    assert again.progress.stopped and again.progress.epoch == 4
    again.model.train_on_batch = None  # nothing may be trained
    assert len(again.run()) == 4
    assert files_of(tmp_path) == before
    assert weights_of(again.model) == weights_of(first.model) == best_weights(tmp_path)
    assert len(first.run()) == 4  # nor does it go on by itself
    assert files_of(tmp_path) == before


class StopAt(keras_callbacks.Callback):
    """Stops after so many batches, counted from the beginning of the run."""

    def __init__(self, count):
        super().__init__()
        self.count, self.done, self.others = count, 0, 0

    def get_state(self):
        return {"done": self.done}

    def set_state(self, state):
        self.done = state["done"]

    def on_train_batch_end(self, batch, logs=None):
        self.done, self.others = self.done + 1, self.others + 1
        if self.done == self.count:
            self.model.stop_training = True


def test_a_batch_can_be_the_last_one(tmp_path):
    """The epoch is ended with the batches that it has had."""
    trained = make_trainer(tmp_path / "whole", callbacks=[StopAt(5)])
    losses = recorded(trained)
    history = trained.run()
    assert len(losses) == 5 and [row["epoch"] for row in history] == [1, 2]
    assert history[1]["loss"] == mean(losses[3:])
    assert trained.progress.stopped and trained.progress.batch == 0
    # Stopped and resumed on the way, it ends with the same batch.
    part = make_trainer(tmp_path / "parts", callbacks=[StopAt(5)])
    part.run(max_batches=4)
    assert not part.progress.stopped
    rest = make_trainer(tmp_path / "parts", seed=99, callbacks=[StopAt(5)])
    rest.resume()
    assert (rest.callbacks[0].done, rest.callbacks[0].others) == (4, 0)  # by its `get_state`
    rest.run()
    assert_equal(what_is_left(rest), what_is_left(trained))


def test_a_callback_can_end_the_run_over_a_loss_that_is_not_a_number(tmp_path, capsys):
    trained = make_trainer(tmp_path, callbacks=[keras_callbacks.TerminateOnNaN()])
    step, calls = trained.model.train_on_batch, []

    def sometimes(*args, **kwargs):
        calls.append(1)
        logs = step(*args, **kwargs)
        return logs if len(calls) < 5 else {**logs, "loss": math.nan}

    trained.model.train_on_batch = sometimes
    history = trained.run()
    assert len(calls) == 5 and trained.progress.stopped
    assert [math.isnan(row["loss"]) for row in history] == [False, True]
    again = make_trainer(tmp_path, callbacks=[keras_callbacks.TerminateOnNaN()])
    again.resume()
    assert len(again.run()) == 2


# --- Resuming ----------------------------------------------------------------------------------


def both():
    """Two that count: the one takes the rate down, the other one stops the run."""
    return [plateau(), early(patience=2)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return unbroken_run(tmp_path_factory.mktemp("unbroken"), callbacks=both())


def test_the_unbroken_run_is_as_described(unbroken):
    _, rows = unbroken[0]["records"]
    assert [row["val_score"] for row in rows] == [0.1, 0.3, 0.2, 0.3]
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.05] * 3 + [0.025])


def test_killed_anywhere_and_resumed(tmp_path, unbroken):
    """Counters, and the weights that the callback keeps, are those of the run never killed."""
    expected, events = unbroken
    for at in [*range(0, events - 1, 31 * STEP), events - 3, events - 1]:
        directory = tmp_path / str(at)
        directory.mkdir()
        assert kill(directory, at, callbacks=both())
        survivor = started(directory, callbacks=both())
        survivor.run()
        assert_equal(what_is_left(survivor), expected)
        assert weights_of(survivor.model) == expected["best"]


@pytest.mark.parametrize("stops", [[1], [4, 3], [6, 5]])
def test_stopped_after_so_many_batches_and_resumed(tmp_path, unbroken, stops):
    for count in stops:
        started(tmp_path, callbacks=both()).run(max_batches=count)
    survivor = started(tmp_path, callbacks=both())
    survivor.run()
    assert_equal(what_is_left(survivor), unbroken[0])


def test_the_same_trainer_goes_on_where_it_paused(tmp_path, unbroken):
    """With the weights that it trained, not with the best ones that a callback restored."""
    trained = make_trainer(tmp_path, callbacks=both())
    for _ in range(3):
        trained.run(max_batches=4)
    assert_equal(what_is_left(trained), unbroken[0])


def test_a_run_can_be_prolonged_though_the_best_weights_were_restored(tmp_path):
    patient = {"callbacks": [early(patience=9)]}
    make_trainer(tmp_path / "parts", epochs=3, **patient).run()
    longer = make_trainer(tmp_path / "parts", seed=99, callbacks=[early(patience=9)])
    longer.resume()
    longer.run()
    whole = make_trainer(tmp_path / "whole", callbacks=[early(patience=9)])
    whole.run()
    assert_equal(what_is_left(longer), what_is_left(whole))


def test_the_sign_of_a_least_change_is_turned_once(tmp_path):
    """Where lower is better Keras turns the sign of `min_delta` at the first comparison."""
    scores = [0.5, 0.48, 0.47, 0.3, 0.29]  # changes of 0.02 and 0.01 are none

    def callback():
        return keras_callbacks.ReduceLROnPlateau(
            "val_score", mode="min", factor=0.5, patience=2, min_delta=0.1
        )

    given = {"scores": scores, "mode": "min"}
    whole = make_trainer(tmp_path / "whole", callbacks=[callback()], **given)
    history = whole.run()
    assert [row["learning_rate"] for row in history] == pytest.approx([0.05] * 3 + [0.025] * 2)
    for stops in ([7], [3, 3, 3]):
        directory = tmp_path / f"{stops}"
        directory.mkdir()
        for count in stops:
            started(directory, callbacks=[callback()], **given).run(max_batches=count)
        survivor = started(directory, callbacks=[callback()], **given)
        survivor.run()
        assert_equal(what_is_left(survivor), what_is_left(whole))


def test_checkpoints_of_earlier_versions(tmp_path, unbroken):
    """They have neither `stopped` nor arrays, and all attributes that are numbers."""
    trained = make_trainer(tmp_path, callbacks=both())
    trained.run(max_batches=2)
    path = tmp_path / "checkpoint.npz"
    state = load_checkpoint(path, trained.model)
    del state["stopped"]
    for numbers in state["callbacks"]:
        numbers |= {"params": None, "min_delta": 0.3, "patience": 9, "_more": [1.0, True]}
    save_checkpoint(path, trained.model, state)
    for survivor in (make_trainer(tmp_path, seed=99, callbacks=both()), trained):
        survivor.resume()
        assert not survivor.progress.stopped
    survivor.run()
    assert_equal(what_is_left(survivor), unbroken[0])


def test_arrays_beside_the_model_survive(tmp_path):
    trained = make_trainer(tmp_path)
    import ml_dtypes

    given = {
        "0/a": np.arange(6, dtype="int64").reshape(2, 3),
        "1/b/0": np.array([np.nan, -0.0], "float32"),
        "1/b/1": np.array([0.1, 2.5], ml_dtypes.bfloat16),
    }
    save_checkpoint(tmp_path / "c.npz", trained.model, {"epoch": 1}, given)
    found = {}
    assert load_checkpoint(tmp_path / "c.npz", trained.model, arrays=found) == {"epoch": 1}
    assert list(found) == list(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes()
    assert load_checkpoint(tmp_path / "c.npz", trained.model) == {"epoch": 1}


@pytest.mark.parametrize("stops", [[2], [4, 3]])
def test_halving_with_rollback_resumes_exactly(tmp_path, stops):
    """Entropies 0.1, 0.3, 0.2, 0.3: the second rises, gets the first weights back, and so on."""

    def given():
        return {"callbacks": [HalvingWithRollback("val_score")], "mode": "min"}

    whole = make_trainer(tmp_path / "whole", **given())
    assert len(whole.run()) == 4 and whole.callbacks[0].rises == 2
    (tmp_path / "parts").mkdir()
    for count in [*stops, None]:
        survivor = started(tmp_path / "parts", **given())
        survivor.run(max_batches=count)
    assert_equal(what_is_left(survivor), what_is_left(whole))
    assert weights_of(survivor.model) == weights_of(whole.model) == best_weights(tmp_path / "whole")


def test_the_state_of_a_trigger_is_the_scores_so_far():
    first, other = NonMonotonicTrigger("score"), NonMonotonicTrigger("score")
    first.scores = [3.0, 2.5]
    restore_state([other], *state_of([first]))
    assert other.scores == first.scores and other.scores is not first.scores


# --- Others ------------------------------------------------------------------------------------


def csv_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_csv_file_has_every_epoch_once(tmp_path):
    def logger(name):
        return keras_callbacks.CSVLogger(tmp_path / name, append=True)

    make_trainer(tmp_path / "whole", callbacks=[logger("whole.csv"), early()]).run()
    for _ in range(4):  # the last one finds that the run was stopped
        (tmp_path / "parts").mkdir(exist_ok=True)
        started(tmp_path / "parts", callbacks=[logger("parts.csv"), early()]).run(max_batches=5)
    rows = csv_rows(tmp_path / "whole.csv")
    assert [row["epoch"] for row in rows] == ["0", "1", "2", "3"]
    assert [float(row["val_score"]) for row in rows] == [0.1, 0.3, 0.2, 0.3]
    assert csv_rows(tmp_path / "parts.csv") == rows
    _, history = read_records(tmp_path / "whole")
    assert [float(row["loss"]) for row in rows] == [row["loss"] for row in history]


def test_callbacks_see_what_those_before_them_wrote(tmp_path):
    """`ReduceLROnPlateau` adds the rate to the logs; the history has it once."""
    seen = []
    later = keras_callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(dict(logs)))
    make_trainer(tmp_path, epochs=1, callbacks=[plateau(), later]).run()
    assert seen[0]["learning_rate"] == pytest.approx(0.05)


class Growing:
    """Epochs of one batch more each."""

    def __init__(self):
        self.batches, self.epoch = make_batches(), 0

    def __len__(self):
        return 1 + self.epoch

    def set_epoch(self, epoch):
        self.epoch = epoch
        self.batches.set_epoch(epoch)

    def __getitem__(self, index):
        return self.batches[index % 3]


def test_epochs_may_differ_in_length(tmp_path):
    """A run that stands late in a long epoch is resumed by a trainer whose first one is short."""

    def growing(directory, **kwargs):
        trained = make_trainer(directory, epochs=3, callbacks=[], **kwargs)
        trained.batches, trained.validate = Growing(), lambda: {"val_score": 0.5}
        return trained

    whole = growing(tmp_path / "whole")
    whole.run()
    growing(tmp_path / "parts").run(max_batches=5)  # 1, 2 and 2 of 3
    rest = growing(tmp_path / "parts", seed=99)
    rest.resume()
    assert (rest.progress.epoch, rest.progress.batch) == (2, 2)
    rest.run()
    assert_equal(what_is_left(rest), what_is_left(whole))
