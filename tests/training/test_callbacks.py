"""Callbacks in the trainer: when they are called, and their states in a resumed run."""

import functools
import math
import threading

import keras
import pytest
from keras import callbacks as keras_callbacks

from helpers.tiny_runs import (
    assert_equal,
    best_weights,
    kill,
    make_batches,
    make_trainer,
    started,
    unbroken_run,
    watch_steps,
    weights_of,
    what_is_left,
)
from keras_onlstm.training import AveragedSGD, NonMonotonicTrigger, load_checkpoint, save_checkpoint
from keras_onlstm.training.checkpoint import callback_states, restore_callbacks

STEP = 1 if keras.backend.backend() == "tensorflow" else 3


class Calls(keras_callbacks.Callback):
    """Records the methods that are called, with their arguments except empty logs."""

    def __init__(self):
        super().__init__()
        self.seen = []
        for name in ("train", "epoch", "train_batch", "test"):
            for when in ("begin", "end"):
                setattr(self, f"on_{name}_{when}", functools.partial(self.see, f"{name} {when}"))

    def see(self, name, *given, logs=None):
        self.seen.append((name, *(x for x in (*given, logs) if x is not None and x != {})))


def recorded(trained):
    """The loss and the number of pairs of every batch that a trainer trains on."""
    losses, sizes = [], []
    watch_steps(
        trained,
        lambda x, y: sizes.append(len(y)),
        lambda logs: losses.append((float(logs["loss"]), sizes[-1])),
    )
    return losses


def mean(losses):
    return pytest.approx(sum(x * n for x, n in losses) / sum(n for _, n in losses), abs=1e-6)


def test_callbacks_are_called_in_the_order_of_fit(tmp_path):
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
    """Without an `on_train_batch_end` of its own, so that Keras would call it in a thread."""

    async_safe = True

    def __init__(self):
        super().__init__()
        self.threads = []

    def on_batch_end(self, batch, logs=None):
        self.threads.append(threading.current_thread() is threading.main_thread())


def test_callbacks_run_in_the_training_thread(tmp_path):
    slow = Slow()
    make_trainer(tmp_path, epochs=1, callbacks=[slow]).run()
    assert slow.threads == [True] * 3


def early(**kwargs):
    given = {"mode": "max", "patience": 2, "restore_best_weights": True, **kwargs}
    return keras_callbacks.EarlyStopping("val_score", **given)


def plateau():
    return keras_callbacks.ReduceLROnPlateau("val_score", mode="max", factor=0.5, patience=1)


def files_of(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_early_stopping_persists_after_resume(tmp_path):
    """Scores are 0.1, 0.3, 0.2, 0.3, 0.1: the second is best, and the next two are not better."""
    stopping = early()
    first = make_trainer(tmp_path, callbacks=[stopping])
    assert [row["epoch"] for row in first.run()] == [1, 2, 3, 4]
    assert (stopping.stopped_epoch, stopping.wait, stopping.best) == (3, 2, 0.3)
    assert stopping.best_epoch == 1 and first.progress.stopped and first.model.stop_training
    before = files_of(tmp_path)
    again = make_trainer(tmp_path, seed=99, epochs=50, callbacks=[early()])
    again.resume()
    assert again.progress.stopped and again.progress.epoch == 4
    again.model.train_on_batch = None  # nothing may be trained
    assert len(again.run()) == len(first.run()) == 4
    assert files_of(tmp_path) == before
    assert weights_of(again.model) == weights_of(first.model) == best_weights(tmp_path)


class StopAt(keras_callbacks.Callback):
    """Stops after a number of batches of the run."""

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


def test_callback_can_stop_training_after_a_batch(tmp_path):
    """The epoch is ended with the batches that it has had."""
    trained = make_trainer(tmp_path / "whole", callbacks=[StopAt(5)])
    losses = recorded(trained)
    history = trained.run()
    assert len(losses) == 5 and [row["epoch"] for row in history] == [1, 2]
    assert history[1]["loss"] == mean(losses[3:])
    assert trained.progress.stopped and trained.progress.batch == 0
    # Stopped and resumed on the way, it ends with the same batch.
    make_trainer(tmp_path / "parts", callbacks=[StopAt(5)]).run(max_batches=4)
    rest = started(tmp_path / "parts", callbacks=[StopAt(5)])
    assert (rest.callbacks[0].done, rest.callbacks[0].others) == (4, 0)  # by its `get_state`
    rest.run()
    assert_equal(what_is_left(rest), what_is_left(trained))


def test_terminate_on_nan_ends_the_run(tmp_path):
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


def both():
    """Two that count: the one takes the rate down, the other one stops the run."""
    return [plateau(), early(patience=2)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    found = unbroken_run(tmp_path_factory.mktemp("unbroken"), callbacks=both())
    _, rows = found[0]["records"]
    assert [row["val_score"] for row in rows] == [0.1, 0.3, 0.2, 0.3]
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.05] * 3 + [0.025])
    return found


