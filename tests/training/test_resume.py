"""Killed anywhere and resumed, a run ends with the bits of one that never stopped."""

import math

import keras
import pytest
from keras import ops

from helpers.tiny_runs import (
    EPOCHS,
    SCORES,
    Killed,
    assert_equal,
    bits,
    kill,
    make_batches,
    make_trainer,
    started,
    unbroken_run,
    what_is_left,
)
from keras_onlstm.training import PairBatches, load_checkpoint, trainer


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The results of an uninterrupted run and its number of events, for each schedule."""
    return {
        schedule: unbroken_run(tmp_path_factory.mktemp(schedule), schedule=schedule)
        for schedule in ("plateau", "cosine")
    }


STEP = 1 if keras.backend.backend() == "tensorflow" else 2


@pytest.mark.parametrize(("schedule", "first", "step"), [("plateau", 11, 29), ("cosine", 7, 61)])
def test_resume_after_kill_matches_uninterrupted_run(tmp_path, unbroken, schedule, first, step):
    expected, events = unbroken[schedule]
    for at in [*range(5), *range(first, events - 1, step * STEP), events - 1]:
        directory = tmp_path / str(at)
        directory.mkdir()
        assert kill(directory, at, schedule=schedule)
        survivor = started(directory, schedule=schedule)
        survivor.run()
        assert_equal(what_is_left(survivor), expected)
        assert not [path for path in directory.iterdir() if path.name.startswith(".")]


def test_resume_after_repeated_kills(tmp_path, unbroken):
    expected, _ = unbroken["plateau"]
    kills = 0
    while kill(tmp_path, 31):
        kills += 1
    assert kills >= 3
    assert_equal(what_is_left(started(tmp_path)), expected)


def test_checkpoint_interval_does_not_change_results(tmp_path, unbroken):
    trained = make_trainer(tmp_path, checkpoint_seconds=1000)
    with pytest.MonkeyPatch.context() as patch:
        written = []
        save = trainer.save_checkpoint
        patch.setattr(trainer, "save_checkpoint", lambda *a: (written.append(a), save(*a)))
        trained.run()
    assert len(written) == 1 + EPOCHS  # at the start and after every epoch
    assert_equal(what_is_left(trained), unbroken["plateau"][0])


def test_uninterrupted_run_has_expected_history(tmp_path, unbroken):
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


@pytest.mark.parametrize("stops", [[3, 1], [4, 4, 4], [15]])
def test_resume_after_max_batches_matches_uninterrupted_run(tmp_path, unbroken, stops):
    for count in stops:
        trained = started(tmp_path)
        before = int(ops.convert_to_numpy(trained.model.optimizer.iterations))
        trained.run(max_batches=count)
        assert int(ops.convert_to_numpy(trained.model.optimizer.iterations)) == before + count
    survivor = started(tmp_path)
    survivor.run()
    assert_equal(what_is_left(survivor), unbroken["plateau"][0])


def assert_resume_refused(refused, error, match):
    before, progress = bits(refused.model), refused.progress
    with pytest.raises(error, match=match) as caught:
        refused.resume()
    assert str(caught.value).startswith(str(refused.directory / "checkpoint.npz"))
    assert bits(refused.model) == before and refused.progress is progress


def test_resume_rejects_another_run(tmp_path):
    make_trainer(tmp_path, epochs=1).run()
    refused = make_trainer(tmp_path, seed=99)
    refused.schedules = []
    assert_resume_refused(
        refused, ValueError, "1 callbacks.*has 0 callbacks.*Resume with the arguments"
    )
    refused = make_trainer(tmp_path, schedule="cosine", seed=99)
    assert_resume_refused(refused, ValueError, "another model")  # no learning rate to restore


def test_resume_rejects_less_data(tmp_path):
    trained = make_trainer(tmp_path, epochs=1)
    trained.run()
    trained.progress.batch = 3
    trained._save()
    refused = make_trainer(tmp_path, seed=99)
    refused.batches = PairBatches([[1]], [[2]], [0], batch_size=4)
    assert_resume_refused(refused, ValueError, "batch 3.*1 batches")


@pytest.mark.parametrize("state", [None, {"epoch": 1}, "text"])
def test_resume_rejects_other_checkpoints(tmp_path, state):
    saved = make_trainer(tmp_path)
    files_of_saved = tmp_path / "checkpoint.npz"
    trainer.save_checkpoint(files_of_saved, saved.model, state)
    assert_resume_refused(make_trainer(tmp_path, seed=99), ValueError, "not a checkpoint of a Tr")
    assert load_checkpoint(files_of_saved, saved.model) == state


def test_seconds_accumulate_after_resume(tmp_path, monkeypatch):
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
