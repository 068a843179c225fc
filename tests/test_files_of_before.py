"""Files written by the package as it was before its modules moved to where they are now."""

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from helpers.checks import assert_close
from keras_onlstm.loading import load_model
from keras_onlstm.models import LanguageModel
from keras_onlstm.training import (
    ResetStates,
    Trainer,
    TruncatedModel,
    Windows,
    evaluate_windows,
)

DATA = Path(__file__).parent / "data"
SENTENCES = ["a b c d", "e f g", "h i j a b"]


@pytest.fixture(scope="module")
def expected():
    with np.load(DATA / "before_wings_expected.npz") as file:
        return dict(file)


# Of the weights, the second file has 8 bits.
@pytest.mark.parametrize(("kind", "tolerance"), [("keras", 2e-6), ("npz", 2e-3)])
def test_models(kind, tolerance, expected):
    model, about = load_model(DATA / f"before_wings.{kind}")
    assert isinstance(model, LanguageModel)
    assert about == (None if kind == "keras" else {"seed": 5})
    assert len(model.vocabulary) == 12
    for index, found in enumerate(model.distances(SENTENCES)):
        assert_close(found, expected[f"distances{index}"], tolerance, f"distances {index}")
    for index, found in enumerate(model.score(SENTENCES)):
        assert_close(found, expected[f"scores{index}"], tolerance, f"scores {index}")


@pytest.mark.keras_free
def test_an_exported_parser(expected):
    model, _ = load_model(DATA / "before_wings.onnx")
    for index, found in enumerate(model.distances(SENTENCES)):
        assert_close(found, expected[f"distances{index}"], 2e-6, f"distances {index}")


@pytest.mark.backend("tensorflow")  # random numbers are the backend's
def test_a_checkpoint_in_mid_epoch(tmp_path, expected):
    """Resuming gives the weights that the earlier version reached, on one machine bit by bit."""
    shutil.copy(DATA / "before_wings_checkpoint.npz", tmp_path / "checkpoint.npz")
    keras.utils.set_random_seed(5)
    model = LanguageModel(
        12, 4, 8, num_layers=2, chunk_size=2, seed=5,
        vocabulary=["<eos>", "<unk>", *"abcdefghij"],
        word_dropout=0.1, hidden_dropout=0.2, recurrent_weight_dropout=0.2,
    )  # fmt: skip
    reader = TruncatedModel(model, 3, 2.0, 1.0)
    reader.compile(keras.optimizers.Adam(0.01, global_clipnorm=1.0))
    reader.optimizer.build(reader.trainable_variables)
    ids = np.random.default_rng(6).integers(0, 12, 600).astype("int32")
    valid = Windows(ids[:200], 3, 10, variable_bptt=False)
    trainer = Trainer(
        reader,
        Windows(ids, 3, 10, seed=7),
        lambda: {"val_loss": evaluate_windows(reader, valid)},
        tmp_path,
        epochs=2,
        monitor="val_loss",
        mode="min",
        callbacks=[ResetStates(), keras.callbacks.ReduceLROnPlateau("val_loss")],
        best_model=model,
        verbose=False,
    )
    trainer.resume()
    assert (trainer.progress.epoch, trainer.progress.batch) == (1, 12)
    trainer.run()
    for index, variable in enumerate(reader.variables):
        found = keras.ops.convert_to_numpy(variable)
        assert_close(found, expected[f"variable{index}"], 1e-5, f"variable {index}")
