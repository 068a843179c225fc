"""Text corpora for language models: Penn Treebank as Mikolov prepared it, or the user's own.

A corpus is a directory of `train.txt`, `valid.txt` and `test.txt`, or `ptb.train.txt` and so on.
Each line is a sentence of words separated by blanks, and ends in `<eos>`, even a blank one, as in
the published token counts of WikiText. Words outside the vocabulary are `<unk>`.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_onlstm.text.vocabulary import EOS, UNKNOWN, by_frequency
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import lines, replacing

__all__ = ["Corpus", "encode", "find", "load", "mapped", "read_vocabulary", "sentences"]

PARTS = ("train", "valid", "test")
_BLOCK = 1 << 16  # ids written at once


class Corpus(NamedTuple):
    """A corpus as ids: int32 arrays (tokens,). The id of a token is its index in the vocabulary."""

    vocabulary: list[str]
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def sentences(path: StrPath, level: str = "word") -> Iterator[list[str]]:
    """Yields the lists of tokens, words or characters, of the lines of a text, without `<eos>`.

    A line that is not UTF-8 text is a `ValueError`.

    >>> _ = Path("test.txt").write_text("the cat\\nsaw it")
    >>> list(sentences("test.txt"))
    [['the', 'cat'], ['saw', 'it']]
    """
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            if "\x00" in line:
                raise ValueError(f"{path}, line {number} is not text: it contains a zero byte.")
            yield line.split() if level == "word" else list(line.replace(" ", "_"))


def read_vocabulary(
    paths: Sequence[StrPath], max_words: int | None = None, level: str = "word"
) -> list[str]:
    """Returns the tokens of files, the most frequent ones first, ties alphabetically.

    Args:
        paths: list of files.
        max_words: integer, maximum number of tokens, including `<eos>` and `<unk>`; `None`: all.
        level: `"word"` or `"character"`, with `_` for blanks.

    Raises:
        ValueError: if a file is not UTF-8 text, or no file contains tokens.

    >>> _ = Path("train.txt").write_text("the cat saw the dog")
    >>> read_vocabulary(["train.txt"])
    ['<eos>', '<unk>', 'the', 'cat', 'dog', 'saw']
    """
    counts = Counter(chain.from_iterable(chain.from_iterable(sentences(p, level) for p in paths)))
    for special in (EOS, UNKNOWN):
        counts.pop(special, None)
    if not counts:
        raise ValueError(f"{', '.join(map(str, paths))}: the text has no words.")
    size = None if max_words is None else max(max_words - 2, 0)
    return [EOS, UNKNOWN, *by_frequency(counts)[:size]]


def encode(
    path: StrPath,
    vocabulary: Iterable[str],
    level: str = "word",
    cache: StrPath | None = None,
    progress: Callable[[int], object] | None = None,
) -> np.ndarray:
    """Converts a text file to ids, an int32 array (tokens,), with `<eos>` after every line.

    Args:
        path: text file.
        vocabulary: list of tokens, with `<eos>` and `<unk>`.
        level: `"word"` or `"character"`.
        cache: file for the ids, which is then memory-mapped. `None` keeps them in memory.
        progress: function of the number of tokens so far, called now and then, or `None`.

    Raises:
        ValueError: if the file is not UTF-8 text or contains no words.

    >>> _ = Path("test.txt").write_text("the cat saw a bird")
    >>> encode("test.txt", ["<eos>", "<unk>", "the", "cat", "saw"]).tolist()
    [2, 3, 4, 1, 1, 0]
    """
    ids = {token: index for index, token in enumerate(vocabulary)}
    eos, unknown = ids[EOS], ids[UNKNOWN]

    def write(file):
        block, total, is_blank = [], 0, True
        for tokens in chain(sentences(path, level), [None]):  # None: end of the file
            if tokens is not None:
                is_blank = is_blank and not tokens
                block += [ids.get(token, unknown) for token in tokens]
                block.append(eos)
            if len(block) >= _BLOCK or tokens is None:
                file.write(np.array(block, dtype="int32").tobytes())
                total += len(block)
                block = []
                if progress is not None:
                    progress(total)
        if is_blank:
            raise ValueError(f"{path}: the text has no words.")

    if cache is None:
        memory = io.BytesIO()
        write(memory)
        return np.frombuffer(memory.getvalue(), dtype="int32")
    with replacing(cache) as temporary, open(temporary, "wb") as file:
        write(file)
    return np.memmap(cache, dtype="int32", mode="r")


def find(directory: StrPath, part: str) -> Path:
    """The path of a part of a corpus, `"train"`, `"valid"` or `"test"`, or `FileNotFoundError`.

    >>> Path("ptb.train.txt").touch()
    >>> find(".", "train").name
    'ptb.train.txt'
    """
    for path in (Path(directory, f"{part}.txt"), Path(directory, f"ptb.{part}.txt")):
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"{directory} has no {part}.txt. A corpus is a directory with train.txt, valid.txt and "
        "test.txt, or ptb.train.txt and so on."
    )


def load(
    directory: StrPath,
    vocabulary: Sequence[str] | None = None,
    max_words: int | None = None,
    level: str = "word",
    cache: StrPath | None = None,
    progress: Callable[[int], object] | None = None,
) -> Corpus:
    """Reads a corpus.

    Args:
        directory: corpus directory.
        vocabulary: list of tokens, or `None` for that of the training text.
        max_words: maximum size of that vocabulary, or `None`.
        level: `"word"` or `"character"`.
        cache: directory for memory-mapped ids, or `None`.
        progress: function of the number of tokens so far, or `None`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if one is empty or not UTF-8 text.

    >>> for part in ("train", "valid", "test"):
    ...     _ = Path(f"{part}.txt").write_text("a b")
    >>> load(".").valid.tolist()
    [2, 3, 0]
    """
    paths = {part: find(directory, part) for part in PARTS}
    if vocabulary is None:
        vocabulary = read_vocabulary([paths["train"]], max_words, level)
    caches = {part: None if cache is None else _cached(cache, part) for part in PARTS}
    ids = (encode(paths[part], vocabulary, level, caches[part], progress) for part in PARTS)
    return Corpus(list(vocabulary), *ids)


def mapped(vocabulary: Sequence[str], cache: StrPath) -> Corpus:
    """Returns the corpus whose ids `load` has written to `cache`, memory-mapped."""
    ids = (np.memmap(_cached(cache, part), dtype="int32", mode="r") for part in PARTS)
    return Corpus(list(vocabulary), *ids)


def _cached(cache, part):
    return Path(cache) / f"{part}.ids"
