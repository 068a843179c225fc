"""Sentences and tokens of raw text: the table of the documentation and positions of tokens."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import TreebankWordTokenizer

from keras_onlstm.text.tokens import split

pytestmark = pytest.mark.keras_free

PAGE = Path(__file__).parents[2] / "docs" / "parsing.md"
ROWS = re.findall(r"^\| [^|`]+ \| `` (.+?) `` \| `` (.+?) `` \|$", PAGE.read_text("utf-8"), re.M)


def test_documentation_has_table():
    assert len(ROWS) >= 14


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_tokens_match_table_of_documentation(text, expected):
    found = " / ".join(
        " ".join(token.text for token in tokens if token.is_word) for tokens in split(text)
    )
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        st.sampled_from("aB1 .,?!'\"\u2019\u201c`()-:/@\u2026\u2014\U0001f600\ufe0f\u200d\n"),
        max_size=40,
    )
)
def test_positions_match_tokens(text):
    done = 0
    for token in (token for tokens in split(text) for token in tokens):
        assert token.text == text[token.start : token.end] and token.start >= done
        assert token.text and not text[done : token.start].strip()
        done = token.end
    assert not text[done:].strip()


@pytest.mark.parametrize(
    "text",
    [
        "The cat saw a dog",
        "Mr. Smith didn't pay $3.5 million (75.3%) to J.P. Morgan & Co. on Sept. 5, at 5 p.m.",
        '"I can\'t," said the vice-president -- "or won\'t."',
        "U.S. trade officials said No. 5 isn't gonna sell",
        '"Is that all?" he asked',
    ],
)
def test_plain_sentences_match_nltk_tokenizer(text):
    (tokens,) = split(text)
    expected = TreebankWordTokenizer().tokenize(text)
    words = [word for word in expected if any(map(str.isalnum, word))]
    assert [token.text for token in tokens if token.is_word] == words


def test_sentence_boundaries():
    text = "He left the U.S. It rained. \U0001f600 W.R. Grace stayed"
    ends = [tokens[-1].text for tokens in split(text)]
    assert ends == [".", ".", "stayed"]
    assert split(" \n") == [] and len(split("... \U0001f600")) == 1
