"""Sentences in batches: what a function gets to see, and where its results end up."""

import numpy as np
import pytest

from keras_onlstm.text.sentences import OFTEN, WORDS, contexts, in_batches
from keras_onlstm.text.vocabulary import Encoder

pytestmark = pytest.mark.keras_free

ENCODER = Encoder(["<eos>", "<unk>", "a", "b"])


def watched(sentences, **kwargs):
    """The results of a function that returns its rows, and the shapes that it was given."""
    shapes = []

    def function(ids, lengths):
        assert ids.dtype == lengths.dtype == np.int32
        shapes.append(ids.shape)
        return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]

    return in_batches(sentences, ENCODER, function, **kwargs), shapes


def test_results_are_in_the_order_of_the_sentences():
    found, shapes = watched(["a b a", "", ["b"], "x a"], batch_size=3)
    assert found == [([0, 2, 3, 2], 3), ([0], 0), ([0, 3], 1), ([0, 1, 2], 2)]
    assert shapes == [(3, 3), (1, 4)]


def test_eos_and_padding():
    found, shapes = watched(["a b a", "", "b"], closed=True, multiple=4)
    assert found == [([0, 2, 3, 2, 0], 3), ([0, 0], 0), ([0, 3, 0], 1)]
    assert shapes == [(3, 8)]


@pytest.mark.parametrize(("count", "time"), [(OFTEN - 1, 8), (OFTEN, 5)])
def test_frequent_length_is_not_padded(count, time):
    found, shapes = watched(["a b b"] * count + ["a", "b " * 9], closed=True, multiple=8)
    assert found[:-2] == [([0, 2, 3, 3, 0], 3)] * count
    assert found[-2:] == [([0, 2, 0], 1), ([0, *[3] * 9, 0], 9)]
    assert {shape[1] for shape in shapes[:-1]} == {time}
    assert shapes[-1][1] == 16


def test_no_sentences():
    assert watched([]) == ([], [])


def test_long_sentences_make_small_batches():
    count = WORDS // 3 + 1  # two of these fit, three do not
    long = "a " * count
    found, shapes = watched([long, "a", long, long, "b", "b a"], batch_size=6)
    assert [words for _, words in found] == [count, 1, count, count, 1, 2]
    assert [row[1:] for row, _ in found[1::3]] == [[2], [3]]
    assert [rows for rows, _ in shapes] == [3, 1, 2]
    assert watched(["a " * (WORDS + 1)])[1] == [(1, WORDS + 2)]


@pytest.mark.parametrize("seed", range(5))
def test_equal_prefixes_share_a_context(seed):
    random = np.random.default_rng(seed)
    ids = np.concatenate([np.zeros((12, 1)), random.integers(1, 3, (12, 6))], 1).astype("int32")
    lengths = random.integers(1, 8, 12).astype("int32")
    found = contexts(ids, lengths)
    assert found["ids"] is ids
    numbers, firsts = found["contexts"], found["firsts"]
    assert numbers.shape == (12, 6)
    beginnings = {
        (row, place): tuple(ids[row, : place + 1])
        for row, length in enumerate(lengths)
        for place in range(length - 1)
    }
    for (row, place), words in beginnings.items():
        first_row, first_place = divmod(int(firsts[numbers[row, place]]), 6)
        assert beginnings[first_row, first_place] == words
    assert max(numbers.flat) + 1 == len(set(beginnings.values()))


@pytest.mark.parametrize(("rows", "share"), [([[1, 2, 3, 4]] * 8, 4), ([[1, 2, 3, 4]] * 2, 2)])
def test_size_of_contexts(rows, share):
    ids = np.array(rows, "int32")
    assert contexts(ids, np.full(len(rows), 4))["firsts"].shape == (len(rows) * 3 // share,)
    different = ids + np.arange(len(rows), dtype="int32")[:, None]
    assert contexts(different, np.full(len(rows), 4))["firsts"].shape == (len(rows) * 3,)