def test_resume_with_callbacks_matches_uninterrupted_run(tmp_path, unbroken):
    """Counters, and the weights that the callback keeps, are those of the run never killed."""
    expected, events = unbroken
    for at in [*range(0, events - 1, 47 * STEP), events - 3, events - 1]:
        directory = tmp_path / str(at)
        directory.mkdir()
        assert kill(directory, at, callbacks=both())
        survivor = started(directory, callbacks=both())
        survivor.run()
        assert_equal(what_is_left(survivor), expected)
        assert weights_of(survivor.model) == expected["best"]


def test_trainer_continues_after_max_batches(tmp_path, unbroken):
    """With the weights that it trained, not with the best ones that a callback restored."""
    trained = make_trainer(tmp_path, callbacks=both())
    for _ in range(3):
        trained.run(max_batches=4)
    assert_equal(what_is_left(trained), unbroken[0])


def test_run_can_be_prolonged_after_best_weights_were_restored(tmp_path):
    make_trainer(tmp_path / "parts", epochs=3, callbacks=[early(patience=9)]).run()
    longer = started(tmp_path / "parts", callbacks=[early(patience=9)])
    longer.run()
    whole = make_trainer(tmp_path / "whole", callbacks=[early(patience=9)])
    whole.run()
    assert_equal(what_is_left(longer), what_is_left(whole))


def test_checkpoints_of_earlier_versions_load(tmp_path, unbroken):
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


def test_halving_with_rollback_resumes_exactly(tmp_path):
    """Entropies 0.1, 0.3, 0.2, 0.3: the second rises, so the first weights are restored."""

    whole = make_trainer(tmp_path / "whole", "halving", mode="min")
    assert len(whole.run()) == 4 and whole.schedules[0].failed_epochs == 2
    (tmp_path / "parts").mkdir()
    for count in (4, 3, None):
        survivor = started(tmp_path / "parts", schedule="halving", mode="min")
        survivor.run(max_batches=count)
    assert_equal(what_is_left(survivor), what_is_left(whole))
    assert weights_of(survivor.model) == weights_of(whole.model) == best_weights(tmp_path / "whole")


def test_trigger_state_is_its_scores():
    first, other = (NonMonotonicTrigger(AveragedSGD()) for _ in range(2))
    first.scores = [3.0, 2.5]
    restore_callbacks([other], *callback_states([first]))
    assert other.scores == [3.0, 2.5]


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
    """A run stopped late in a long epoch is resumed by a trainer whose first epoch is short."""

    def growing(directory):
        trained = make_trainer(directory, epochs=3, callbacks=[])
        trained.batches, trained.validate = Growing(), lambda: {"val_score": 0.5}
        return trained

    whole, rest = growing(tmp_path / "whole"), growing(tmp_path / "parts")
    whole.run()
    growing(tmp_path / "parts").run(max_batches=5)  # 1, 2 and 2 of 3
    rest.resume()
    assert (rest.progress.epoch, rest.progress.batch) == (2, 2)
    rest.run()
    assert_equal(what_is_left(rest), what_is_left(whole))
