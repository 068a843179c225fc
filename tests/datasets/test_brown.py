"""The Brown corpus in the form of the Penn Treebank's text."""

import pytest

from helpers.corpora import corpora_in
from keras_onlstm.datasets import brown

pytestmark = pytest.mark.keras_free


@pytest.fixture
def corpus(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        return brown.load()


def test_load_has_words_in_the_form_of_the_penn_treebank(corpus):
    # 57,340 sentences, some of which have only punctuation.
    assert len(corpus) == 57_159
    assert 1_000_000 < sum(map(len, corpus)) < 1_050_000
    assert " ".join(corpus[0]) == (
        "the fulton county grand jury said friday an investigation of atlanta 's recent primary "
        "election produced no evidence that any irregularities took place"
    )
    words = {word for sentence in corpus for word in sentence}
    assert not any(character.isdigit() for word in words for character in word)
    assert {"n't", "'s", "N"} <= words and not words & {"don't", ",", ".", "``", "N,N"}


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("Don't", ("do", "n't")),
        ("Jury's", ("jury", "'s")),
        ("1,200.5", ("N",)),
        ("1961", ("N",)),
        ("U.S.", ("u.s.",)),
        ("half-2nd", ("half-Nnd",)),
        ("``", ()),
        (";", ()),
    ],
)
def test_tokens_are_split_and_normalized(token, words):
    assert brown._words(token) == words
