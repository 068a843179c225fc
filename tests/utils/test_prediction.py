"""Predictions of batches of many sizes: TensorFlow traces a model once and warns of nothing."""

import keras
import numpy as np
import pytest

from helpers.checks import assert_close
from keras_onlstm.dependencies import DependencyTree, random_tree
from keras_onlstm.models import LanguageModel, TreeGenerator, TreeLSTM
from keras_onlstm.utils.keras_private import predictor

pytestmark = pytest.mark.backend("tensorflow")

WORDS = ["<eos>", "<unk>", "<root>", "a", "b", "c"]
TREES = [random_tree(list("abc" * 15)[:count], count) for count in (1, 2, 5, 9, 20, 35)]


class Sums(keras.Model):
    """Sums over the last axis."""

    def call(self, batch):
        return keras.ops.sum(batch["x"], -1)


@pytest.fixture
def warnings_of_tensorflow(monkeypatch, caplog):
    """A function that returns what TensorFlow logged so far.

    TensorFlow counts the traces of a process, and stops after two warnings: the count starts anew.
    """
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    detector = polymorphic_function._FrequentTracingDetectorManager()
    monkeypatch.setattr(polymorphic_function, "_frequent_tracing_detector_manager", detector)
    logger = tf.get_logger()
    logger.addHandler(caplog.handler)
    yield lambda: [record.getMessage() for record in caplog.records if record.name == logger.name]
    logger.removeHandler(caplog.handler)


@pytest.mark.parametrize(("axes", "traces"), [(1, 2), (2, 1)])
def test_a_model_is_traced_once_for_all_sizes_of_the_first_axes(axes, traces):
    model = Sums()
    predict = predictor(model, axes)
    for rows, columns in ((1, 2), (3, 2), (4, 5), (1, 2), (7, 5)):
        x = np.random.default_rng(rows).normal(size=(rows, columns)).astype("float32")
        assert_close(predict({"x": x}), x.sum(-1), 1e-6, f"{rows} rows")
    assert model.predict_function.experimental_get_tracing_count() == traces


def test_language_models_read_without_a_warning(warnings_of_tensorflow):
    sentences = [list("abc" * 15)[:count] for count in (1, 7, 12, 18, 25, 40)]
    for seed in range(3):
        model = LanguageModel(
            6, embedding_dim=4, units=4, num_layers=2, chunk_size=2, vocabulary=WORDS, seed=seed
        )
        for sentence in sentences:
            model.score([sentence])
            model.distances([sentence])
        model.score(sentences)
        model.distances(sentences)
    assert warnings_of_tensorflow() == []


@pytest.mark.parametrize("left_dependents", [False, True])
def test_tree_models_read_and_generate_without_a_warning(left_dependents, warnings_of_tensorflow):
    model = TreeLSTM(
        6, embedding_dim=3, units=4, left_dependents=left_dependents, vocabulary=WORDS, seed=0
    )
    wide = DependencyTree(["a"] * 60, [0, *[1] * 59])  # more dependents than a step has rows
    for trees in (TREES[:1], TREES, [wide], TREES[3:]):
        model.score(trees)
        model.states(trees)
    generator = TreeGenerator.train(model, TREES, validation=TREES[:3], epochs=2, units=3)
    for count in (1, 3, 4):
        generator.sample(count, max_words=6, additions="drawn")
    generator.accuracies(TREES)
    generator.log_probability(TREES)
    assert warnings_of_tensorflow() == []
