"""Vocabularies: words and their ids, and word vectors from text files. Does not import Keras."""

import math
import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from keras_onlstm.utils import Sentence, StrPath
from keras_onlstm.utils.files import read_text, replacing
from keras_onlstm.utils.validation import check_integer

__all__ = [
    "EOS",
    "ROOT",
    "UNKNOWN",
    "Encoder",
    "TreeEncoder",
    "by_frequency",
    "check_vocabulary",
    "frequent",
    "read_vectors",
    "read_words",
    "write_words",
]

_ENOUGH = 1000  # lines to read before all vectors are considered too long


def read_vectors(path: StrPath, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """Reads the vectors of some words: lines of a word and its numbers, separated by blanks.

    The last `size` cells of a line are its numbers, so a word may contain blanks. Blank lines,
    words that are not UTF-8 text, and word2vec's first line, the number and the size of the
    vectors, are skipped.

    Source of such files: Pennington, Socher and Manning 2014, https://nlp.stanford.edu/projects/glove.

    Args:
        path: path of the file.
        words: set of words to read.
        size: integer, length of a vector.

    Returns:
        Dictionary from the words found to arrays (size,) float32; the first line of a word
        counts.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if a line is too short, or all lines are too long for vectors of that size; if
            the vector of one of `words` is not finite numbers; or if none of them is found.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.text.vocabulary import read_vectors
    >>> path = pathlib.Path(tempfile.mkdtemp(), "vectors.txt")
    >>> _ = path.write_text("the 0.5 1\\ncat 2 0.25\\n")
    >>> read_vectors(path, {"cat", "dog"}, 2)
    {'cat': array([2.  , 0.25], dtype=float32)}
    """
    found: dict[str, np.ndarray] = {}
    fewest, where = math.inf, 0  # the smallest count of numbers in a line, and the first such line
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file of word vectors.")
    # Bytes that are not UTF-8 become lone surrogates, which no word has.
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip(" \r\n").split(" ")
            if cells == [""] or (number == 1 and size > 1 and _is_header(cells)):
                continue
            if len(cells) - 1 < fewest:
                fewest, where = len(cells) - 1, number
            if fewest < size or (fewest > size and number == _ENOUGH and not found):
                break
            word = " ".join(cells[:-size])
            if word in words and word not in found:
                found[word] = _numbers(path, number, cells[-size:])
    if where and (fewest < size or (fewest > size and not found)):
        raise ValueError(
            f"{path}, line {where}: has {fewest} numbers, and a word vector of the model {size}. "
            "Give a file of that size, or --set embedding_dim."
        )
    if not found:
        raise ValueError(f"{path}: has none of the {len(words):,} words of the vocabulary.")
    return found


def _is_header(cells):
    return len(cells) == 2 and cells[0].isdecimal() and cells[1].isdecimal()


def _numbers(path, number, cells):
    for cell in cells:
        try:
            finite = abs(float(cell)) < float(np.finfo("float32").max)
        except ValueError:
            finite = False
        if not finite:
            raise ValueError(f"{path}, line {number}: {reprlib.repr(cell)} is no finite number.")
    return np.array(cells, "float32")


EOS = "<eos>"
ROOT = "<root>"  # source of the first word of a dependency tree
UNKNOWN = "<unk>"


class Encoder:
    """Converts words to ids.

    Args:
        vocabulary: list of words; the index of a word is its id. `None` is an error.
        path: path of the model's file, for errors; `None` for a model not from a file.

    Attributes:
        vocabulary: list of words.
        eos: integer, the id of `<eos>`.

    Raises:
        ValueError: if `vocabulary` is `None`, or lacks `<eos>` or `<unk>`.

    Example:

    >>> from keras_onlstm.text.vocabulary import Encoder
    >>> encoder = Encoder(["<eos>", "<unk>", "the", "cat"])
    >>> encoder("the black cat"), encoder.eos
    ([2, 1, 3], 0)
    """

    def __init__(self, vocabulary: Sequence[str] | None, path: StrPath | None = None) -> None:
        self.vocabulary = check_vocabulary(vocabulary, path)
        self._places = {word: place for place, word in enumerate(self.vocabulary)}
        self.eos = self._places[EOS]

    def __call__(self, sentence: Sentence) -> list[int]:
        """The ids of a sentence: words separated by blanks, or a list."""
        words = sentence.split() if isinstance(sentence, str) else sentence
        unknown = self._places[UNKNOWN]
        return [self._places.get(word, unknown) for word in words]


class TreeEncoder:
    """Converts words of dependency trees to ids.

    Args:
        vocabulary: list of words; the index of a word is its id. `None` is an error.
        path: path of the model's file, for errors, or `None`.

    Attributes:
        root: integer, the id of `<root>`.

    Raises:
        ValueError: if `vocabulary` is `None`, or lacks `<unk>` or `<root>`.

    Example:

    >>> from keras_onlstm.text.vocabulary import TreeEncoder
    >>> encoder = TreeEncoder(["<unk>", "<root>", "the", "cat"])
    >>> encoder(["the", "black", "cat"]), encoder.root
    ([2, 0, 3], 1)
    """

    def __init__(self, vocabulary: Sequence[str] | None, path: StrPath | None = None) -> None:
        if vocabulary is None or not {UNKNOWN, ROOT} <= set(vocabulary):
            model = "The model" if path is None else f"{path}: its model"
            raise ValueError(
                f"{model} has no vocabulary with {UNKNOWN} and {ROOT}. Give it one when it is "
                "made: TreeLSTM(..., vocabulary=words)."
            )
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self._unknown, self.root = self._places[UNKNOWN], self._places[ROOT]

    def __call__(self, words: Sequence[str]) -> list[int]:
        """The ids of a tree's words.

        Raises:
            ValueError: if `<root>` is one of them.
        """
        if ROOT in words:
            raise ValueError(
                f"{reprlib.repr(list(words))}: {ROOT} is a word of it, and stands for ROOT in the "
                "vocabulary. Write it in another way."
            )
        return [self._places.get(word, self._unknown) for word in words]


def by_frequency(counts: Mapping[str, int]) -> list[str]:
    """Sorts words by descending frequency, ties alphabetically.

    Args:
        counts: dictionary from words to their counts.

    Returns:
        List of strings.

    Example:

    >>> from keras_onlstm.text.vocabulary import by_frequency
    >>> by_frequency({"dog": 1, "cat": 1, "the": 2})
    ['the', 'cat', 'dog']
    """
    return sorted(counts, key=lambda word: (-counts[word], word))


def frequent(
    sentences: Iterable[Iterable[str]], min_count: int = 2, special: Sequence[str] = (UNKNOWN, ROOT)
) -> list[str]:
    """Makes a vocabulary of the frequent words of sentences.

    Args:
        sentences: iterable of lists of words, those to train on.
        min_count: integer, minimum count of a word in the vocabulary.
        special: list of words that always come first in it. Default: those of models of dependency
            trees.

    Returns:
        List of words: the special ones, then the others by descending frequency, ties
        alphabetically.

    Raises:
        ValueError: if `min_count` is not positive.

    Example:

    >>> from keras_onlstm.text.vocabulary import frequent
    >>> frequent([["the", "dog", "saw", "the", "cat"], ["the", "cat", "fled"]])
    ['<unk>', '<root>', 'the', 'cat']
    """
    min_count = check_integer("min_count", min_count)
    counts = Counter(chain.from_iterable(sentences))
    kept = {w: count for w, count in counts.items() if count >= min_count and w not in special}
    return [*special, *by_frequency(kept)]


def check_vocabulary(
    vocabulary: Sequence[str] | None, path: StrPath | None = None
) -> Sequence[str]:
    """Checks that a vocabulary can encode sentences.

    Args:
        vocabulary: list of words, or `None`.
        path: path of the model's file, or `None`.

    Returns:
        The vocabulary.

    Raises:
        ValueError: if it is `None`, or lacks `<eos>` or `<unk>`.

    Example:

    >>> from keras_onlstm.text.vocabulary import check_vocabulary
    >>> check_vocabulary(["the", "cat"], "cats.keras")
    Traceback (most recent call last):
    ...
    ValueError: cats.keras: its model has no vocabulary with <eos> and <unk>. Give it one when it
    is made: LanguageModel(..., vocabulary=words).
    """
    if vocabulary is None or not {EOS, UNKNOWN} <= set(vocabulary):
        model = "The model" if path is None else f"{path}: its model"
        raise ValueError(
            f"{model} has no vocabulary with {EOS} and {UNKNOWN}. Give it one when it is made: "
            "LanguageModel(..., vocabulary=words)."
        )
    return vocabulary


def read_words(path: StrPath, remedy: str = "") -> list[str]:
    """Reads the words of a file written by `write_words`.

    Args:
        path: path of the file.
        remedy: sentence on what to do if it is missing or damaged.

    Returns:
        List of strings.

    Raises:
        FileNotFoundError: if it does not exist.
        ValueError: if it is not UTF-8 text.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.text.vocabulary import read_words, write_words
    >>> path = pathlib.Path(tempfile.mkdtemp(), "words.txt")
    >>> write_words(path, ["<eos>", "<unk>", "the"])
    >>> read_words(path)
    ['<eos>', '<unk>', 'the']
    """
    # Not splitlines(): a word of a character model may be another line end.
    return read_text(path, remedy).split("\n")[:-1]


def write_words(path: StrPath, words: Iterable[str]) -> None:
    """Writes words to a file, one per line.

    Args:
        path: path of the file.
        words: list of strings.
    """
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
