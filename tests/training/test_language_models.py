"""Training of language models: every optimizer and schedule, and resumed runs."""

import json

import numpy as np
import pytest

from helpers.checks import as_array
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig
from keras_onlstm.text.corpus import Corpus
from keras_onlstm.training.language_models import make_model, train_language_model

pytestmark = pytest.mark.backend("tensorflow")  # slow, and independent of the backend

WORDS = ["<eos>", "<unk>", *"abcdef"]
TINY = {"embedding_dim": 6, "units": 8, "num_layers": 1, "batch_size": 4, "bptt": 10, "epochs": 3}


def corpus():
    draw = np.random.default_rng(0).integers
    return Corpus(WORDS, *(draw(0, 8, size).astype("int32") for size in (200, 120, 120)))


def tiny(config=LanguageModelConfig, **values):
    chunks = {"chunk_size": 2} if config is LanguageModelConfig else {"slots": 3, "lookback": 2}
    return config.from_preset("debug", **{**TINY, **chunks, **values})


def left_by(directory):
    with np.load(directory / "checkpoint.npz") as opened:
        arrays = {name: opened[name].tobytes() for name in opened.files}
    del arrays["state.json"]
    rows = json.loads((directory / "metrics.json").read_text())["epochs"]
    return list(arrays.values()), [{**row, "seconds": 0} for row in rows]


# Learning rates of the epochs. The tiny rates of a plateau fall, because nothing improves.
KINDS = [
    ("sgd", "plateau", [1e-30, 1e-30, 0.25e-30]),
    ("asgd", "constant", None),
    ("adam", "cosine", None),
    ("adamw", "constant", None),
    ("adam_l2", "plateau", [1e-30, 1e-30, 0.25e-30]),
]


@pytest.mark.parametrize(("optimizer", "schedule", "rates"), KINDS)
def test_resume_matches_uninterrupted_run(tmp_path, optimizer, schedule, rates):
    """Stopped within epochs and resumed."""
    decay = 0.0 if optimizer == "adam" else 1e-3
    rate = 1e-30 if rates else 0.1
    config = tiny(
        optimizer=optimizer, schedule=schedule, learning_rate=rate, weight_decay=decay, seed=5
    )
    data = corpus()
    assert train_language_model(tmp_path / "whole", config, data)
    assert not train_language_model(tmp_path / "broken", config, data, steps=3)
    assert not train_language_model(tmp_path / "broken", config, data, True, steps=5)
    assert train_language_model(tmp_path / "broken", config, data, True)
    whole, broken = left_by(tmp_path / "whole"), left_by(tmp_path / "broken")
    assert whole == broken
    if rates:
        assert [row["learning_rate"] for row in whole[1]] == pytest.approx(rates)


def test_resume_rejects_another_vocabulary(tmp_path):
    config, data = tiny(), corpus()
    train_language_model(tmp_path / "run", config, data, steps=1)
    other = data._replace(vocabulary=[*WORDS[:-1], "z"])
    with pytest.raises(ValueError, match="is not the vocabulary of"):
        train_language_model(tmp_path / "run", config, other, True)


@pytest.mark.parametrize("config", [LanguageModelConfig, PRPNConfig])
def test_run_starts_with_weights_of_another_model(tmp_path, config):
    values = tiny(config, epochs=1, learning_rate=0.0, optimizer="adam", weight_decay=0.0)
    initial = make_model(tiny(config, seed=9), WORDS)
    initial.build()
    train_language_model(tmp_path / "run", values, corpus(), initial=initial)
    found = load_trained(tmp_path / "run", "language_model")
    for variable, trained in zip(
        initial.trainable_variables, found.trainable_variables, strict=True
    ):
        assert (as_array(variable) == as_array(trained)).all(), variable.path
    smaller = make_model(tiny(config, embedding_dim=4), WORDS)
    with pytest.raises(ValueError, match="The initial model has embedding_dim 4, not 6"):
        train_language_model(tmp_path / "other", values, corpus(), initial=smaller)
