"""Words that come more than once: optimizers get the sum of their gradients, on each backend."""

import keras
import numpy as np
import pytest

from helpers.checks import as_array
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.models import PRPN, LanguageModel, PairClassifier, TreeLSTM
from keras_onlstm.training import TreeBatches, TreeLearner, TruncatedModel, Windows
from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive

RATE = 0.01
WORDS = ["<unk>", "<root>", *"abcdefg"]


def reader(model):
    """A model that reads windows of a text of few words."""
    return TruncatedModel(model, 2), Windows(np.arange(40) % 3, 2, 19, variable_bptt=False)[0]


def language_model(**kwargs):
    return reader(LanguageModel(9, embedding_dim=4, units=4, num_layers=1, chunk_size=2, **kwargs))


def prpn(**kwargs):
    return reader(PRPN(9, embedding_dim=4, units=4, slots=3, lookback=1, **kwargs))


def pair_classifier():
    ids = np.array([[3, 3, 4, 3], [4, 3, 3, 3]])
    return PairClassifier(9, 3, 4, 4, chunk_size=2), ((ids, ids), np.array([0, 2]))


def tree_lstm(noise=None, **kwargs):
    model = TreeLSTM(9, 4, 4, vocabulary=WORDS, output_bias=noise is None, **kwargs)
    schedules = [model.schedule_tree(DependencyTree(["a", "b", "a", "a"], [2, 0, 2, 3]))] * 3
    return TreeLearner(model, noise), TreeBatches(model, schedules, 3, noise=noise)[0]


MODELS = {
    "language model": language_model,
    "language model, without dropout": lambda: language_model(word_dropout=0.0),
    "language model, untied": lambda: language_model(tie_weights=False),
    "PRPN": prpn,
    "PRPN, untied": lambda: prpn(tie_weights=False),
    "pair classifier": pair_classifier,
    "TreeLSTM": tree_lstm,
    "LdTreeLSTM": lambda: tree_lstm(left_dependents=True),
    "TreeLSTM, with noise": lambda: tree_lstm(NoiseContrastive([1] * 9, 20)),
}


@pytest.mark.parametrize("name", MODELS)
def test_adam_steps_no_further_than_its_rate(name):
    model, batch = MODELS[name]()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    given = {"loss": loss} if name == "pair classifier" else {}
    eagerly = keras.backend.backend() == "tensorflow"  # elsewhere compiling is faster
    model.compile(keras.optimizers.Adam(RATE), run_eagerly=eagerly, **given)
    if not model.built:
        model(batch[0])
    before = [as_array(weight) for weight in model.trainable_weights]
    model.train_on_batch(*batch)
    steps = [
        np.abs(as_array(weight) - start).max()
        for weight, start in zip(model.trainable_weights, before, strict=True)
    ]
    assert 0.9 * RATE < max(steps) < 1.001 * RATE, steps
