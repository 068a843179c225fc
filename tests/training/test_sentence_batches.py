"""SentenceBatches: each sentence once per epoch, read from the initial states."""

import numpy as np
import pytest

from helpers.checks import NO_DROPOUT, as_array, assert_close
from keras_onlstm.models import PRPN, LanguageModel
from keras_onlstm.text.corpus import encode
from keras_onlstm.text.sentences import split, with_sentences, without_sentences
from keras_onlstm.training import SentenceBatches, TruncatedModel, evaluate_windows

WORDS = ["<eos>", "<unk>", *"abcdefg"]


def text(count=50, longest=20, seed=0):
    """Ids of sentences, `<eos>` after each."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(1, len(WORDS), rng.integers(1, longest + 1)) for _ in range(count)]
    return np.concatenate([np.append(sentence, 0) for sentence in drawn])


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_epoch_contains_every_sentence_once(shuffle, epoch):
    ids = text()
    batches = SentenceBatches(ids, 0, 8, shuffle, seed=5, multiple=3, width=4)
    batches.set_epoch(epoch)
    found = []
    for inputs, targets, weights in batches:
        rows, width = inputs["ids"].shape
        assert rows == 9 and width % 4 == 0
        np.testing.assert_array_equal(weights, inputs["mask"])
        for words, after, mask in zip(inputs["ids"], targets, inputs["mask"], strict=True):
            length = mask.sum()
            assert mask[:length].all() and not words[length:].any() and not after[length:].any()
            if length:
                assert words[0] == 0 and after[length - 1] == 0
                np.testing.assert_array_equal(words[1:length], after[: length - 1])
                found.append(tuple(after[: length - 1].tolist()))
    expected = [tuple(sentence.tolist()) for sentence in split(ids, 0)]
    assert sorted(found) == sorted(expected) and len(found) == 50


def test_padding_is_small_and_order_depends_on_seed_and_epoch():
    ids = text(400)
    orders = []
    for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0)):
        batches = SentenceBatches(ids, 0, 8, True, seed)
        batches.set_epoch(epoch)
        orders.append([inputs["ids"].tolist() for inputs, _, _ in batches])
        padding = 1 - np.mean([mask.mean() for _, _, mask in batches])
        assert padding < 0.3  # three widths for lengths to 21
    assert orders[0] == orders[1] != orders[2] != orders[3] != orders[0]
    other = SentenceBatches(ids, 0, 8, True, 1)
    other.on_epoch_end()
    assert [inputs["ids"].tolist() for inputs, _, _ in other] == orders[2]


def test_blank_lines_are_not_sentences(tmp_path):
    (tmp_path / "train.txt").write_text(" \n = a = \n \n\n b c \n d \n \n")
    ids = encode(tmp_path / "train.txt", WORDS)
    assert len(ids) == 13
    sentences = [[1, 2, 1], [3, 4], [5]]
    assert [sentence.tolist() for sentence in split(ids, 0)] == sentences
    inputs, targets, _ = SentenceBatches(ids, 0, 3, width=1)[0]
    assert sorted(map(len, sentences)) == sorted(inputs["mask"].sum(1) - 1)
    assert sorted(row[row > 0].tolist() for row in targets) == sorted(sentences)


def test_adding_and_removing_sentences():
    ids = np.array([2, 3, 0, 5, 0, 0, 2, 4, 0])
    assert [part.tolist() for part in split(np.array([0, 0, 2]), 0)] == [[2]]
    assert without_sentences(ids, 0, [[2, 3], [9]]).tolist() == [5, 0, 2, 4, 0]
    assert without_sentences(ids, 0, [[2, 6]], ignored={3, 4, 6}).tolist() == [5, 0]
    assert with_sentences(ids, 0, [[2, 3], [9]]).tolist() == [2, 3, 0, 5, 0, 2, 4, 0, 9, 0]
    with pytest.raises(ValueError, match="The training text is empty without the sentences"):
        without_sentences(ids, 0, [[2, 3], [2, 4], [5]])
    with pytest.raises(ValueError, match="the text contains no sentence"):
        SentenceBatches(np.zeros(3, "int32"), 0, 2)


@pytest.mark.parametrize("kind", ["language_model", "prpn"])
def test_loss_matches_sentences_scored_separately(kind):
    """Independent of the padding and of earlier batches."""
    if kind == "prpn":
        model = PRPN(len(WORDS), 6, 8, slots=3, lookback=2, vocabulary=WORDS, seed=1)
    else:
        model = LanguageModel(len(WORDS), 6, 8, 1, 2, vocabulary=WORDS, seed=1, **NO_DROPOUT)
    model.build()
    for variable in model.trainable_variables:
        variable.assign(3.0 * as_array(variable))  # so that states matter
    ids = text(21, 12)
    reader = TruncatedModel(model, 8, carry=False)
    reader.compile()
    assert not [v for v in reader.non_trainable_variables if "h_0" in v.path]
    sentences = [[WORDS[i] for i in part] for part in split(ids, 0)]
    expected = -np.concatenate(model.score(sentences)).mean()
    for time in ("first", "second"):
        found = evaluate_windows(reader, SentenceBatches(ids, 0, 8))
        assert_close(found, expected, 1e-5, f"{time} time")


def test_rows_of_processes_form_the_whole_batch():
    lengths = np.random.default_rng(3).integers(1, 9, 40)
    ids = np.concatenate([[*range(1, length + 1), 0] for length in lengths])
    whole = SentenceBatches(ids, 0, 7, True, multiple=4)
    shares = [SentenceBatches(ids, 0, 7, True, multiple=4, process=(k, 2)) for k in range(2)]
    for index in range(len(whole)):
        (inputs, *others), parts = whole[index], [share[index] for share in shares]
        for name, array in inputs.items():
            assert (np.concatenate([part[0][name] for part in parts]) == array).all(), name
        for place, array in enumerate(others, 1):
            assert (np.concatenate([part[place] for part in parts]) == array).all()
        assert [share.samples(index) for share in shares] == [others[1].sum()] * 2
