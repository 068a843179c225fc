"""Files that were written by an earlier version of the package can still be read."""

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from helpers.checks import assert_close
from keras_onlstm.loading import load_model
from keras_onlstm.models import LanguageModel
from keras_onlstm.training import ResetStates, Trainer, TruncatedModel, Windows, evaluate_windows

DATA = Path(__file__).parent / "data"
SENTENCES = ["a b c d", "e f g", "h i j a b"]


@pytest.fixture(scope="module")
def expected():
    with np.load(DATA / "before_wings_expected.npz") as file:
        return dict(file)


# The weights in the second file have 8 bits.
@pytest.mark.parametrize(("kind", "tolerance"), [("keras", 2e-6), ("npz", 2e-3)])
def test_loads_models(kind, tolerance, expected):
    model, metadata = load_model(DATA / f"before_wings.{kind}")
    assert isinstance(model, LanguageModel)
    assert metadata == (None if kind == "keras" else {"seed": 5})
    assert len(model.vocabulary) == 12
    for index, distances in enumerate(model.distances(SENTENCES)):
        assert_close(distances, expected[f"distances{index}"], tolerance, f"distances {index}")
    for index, scores in enumerate(model.score(SENTENCES)):
        assert_close(scores, expected[f"scores{index}"], tolerance, f"scores {index}")


@pytest.mark.keras_free
def test_loads_exported_parser(expected):
    model, _ = load_model(DATA / "before_wings.onnx")
    for index, distances in enumerate(model.distances(SENTENCES)):
        assert_close(distances, expected[f"distances{index}"], 2e-6, f"distances {index}")


@pytest.mark.backend("tensorflow")  # random numbers depend on the backend
def test_resumes_checkpoint_to_same_weights(tmp_path, expected):
    """The checkpoint is in the middle of an epoch. On the same machine the weights are equal."""
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
        value = keras.ops.convert_to_numpy(variable)
        assert_close(value, expected[f"variable{index}"], 1e-5, f"variable {index}")
