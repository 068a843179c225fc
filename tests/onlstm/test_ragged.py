"""Ragged tensors are refused in one line that says what to pass instead."""

import keras
import pytest

from keras_onlstm import ONLSTM
from keras_onlstm.models import PRPN, LanguageModel, PairClassifier

pytestmark = pytest.mark.backend("tensorflow")

INSTEAD = r"x\.to_tensor\(\) and mask=tf\.sequence_mask\(x\.row_lengths\(\)\)\."


def ragged(*rows, **options):
    import tensorflow as tf

    return tf.ragged.constant(rows, **options)


def vectors():
    return ragged([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]], ragged_rank=1)


def ids():
    return ragged([1, 2], [3])


def built_layer():
    layer = ONLSTM(4, 2, name="layer")
    layer(vectors().to_tensor())
    return layer


CASES = {
    "a layer": lambda: ONLSTM(4, 2, name="layer")(vectors()),
    "a built layer": lambda: built_layer()(vectors()),
    "by keyword": lambda: built_layer()(sequences=vectors()),
    "a mask": lambda: built_layer()(vectors().to_tensor(), mask=ragged([True, True], [True])),
    "a symbolic input": lambda: ONLSTM(4, 2, name="layer")(keras.Input((None, 2), ragged=True)),
    "a language model": lambda: LanguageModel(9, 8, 8, 1, 2, name="layer")(ids()),
    "a language model of LSTM": lambda: LanguageModel(
        9, 8, 8, 1, 2, recurrent="lstm", name="layer"
    )(ids()),
    "PRPN": lambda: PRPN(9, 6, 8, slots=3, lookback=2, name="layer")(ids()),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_says_what_to_pass(case):
    match = rf"^layer does not support ragged tensors\. In place of a ragged x pass {INSTEAD}$"
    with pytest.raises(ValueError, match=match):
        CASES[case]()


def test_a_pair_classifier_needs_no_mask():
    match = (
        r"^pairs does not support ragged tensors\. In place of a ragged x pass x\.to_tensor\(\)\.$"
    )
    with pytest.raises(ValueError, match=match):
        PairClassifier(9, 3, 6, chunk_size=2, name="pairs")((ids(), ids()))


@pytest.mark.parametrize("wrap", [keras.layers.Bidirectional, lambda x: keras.Sequential([x])])
def test_within_other_layers_keras_adds_to_it(wrap):
    with pytest.raises(ValueError, match=INSTEAD):
        wrap(ONLSTM(4, 2))(vectors())


def test_what_the_error_says_to_pass_gives_the_results_of_each_sequence():
    import numpy as np
    import tensorflow as tf

    x, layer = vectors(), built_layer()
    found = layer(x.to_tensor(), mask=tf.sequence_mask(x.row_lengths()))
    expected = [layer(x[row][None])[0] for row in range(2)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
