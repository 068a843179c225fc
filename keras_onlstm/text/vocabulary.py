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

_ENOUGH = 1000  # lines to read before all vectors are considered too long


def read_vectors(path: StrPath, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """Reads the vectors of some words: each line has a word and its numbers, separated by blanks.

    The last `size` cells of a line are its numbers, so a word may contain blanks. Blank lines,
    words that are not UTF-8, and word2vec's first line (the number and the size of the vectors)
    are skipped. Of several lines for a word the first one is used. Vectors of another size or with
    numbers that are not finite, or a file without any of the words, are a `ValueError`.

    Source of such files: Pennington, Socher and Manning 2014, https://nlp.stanford.edu/projects/glove.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: the file of word vectors does not exist.")
    vectors: dict[str, np.ndarray] = {}
    smallest, smallest_line = math.inf, 0  # count of numbers in a line, and the first such line
    # Bytes that are not UTF-8 become lone surrogates, which no word has.
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip(" \r\n").split(" ")
            is_header = number == 1 and size > 1 and len(cells) == 2 and "".join(cells).isdecimal()
            if cells == [""] or is_header:
                continue
            if len(cells) - 1 < smallest:
                smallest, smallest_line = len(cells) - 1, number
            if smallest < size or (smallest > size and number == _ENOUGH and not vectors):
                break
            word = " ".join(cells[:-size])
            if word in words and word not in vectors:
                vectors[word] = _numbers(path, number, cells[-size:])
    if smallest_line and (smallest < size or (smallest > size and not vectors)):
        raise ValueError(
            f"{path}, line {smallest_line}: the vector has {smallest} numbers, but those of the "
            f"model have {size}. Use a file of that size, or set embedding_dim."
        )
    if not vectors:
        raise ValueError(f"{path}: none of the {len(words):,} words of the vocabulary is in it.")
    return vectors


def _numbers(path, number, cells):
    for cell in cells:
        try:
            is_finite = abs(float(cell)) < float(np.finfo("float32").max)
        except ValueError:
            is_finite = False
        if not is_finite:
            raise ValueError(f"{path}, line {number}: {reprlib.repr(cell)} is not a finite number.")
    return np.array(cells, "float32")


EOS = "<eos>"
ROOT = "<root>"  # source of the first word of a dependency tree
UNKNOWN = "<unk>"


class Encoder:
    """Converts words to ids, their indices in a vocabulary with `<eos>` and `<unk>`.

    `path` is the path of the model's file, for errors.
    """

    def __init__(self, vocabulary: Sequence[str] | None, path: StrPath | None = None) -> None:
        self.vocabulary = check_vocabulary(vocabulary, path)
        self._ids = {word: index for index, word in enumerate(self.vocabulary)}
        self.eos = self._ids[EOS]

    def __call__(self, sentence: Sentence) -> list[int]:
        """The ids of a sentence: words separated by blanks, or a list."""
        words = sentence.split() if isinstance(sentence, str) else sentence
        unknown = self._ids[UNKNOWN]
        return [self._ids.get(word, unknown) for word in words]


class TreeEncoder:
    """Converts words of dependency trees to ids in a vocabulary with `<unk>` and `<root>`."""

    def __init__(self, vocabulary: Sequence[str] | None, path: StrPath | None = None) -> None:
        vocabulary = _with_words(vocabulary, (UNKNOWN, ROOT), "TreeLSTM", path)
        self._ids = {word: index for index, word in enumerate(vocabulary)}
        self._unknown, self.root = self._ids[UNKNOWN], self._ids[ROOT]

    def __call__(self, words: Sequence[str]) -> list[int]:
        """The ids of a tree's words. `<root>` is a `ValueError`."""
        if ROOT in words:
            raise ValueError(
                f"{reprlib.repr(list(words))} must not contain {ROOT}, the word of ROOT. Rename it."
            )
        return [self._ids.get(word, self._unknown) for word in words]


def by_frequency(counts: Mapping[str, int]) -> list[str]:
    """Sorts the words of a dictionary of counts by descending frequency, ties alphabetically."""
    return sorted(counts, key=lambda word: (-counts[word], word))


def frequent(
    sentences: Iterable[Iterable[str]], min_count: int = 2, special: Sequence[str] = (UNKNOWN, ROOT)
) -> list[str]:
    """Makes a vocabulary: special words, then those that occur at least `min_count` times.

    >>> frequent([["the", "dog", "saw", "the", "cat"], ["the", "cat", "fled"]])
    ['<unk>', '<root>', 'the', 'cat']
    """
    check_integer("min_count", min_count)
    counts = Counter(chain.from_iterable(sentences))
    words = {w: count for w, count in counts.items() if count >= min_count and w not in special}
    return [*special, *by_frequency(words)]


def check_vocabulary(
    vocabulary: Sequence[str] | None, path: StrPath | None = None
) -> Sequence[str]:
    """Returns a vocabulary with `<eos>` and `<unk>`; any other, or `None`, is a `ValueError`."""
    return _with_words(vocabulary, (EOS, UNKNOWN), "LanguageModel", path)


def _with_words(vocabulary, special, model, path):
    if vocabulary is None or not set(special) <= set(vocabulary):
        where = "The" if path is None else f"{path}: the"
        raise ValueError(
            f"{where} model has no vocabulary with {' and '.join(special)}. Create it with one: "
            f"{model}(..., vocabulary=words)."
        )
    return vocabulary


def read_words(path: StrPath, remedy: str = "") -> list[str]:
    """Reads the words of a file of `write_words`. `remedy` says what to do if it is damaged."""
    # Not splitlines(): a character model has line separators as words.
    return read_text(path, remedy).split("\n")[:-1]


def write_words(path: StrPath, words: Iterable[str]) -> None:
    """Writes words to a file, one per line."""
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
