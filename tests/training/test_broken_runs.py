"""Runs that cannot write, or whose weights become NaN: messages and remaining files."""

import errno
import math
import resource
import shutil

import numpy as np
import pytest
from keras import ops

from helpers.tiny_runs import assert_equal, make_trainer, started, unbroken_run, what_is_left
from keras_onlstm.training import trainer
from keras_onlstm.utils import files


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The results of an uninterrupted run."""
    return unbroken_run(tmp_path_factory.mktemp("unbroken"))[0]


def full(directory, patch):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    return "cannot be written (File too large). Raise the limit"


def read_only(directory, patch):
    def mkdtemp(*args):
        raise OSError(errno.EROFS, "Read-only file system", f"{args[2]}/{args[1]}x{args[0]}")

    patch.setattr(files.tempfile, "mkdtemp", mkdtemp)
    return "cannot be written (Read-only file system). Make its directory writable."


def deleted(directory, patch):
    shutil.rmtree(directory)
    return "cannot be written (No such file or directory). Create its directory first."


# The function that is called before each file is written, and the epoch and batch of that call.
WRITTEN = {
    "best.keras": ("validate", (1, 3)),
    "metrics.csv": ("write_history", (2, 0)),
    "checkpoint.npz": ("save_checkpoint", (1, 1)),
}


@pytest.mark.parametrize("happens", [full, read_only, deleted])
@pytest.mark.parametrize("written", WRITTEN)
def test_run_resumes_after_a_write_error(tmp_path, unbroken, written, happens):
    """Writing fails in the second epoch; then it works again, and the run resumes."""
    directory, limit = tmp_path / "run", resource.getrlimit(resource.RLIMIT_FSIZE)
    trained, said = make_trainer(directory), []
    name, when = WRITTEN[written]
    owner = trained if name == "validate" else trainer
    call = getattr(owner, name)
    with pytest.MonkeyPatch.context() as patch:

        def after(*args):
            if (trained.progress.epoch, trained.progress.batch) == when and not said:
                said.append(happens(directory, patch))
            return call(*args)

        patch.setattr(owner, name, after)
        try:
            with pytest.raises(OSError) as caught:
                trained.run()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    message = str(caught.value)
    assert message.startswith(f"{directory / written}: {said[0]}")
    if happens is not full:
        return  # there is nothing to resume, or it works the same way
    survivor = started(directory)
    survivor.run()
    assert_equal(what_is_left(survivor), unbroken)


def test_nan_loss_ends_the_run(tmp_path):
    """The checkpoint is from before the weights were lost."""
    trained = make_trainer(tmp_path)
    step, count = trained.model.train_on_batch, []

    def broken(*args, **kwargs):
        count.append(1)
        if len(count) == 5:
            trained.model.relation.bias.assign([math.nan] * 3)
        return step(*args, **kwargs)

    trained.model.train_on_batch = broken
    with pytest.raises(ValueError) as caught:
        trained.run()
    start = f"{tmp_path}: the loss of batch 2 of epoch 2 is NaN"
    assert str(caught.value).startswith(start) and "lower learning rate" in str(caught.value)
    survivor = make_trainer(tmp_path, seed=99)
    survivor.resume()
    assert (survivor.progress.epoch, survivor.progress.batch) == (1, 1)
    assert all(np.isfinite(ops.convert_to_numpy(w)).all() for w in survivor.model.weights)
