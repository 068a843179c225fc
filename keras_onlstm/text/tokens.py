"""Splits texts into sentences and tokens with positions. Does not import Keras."""

import functools
import itertools
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_onlstm.text import tokens
from keras_onlstm.utils import Sentence

__all__ = [
    "NO_WORDS",
    "Token",
    "check_sentence",
    "check_sentences",
    "from_words",
    "numbered",
    "sentences_of",
    "sentences_or_error",
    "split",
    "without_number",
    "words_of",
]

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_PICTURE = r"[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_VARIANT = r"[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
# Replacements for input that both tokenizers of NLTK do not handle.
_SEEN = {
    "address": "link",
    "emoji": " link ",
    "ellipsis": " ... ",
    "dash": " -- ",
    "double": '"',
    "single": "'",
}
_UNKNOWN = re.compile(
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
# Where Punkt ends a sentence by mistake: after initials, after the number of an item, and after a
# quotation or bracket in mid-sentence. Patterns of the text before and after.
_GOES_ON = (
    (
        re.compile(r"\b(?:[^\W\d_]\.){2,}\s*$"),
        re.compile(rf"(?!(?:{'|'.join(STARTERS.title().split())})\b)"),
    ),
    (re.compile(r"^\W*\d+\.\s*$"), re.compile("")),
    (re.compile(r"[.?!]['\")\]}]+\s*$"), re.compile(r"[^\W\d_A-Z]")),
)


class Token(NamedTuple):
    """A word or a punctuation mark.

    Attributes:
        text: string, as written.
        start: index of its first character in the given text; `None` for lists of words.
        end: index after its last character; `None` for lists of words.
        is_word: whether it is a word of the sentence, rather than punctuation or an emoji.
    """

    text: str
    start: int | None
    end: int | None
    is_word: bool


def split(text: str) -> list[list[Token]]:
    """Splits a text into sentences of tokens.

    Args:
        text: string of any length.

    Returns:
        List of lists of `Token`, split as in the Penn Treebank: `don't` is `do` and `n't`. Tokens
        with a letter or a digit are words. A sentence without words is joined to the one before
        it, so only a text without words has one; a text without tokens has no sentence.

    Example:

    >>> from keras_onlstm.text.tokens import split
    >>> for tokens in split("He didn't go. She left…"):
    ...     [token.text for token in tokens]
    ['He', 'did', "n't", 'go', '.']
    ['She', 'left', '…']
    >>> split("He left")[0][1]
    Token(text='left', start=3, end=7, is_word=True)
    """
    seen, places, emoji = _seen(text)
    tokenizer = _tools()[1]
    sentences: list[list[Token]] = []
    for first, last in _spans(seen):
        tokens = []
        for start, end in tokenizer.span_tokenize(seen[first:last]):
            start, end = places[first + start][0], places[first + end - 1][1]
            token = text[start:end]
            is_word = start not in emoji and any(map(str.isalnum, token))
            tokens.append(Token(token, start, end, is_word))
        if sentences and not (_has_words(tokens) and _has_words(sentences[-1])):
            sentences[-1] += tokens
        else:
            sentences.append(tokens)
    return sentences


def _spans(seen):
    """Start and end of each sentence."""
    spans: list[tuple[int, int]] = []
    for start, end in _tools()[0].span_tokenize(seen):
        if spans and _goes_on(seen[slice(*spans[-1])], seen[start:end]):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _goes_on(before, behind):
    return any(end.search(before) and start.match(behind) for end, start in _GOES_ON)


def from_words(words: Sequence[str]) -> list[Token]:
    """Makes tokens of words, all with `is_word`."""
    return [Token(word, None, None, True) for word in words]


def check_sentences(sentences: Any) -> None:
    """Raises ValueError for a single text or anything but an iterable of sentences."""
    if isinstance(sentences, str):
        raise ValueError(f"sentences is text: put it into a list, [{reprlib.repr(sentences)}].")
    if isinstance(sentences, bytes | bytearray | dict) or not hasattr(sentences, "__iter__"):
        raise ValueError(
            f"sentences is {_kind(sentences)}: give a list of texts or of lists of words."
        )


def check_sentence(sentence: Any, number: int = 1) -> None:
    """Raises ValueError, with the number, for a sentence that is not text or a list of words.

    Control characters, empty words and words with white space are errors too.
    """
    where = f"sentence {number}"
    if isinstance(sentence, str):
        _check_characters(where, sentence)
        return
    if isinstance(sentence, bytes | bytearray):
        raise ValueError(f"{where}: is bytes. Decode it: sentence.decode().")
    if not isinstance(sentence, Sequence):
        raise ValueError(f"{where}: is {_kind(sentence)}. Give text or a list of words.")
    for place, word in enumerate(sentence, 1):
        where = f"sentence {number}, word {place}"
        if not isinstance(word, str):
            raise ValueError(f"{where}: is {_kind(word)}. Words are text.")
        if not word:
            raise ValueError(f"{where}: is empty. Leave it out.")
        _check_characters(where, word)
        if word.split() != [word]:
            raise ValueError(
                f"{where}: {reprlib.repr(word)} holds white space. Give the sentence as text, or "
                "one word in each place."
            )


def _check_characters(where, text):
    found = _CONTROL.search(text)
    if found:
        raise ValueError(
            f"{where}: holds {found[0]!a} as character {found.start() + 1}, which no text "
            "has. Take it out."
        )


def _kind(value):
    return "None" if value is None else f"of the type {type(value).__name__}"


def _seen(text):
    """The text for NLTK, the sources of its characters, and the starts of emoji."""
    seen: list[str] = []
    places: list[tuple[int, int]] = []
    emoji: set[int] = set()
    done = 0
    for found in _UNKNOWN.finditer(text):
        start, end = found.span()
        kind = str(found.lastgroup)
        replacement = _SEEN[kind]
        seen += text[done:start], replacement
        places += [(place, place + 1) for place in range(done, start)]
        places += [(start, end)] * len(replacement)
        if kind == "emoji":
            emoji.add(start)
        done = end
    seen.append(text[done:])
    places += [(place, place + 1) for place in range(done, len(text))]
    return "".join(seen), places, emoji


@functools.cache
def _tools():
    """Sentence splitter and tokenizer. Importing NLTK takes half a second."""
    from nltk.tokenize import TreebankWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types.update(ABBREVIATIONS.split())
    parameters.sent_starters.update(STARTERS.split())
    parameters.collocations.update({("no", "##number##"), ("nos", "##number##")})
    return PunktSentenceTokenizer(parameters), TreebankWordTokenizer()


def _has_words(tokens):
    return any(token.is_word for token in tokens)


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


def sentences_or_error(text: Any, maximum: int | None) -> tuple[list[list[Token]], str | None]:
    """Returns the sentences that have words, and `None`; or no sentences, and an error message.

    `maximum` is the maximum number of words in a sentence. Blank text is not an error.
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
    if maximum is not None and longest > maximum:
        return [], f"has a sentence of {longest:,} words, more than {maximum:,}."
    return found, None
