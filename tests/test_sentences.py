"""Sentences in batches: what a function gets to see, and where its results end up."""

import numpy as np
import pytest

from keras_onlstm.sentences import OFTEN, Encoder, read

pytestmark = pytest.mark.keras_free

ENCODER = Encoder(["<eos>", "<unk>", "a", "b"])


def watched(sentences, **kwargs):
    """The results of a function that returns its rows, and the shapes that it was given."""
    shapes = []

    def function(ids, lengths):
        assert ids.dtype == lengths.dtype == np.int32
        shapes.append(ids.shape)
        return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]

    return read(sentences, ENCODER, function, **kwargs), shapes


def test_results_are_in_the_order_of_the_sentences():
    found, shapes = watched(["a b a", "", ["b"], "x a"], batch_size=3)
    assert found == [([0, 2, 3, 2], 3), ([0], 0), ([0, 3], 1), ([0, 1, 2], 2)]
    assert shapes == [(3, 3), (1, 4)]


def test_closed_and_padded_to_few_lengths():
    found, shapes = watched(["a b a", "", "b"], closed=True, multiple=4)
    assert found == [([0, 2, 3, 2, 0], 3), ([0, 0], 0), ([0, 3, 0], 1)]
    assert shapes == [(3, 8)]


@pytest.mark.parametrize(("count", "time"), [(OFTEN - 1, 8), (OFTEN, 5)])
def test_a_length_that_many_have_is_not_padded(count, time):
    found, shapes = watched(["a b b"] * count + ["a", "b " * 9], closed=True, multiple=8)
    assert found[:-2] == [([0, 2, 3, 3, 0], 3)] * count
    assert found[-2:] == [([0, 2, 0], 1), ([0, *[3] * 9, 0], 9)]
    assert {shape[1] for shape in shapes[:-1]} == {time}
    assert shapes[-1][1] == 16


def test_nothing_to_read():
    assert watched([]) == ([], [])
