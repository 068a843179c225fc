"""Vocabularies: words and their ids. Does not import Keras."""

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.reading import read_text
from keras_onlstm.utils.types import Sentence, StrPath

__all__ = [
    "EOS",
    "ROOT",
    "UNKNOWN",
    "Encoder",
    "TreeEncoder",
    "by_frequency",
    "check_vocabulary",
    "frequent",
    "read_words",
    "write_words",
]

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
    sentences: Iterable[Iterable[str]], least: int = 2, special: Sequence[str] = (UNKNOWN, ROOT)
) -> list[str]:
    """Makes a vocabulary of the frequent words of sentences.

    Args:
        sentences: iterable of lists of words, those to train on.
        least: integer, minimum count of a word in the vocabulary.
        special: list of words that always come first in it. Default: those of models of dependency
            trees.

    Returns:
        List of words: the special ones, then the others by descending frequency, ties
        alphabetically.

    Raises:
        ValueError: if `least` is not positive.

    Example:

    >>> from keras_onlstm.text.vocabulary import frequent
    >>> frequent([["the", "dog", "saw", "the", "cat"], ["the", "cat", "fled"]])
    ['<unk>', '<root>', 'the', 'cat']
    """
    least = integer("least", least)
    counts = Counter(chain.from_iterable(sentences))
    kept = {w: count for w, count in counts.items() if count >= least and w not in special}
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
