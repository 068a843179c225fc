"""Converts texts or lists of words to sentences of tokens."""

import itertools
import re
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any

from keras_onlstm.text import tokens
from keras_onlstm.text.tokens import Token
from keras_onlstm.utils.types import Sentence

__all__ = [
    "NO_WORDS",
    "numbered",
    "sentences_of",
    "sentences_or_error",
    "without_number",
    "words_of",
]

NO_WORDS = "has no words."


def words_of(sentence: Iterable[Token]) -> list[str]:
    """The words of tokens, without punctuation."""
    return [token.text for token in sentence if token.is_word]


def sentences_of(sentence: Sentence, split: bool, number: int = 1) -> list[list[Token]]:
    """Converts one text to sentences of tokens: at least one, which may be empty.

    A list of words is one sentence, and so is a text with `split=False`. `number` is the number of
    the text in errors.
    """
    if not isinstance(sentence, str):
        return [tokens.from_words(sentence)]
    try:
        found = tokens.split(sentence)
    except TimeoutError as error:  # NLTK gives up after some seconds
        raise ValueError(
            f"sentence {number}: cannot be split into words in time. Give shorter texts."
        ) from error
    return found if split and found else [list(itertools.chain.from_iterable(found))]


def numbered(sentences: Iterable[Sentence], split: bool) -> Iterator[tuple[int, list[Token]]]:
    """Yields the sentences of many texts, each with the index of its text."""
    for place, sentence in enumerate(sentences):
        tokens.check_sentence(sentence, place + 1)
        for found in sentences_of(sentence, split, place + 1):
            yield place, found


def without_number(error: ValueError) -> str:
    """The message of an error without `sentence 1`, for texts in numbered rows."""
    return re.sub("^sentence 1[:,] ", "", str(error))


def sentences_or_error(text: Any, most: int | None) -> tuple[list[list[Token]], str | None]:
    """Returns the sentences that have words, and `None`; or no sentences, and an error message.

    `most` is the maximum number of words in a sentence. Blank text is not an error.
    """
    if isinstance(text, bytes):
        return [], "is no UTF-8 text."
    if not isinstance(text, str | list | tuple):
        return [], f"is {reprlib.repr(text)}, neither text nor a list of words."
    if isinstance(text, str) and not text.strip():
        return [], None
    try:
        tokens.check_sentence(text)
        found = [
            sentence for sentence in sentences_of(text, True) if any(t.is_word for t in sentence)
        ]
    except ValueError as error:
        return [], without_number(error)
    longest = max((len(words_of(sentence)) for sentence in found), default=0)
    if not found:
        return [], NO_WORDS
    if most is not None and longest > most:
        return [], f"has a sentence of {longest:,} words, more than {most:,}."
    return found, None
