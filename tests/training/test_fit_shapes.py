"""`fit` and `evaluate` read later batches of other shapes than the first two.

On TensorFlow, Keras takes the sizes that vary from the first two: see `utils.keras_private`.
"""

import keras
import numpy as np
import pytest

from helpers.checks import NO_DROPOUT, as_array, assert_close
from keras_onlstm.dependencies import DependencyTree, chain
from keras_onlstm.models import LanguageModel, PairClassifier, TreeLSTM
from keras_onlstm.training import (
    PairBatches,
    SentenceBatches,
    TreeBatches,
    TreeLearner,
    TruncatedModel,
    Windows,
)

CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def made_pairs(lengths, **options):
    """A classifier, and batches of one pair each."""
    left, right = ([[1 + i % 7] * pair[side] for i, pair in enumerate(lengths)] for side in (0, 1))
    batches = PairBatches(left, right, [i % 3 for i in range(len(lengths))], 1, **options)
    keras.utils.set_random_seed(1)
    model = PairClassifier(9, 3, 6, chunk_size=2, seed=1)
    model.compile(keras.optimizers.SGD(0.5), CROSS_ENTROPY)
    return model, batches


def made_text(lengths):
    rng = np.random.default_rng(2)
    return np.concatenate([np.append(rng.integers(1, 9, length), 0) for length in lengths])


def made_reader(batch_size, carry):
    reader = TruncatedModel(
        LanguageModel(9, 8, 8, 1, 2, seed=1, **NO_DROPOUT), batch_size, carry=carry
    )
    reader.compile(keras.optimizers.SGD(0.5))
    return reader


def made_sentences(**options):
    batches = SentenceBatches(made_text([2] * 9 + [12, 20]), 0, 4, **options)
    return made_reader(4, carry=False), batches


def made_windows(**options):
    """Windows of an epoch that begins with two of the same width."""
    for seed in range(100):
        windows = Windows(made_text([9] * 12), 2, window=12, seed=seed, **options)
        shapes = [batch[1].shape for batch in windows]
        if shapes[0] == shapes[1] and len(set(shapes)) > 1:
            return made_reader(2, carry=True), windows
    raise AssertionError("no seed gives two windows of the same width")


def balanced_tree(size):
    """The tree of binary search: wider than the grid of trees that are chains."""
    heads = [0] * size

    def attach(first, last, head):
        if first <= last:
            middle = (first + last) // 2
            heads[middle - 1] = head
            attach(first, middle - 1, middle)
            attach(middle + 1, last, middle)

    attach(1, size, 0)
    return DependencyTree(["a"] * size, heads)


def made_trees(**options):
    words = ["<unk>", "<root>", "a"]
    model = TreeLSTM(3, 4, 6, vocabulary=words, left_dependents=True, seed=1)
    trees = [chain(["a"] * 2)] * 6 + [chain(["a"] * 3), balanced_tree(31)]
    learner = TreeLearner(model)
    learner.compile(keras.optimizers.SGD(0.5))
    return learner, TreeBatches(model, list(map(model.schedule_tree, trees)), 1, **options)


MAKERS = {
    "sentences": made_sentences,
    "windows": made_windows,
    "pairs": lambda **options: made_pairs([(1, 1)] * 3 + [(2, 1), (2, 4), (3, 3)], **options),
    "trees": made_trees,
}


def shapes(batch):
    return [array.shape[1:] for array in keras.tree.flatten(batch)]


def read(batches, step):
    """The results of a function of every batch, in the order of the epoch."""
    return [step(*batches[index]) for index in range(len(batches))]


@pytest.fixture(params=MAKERS)
def make(request):
    def made(**options):
        model, batches = MAKERS[request.param](**options)
        assert shapes(batches[0]) == shapes(batches[1])
        assert any(shapes(batches[0]) != shapes(batches[i]) for i in range(2, len(batches)))
        return model, batches

    return made


def test_fit_matches_train_on_batch(make):
    model, batches = make()
    model.fit(batches, epochs=2, shuffle=False, verbose=0)
    expected, again = make()
    for _ in range(2):
        again.on_epoch_end()  # Keras calls it before the first epoch too
        read(again, expected.train_on_batch)
    for found, value in zip(model.trainable_variables, expected.trainable_variables, strict=True):
        assert_close(as_array(found), as_array(value), 1e-5, value.path)


def test_evaluate_averages_over_all_batches(make):
    model, batches = make(workers=2)
    expected, again = make()
    again.on_epoch_end()
    losses = read(again, lambda *batch: expected.test_on_batch(*batch, return_dict=True)["loss"])
    rows = read(again, lambda *batch: len(keras.tree.flatten(batch[0])[0]))
    found = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
    assert_close(found, np.average([float(loss) for loss in losses], weights=rows), 1e-5, "loss")


def test_fit_supports_class_weights():
    lengths = [(1, 1), (1, 1), (4, 2), (3, 1)]
    model, batches = made_pairs(lengths)
    weights = {0: 1.0, 1: 3.0, 2: 0.25}
    model.fit(batches, shuffle=False, verbose=0, class_weight=weights)
    expected, again = made_pairs(lengths)
    read(again, lambda *batch: expected.train_on_batch(*batch, class_weight=weights))
    for found, value in zip(model.trainable_variables, expected.trainable_variables, strict=True):
        assert_close(as_array(found), as_array(value), 1e-6, value.path)
