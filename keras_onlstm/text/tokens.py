"""Splits texts into sentences and tokens with positions. Does not import Keras."""

import functools
import itertools
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_onlstm.utils import Sentence

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_PICTURE = r"[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_VARIANT = r"[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
# Replacements for what the tokenizers of NLTK do not handle: see `_UNUSUAL`.
_REPLACEMENTS = {"address": "link", "emoji": " link ", "ellipsis": " ... ", "dash": " -- ",
                 "double": '"', "single": "'"}  # fmt: skip
_UNUSUAL = re.compile(
    rf"""
    (?P<address>
        (?:\b[a-z][a-z0-9+.-]{{1,15}}://|\bwww\.)[^\s<>"“”]*[^\s<>"“”.,:;!?'\u2019)\]}}…]
        | \b[\w.+-]{{1,64}}@[a-z0-9-]{{1,63}}(?:\.[a-z0-9-]{{1,63}})+
    )
    | (?P<emoji>
        [0-9\#*]\ufe0f?\u20e3 | [\U0001f1e6-\U0001f1ff]{{2}}
        | {_PICTURE}{_VARIANT}(?:\u200d{_PICTURE}{_VARIANT})*
    )
    | (?P<ellipsis>…)
    | (?P<dash>—)
    | (?P<double>[“”„«»])
    | (?P<single>[\u2018\u2019])
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Lower case, without the last full stop. Punkt recognises single letters as initials.
ABBREVIATIONS = """
    mr mrs ms dr prof st jr sr messrs mme mlle rev hon pres gov sen rep gen col maj capt lt sgt
    cmdr adm inc corp co ltd bros assn dept univ ave blvd vs etc e.g i.e cf al approx est fig vol
    pp eds jan feb mar apr jun jul aug sep sept oct nov dec a.m p.m u.s u.k u.n u.s.a d.c n.y n.j
    n.c s.c l.a ph.d m.d b.a m.a calif conn fla ga kan ky md mass mich minn mont neb nev okla pa
    tenn tex va vt wis wyo
"""
# These words, if capitalised, begin a sentence after an abbreviation.
STARTERS = """
    the he she it they we you this that these those there but and his her its their our my your
    what when where why how who if so
"""
# Where Punkt ends a sentence by mistake: after initials, after the number of a list item, and after
# a quotation or bracket within a sentence. Patterns of the text before and after.
_NOT_AN_END = (
    (r"\b(?:[^\W\d_]\.){2,}\s*$", rf"(?!(?:{'|'.join(STARTERS.title().split())})\b)"),
    (r"^\W*\d+\.\s*$", ""),
    (r"[.?!]['\")\]}]+\s*$", r"[^\W\d_A-Z]"),
)


class Token(NamedTuple):
    """A word or a punctuation mark. Its span in the text is `None` for lists of words."""

    text: str
    start: int | None
    end: int | None
    is_word: bool  # not punctuation or an emoji


def split(text: str) -> list[list[Token]]:
    """Splits a text into sentences of tokens, as in the Penn Treebank: `don't` is `do` and `n't`.

    Tokens with a letter or a digit are words. A sentence without words is joined to the one before
    it, so only a text without words has one; a text without tokens has no sentence.

    >>> for tokens in split("He didn't go. She left…"):
    ...     [token.text for token in tokens]
    ['He', 'did', "n't", 'go', '.']
    ['She', 'left', '…']
    """
    replaced, sources, emoji = _replace_unusual(text)
    sentence_tokenizer, word_tokenizer = _tokenizers()
    spans: list[tuple[int, int]] = []
    for start, end in sentence_tokenizer.span_tokenize(replaced):
        if spans and _is_no_end(replaced[slice(*spans[-1])], replaced[start:end]):
            start = spans.pop()[0]
        spans.append((start, end))
    sentences: list[list[Token]] = []
    for first, last in spans:
        tokens = []
        for start, end in word_tokenizer.span_tokenize(replaced[first:last]):
            start, end = sources[first + start][0], sources[first + end - 1][1]
            token = text[start:end]
            is_word = start not in emoji and any(map(str.isalnum, token))
            tokens.append(Token(token, start, end, is_word))
        if sentences and not (words_of(tokens) and words_of(sentences[-1])):
            sentences[-1] += tokens
        else:
            sentences.append(tokens)
    return sentences


def _is_no_end(before, after):
    return any(re.search(end, before) and re.match(start, after) for end, start in _NOT_AN_END)


def check_sentences(sentences: Any) -> None:
    """Raises ValueError for a single text or anything but an iterable of sentences."""
    if isinstance(sentences, str):
        raise ValueError(f"sentences must be a list of texts. Pass [{reprlib.repr(sentences)}].")
    if isinstance(sentences, bytes | bytearray | dict) or not hasattr(sentences, "__iter__"):
        raise ValueError(
            f"sentences must be a list of texts or of lists of words, got {_type(sentences)}."
        )


def check_sentence(sentence: Any, number: int = 1) -> None:
    """Raises ValueError for a sentence that is not text or a list of words."""
    where = f"sentence {number}"
    if isinstance(sentence, str):
        _check_characters(where, sentence)
        return
    if isinstance(sentence, bytes | bytearray):
        raise ValueError(f"{where} must be text, got bytes. Pass sentence.decode().")
    if not isinstance(sentence, Sequence):
        raise ValueError(f"{where} must be text or a list of words, got {_type(sentence)}.")
    for position, word in enumerate(sentence, 1):
        where = f"sentence {number}, word {position}"
        if not isinstance(word, str):
            raise ValueError(f"{where} must be text, got {_type(word)}.")
        if not word:
            raise ValueError(f"{where} is empty. Leave it out.")
        _check_characters(where, word)
        if word.split() != [word]:
            raise ValueError(
                f"{where} must not contain white space, got {reprlib.repr(word)}. Pass the "
                "sentence as text, or each word as an item."
            )


def _check_characters(where, text):
    if match := _CONTROL.search(text):
        raise ValueError(
            f"{where} must not contain control characters, got {match[0]!a} at character "
            f"{match.start() + 1}. Remove it."
        )


def _type(value):
    return "None" if value is None else f"the type {type(value).__name__}"


def _replace_unusual(text):
    """The text for NLTK, the span in `text` of each of its characters, and the starts of emoji."""
    parts: list[str] = []
    sources: list[tuple[int, int]] = []
    emoji: set[int] = set()
    done = 0
    for match in _UNUSUAL.finditer(text):
        start, end = match.span()
        replacement = _REPLACEMENTS[str(match.lastgroup)]
        parts += text[done:start], replacement
        sources += [(index, index + 1) for index in range(done, start)]
        sources += [(start, end)] * len(replacement)
        if match.lastgroup == "emoji":
            emoji.add(start)
        done = end
    parts.append(text[done:])
    sources += [(index, index + 1) for index in range(done, len(text))]
    return "".join(parts), sources, emoji


@functools.cache
def _tokenizers():
    """Sentence splitter and tokenizer. Importing NLTK takes half a second."""
    from nltk.tokenize import TreebankWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types.update(ABBREVIATIONS.split())
    parameters.sent_starters.update(STARTERS.split())
    parameters.collocations.update({("no", "##number##"), ("nos", "##number##")})
    return PunktSentenceTokenizer(parameters), TreebankWordTokenizer()


NO_WORDS = "has no words."


def words_of(sentence: Iterable[Token]) -> list[str]:
    """The words of tokens, without punctuation."""
    return [token.text for token in sentence if token.is_word]


def sentences_of(sentence: Sentence, into_sentences: bool, number: int = 1) -> list[list[Token]]:
    """Converts one text to sentences of tokens: at least one, which may be empty.

    A list of words is one sentence, and so is a text without `into_sentences`.
    """
    if not isinstance(sentence, str):
        return [[Token(word, None, None, True) for word in sentence]]
    try:
        sentences = split(sentence)
    except TimeoutError as error:  # NLTK gives up after some seconds
        raise ValueError(
            f"sentence {number} is too long to be split into words in time. Pass shorter texts."
        ) from error
    if into_sentences and sentences:
        return sentences
    return [list(itertools.chain.from_iterable(sentences))]


def numbered(
    sentences: Iterable[Sentence], into_sentences: bool
) -> Iterator[tuple[int, list[Token]]]:
    """Yields the sentences of many texts, each with the index of its text."""
    for index, text in enumerate(sentences):
        check_sentence(text, index + 1)
        for sentence in sentences_of(text, into_sentences, index + 1):
            yield index, sentence


def without_number(error: ValueError) -> str:
    """The message of an error without `sentence 1`, for texts in numbered rows."""
    return re.sub("^sentence 1[:,]? ", "", str(error))


def sentences_or_error(text: Any, max_words: int | None) -> tuple[list[list[Token]], str | None]:
    """Returns the sentences that have words, and `None`; or no sentences, and an error message."""
    if isinstance(text, bytes):
        return [], "is not UTF-8 text."
    if not isinstance(text, str | list | tuple):
        return [], f"must be text or a list of words, got {reprlib.repr(text)}."
    if isinstance(text, str) and not text.strip():
        return [], None
    try:
        check_sentence(text)
        sentences = [sentence for sentence in sentences_of(text, True) if words_of(sentence)]
    except ValueError as error:
        return [], without_number(error)
    if not sentences:
        return [], NO_WORDS
    longest = max(len(words_of(sentence)) for sentence in sentences)
    if max_words is not None and longest > max_words:
        return [], f"has a sentence of {longest:,} words, more than {max_words:,}."
    return sentences, None
