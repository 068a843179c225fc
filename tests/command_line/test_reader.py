"""How `keras-onlstm score` and `generate` prepare text: as `Parser` does."""

from pathlib import Path

import pytest

from keras_onlstm.datasets.treebank import known_form
from keras_onlstm.parser import Parser
from keras_onlstm.reader import Reader

pytestmark = pytest.mark.keras_free

SPECIAL = {"<eos>", "<unk>"}
LOWER = {"the", "cat", "did", "n't", "run", "N", "u.s.", "cost", "N.N"}


def reader(*words, characters=False):
    return Reader(Path("model.npz"), None, characters, frozenset(SPECIAL.union(*words)))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the cat", "the cat"),
        ("The CAT didn't run.", "the cat did n't run"),
        ("The cat didn\u2019t run\u2026", "the cat did n't run"),
        ('"The cat," 12 3.50 \U0001f600', "the cat N N.N"),
        ("the cat \u2014 a zebra", "the cat a zebra"),
        ("the cat did n't run N <unk>", "the cat did n't run N <unk>"),  # text of a corpus
        ("The U.S. cat", "the u.s. cat"),
        ("The cat ran in the U.S.", "the cat ran in the u.s"),
        ("The cat. The cat!", "the cat the cat"),
        (" ... ", ""),
        (" \t", ""),
    ],
)
def test_tokens_match_the_parser(text, tokens):
    text_reader = reader(LOWER)
    assert text_reader.tokens(text) == tokens.split()
    if "<unk>" not in text:
        parser = [known_form(word, text_reader.vocabulary) for word in Parser.load().tokenize(text)]
        assert text_reader.tokens(text) == parser


@pytest.mark.parametrize(
    ("more", "text", "tokens"),
    [
        ({"The"}, "The CAT, the cat.", "The cat the cat"),  # upper case
        ({"12", "Mr."}, "Mr. 12 13", "Mr. 12 N"),  # digits
        ({",", "."}, "The cat, the zebra.", "the cat , the zebra ."),  # punctuation
        ({"end.", "did,"}, "the cat did, end.", "the cat did, end."),  # text split at blanks
    ],
)
def test_tokens_follow_the_vocabulary(more, text, tokens):
    assert reader(LOWER, more).tokens(text) == tokens.split()


def test_characters():
    text_reader = reader("abN_", characters=True)
    assert text_reader.tokens("a bA7.") == ["a", "_", "b", "a", "N", "."]
    assert text_reader.unknown(text_reader.tokens("a b.")) == ["."]


def test_unknown_words():
    text_reader = reader(LOWER)
    assert text_reader.unknown(text_reader.tokens("The cat Xqzzt, the <unk>")) == ["xqzzt", "unk"]
    assert text_reader.unknown(text_reader.tokens("the <unk> cat")) == ["<unk>"]


@pytest.mark.parametrize("text", ["a\x07b", "the\x00cat"])
def test_control_characters_raise(text):
    with pytest.raises(ValueError, match=r"sentence 3: holds .* as character"):
        reader(LOWER).tokens(text, 3)
