"""The bits of a training step depend on the batch and the variables, not on the batches before."""

import shutil

import keras
import numpy as np

from helpers.tiny_runs import PairModel, bits
from keras_onlstm.training import PairBatches, Trainer, trainer

COUNT = 5  # batches, one of them short


def make_trainer(directory):
    """Batches of 7 and a short one of 5, of many widths: dividing by these is not exact."""
    keras.utils.set_random_seed(0)
    draw = np.random.default_rng(0).integers
    left, right = ([draw(1, 10, n).tolist() for n in draw(1, 9, 33)] for _ in range(2))
    batches = PairBatches(left, right, draw(0, 3, 33), 7, multiple=2, shuffle=True)
    model = PairModel()
    model.compile(
        keras.optimizers.Adam(0.01, global_clipnorm=0.1),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model(batches[0][0])
    model.optimizer.build(model.trainable_variables)
    arguments = {"monitor": "val", "checkpoint_seconds": -1, "verbose": False}
    return Trainer(model, batches, lambda: {"val": 0.0}, directory, 1, **arguments)


def differing(tmp_path, monkeypatch):
    """The batches of an epoch before which a restored run continues with other bits."""
    whole, after = make_trainer(tmp_path / "whole"), []
    save = trainer.save_checkpoint

    def kept(path, model, state, *arrays):
        save(path, model, state, *arrays)
        if len(after) <= COUNT:
            shutil.copytree(path.parent, tmp_path / str(len(after)))
            after.append(bits(model))

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "save_checkpoint", kept)
        whole.run(max_batches=COUNT)
    assert len({len(whole.batches[index][1]) for index in range(COUNT)}) == 2
    different = []
    for place in range(COUNT):
        restored = make_trainer(tmp_path / str(place))
        restored.resume()
        assert restored.progress.batch == place and bits(restored.model) == after[place]
        restored.run(max_batches=1)
        if bits(restored.model) != after[place + 1]:
            different.append(place)
    return different


def test_step_bits_do_not_depend_on_earlier_batches(tmp_path, monkeypatch):
    assert differing(tmp_path, monkeypatch) == []
