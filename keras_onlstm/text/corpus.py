"""Text corpora for language models: Penn Treebank as Mikolov prepared it, or a user's own.

A corpus is a directory of `train.txt`, `valid.txt` and `test.txt` (`ptb.train.txt` and so on for
the Penn Treebank). Each line is a sentence, words are separated by blanks. Every line ends in
`<eos>`, also a blank one, as in the published token counts of WikiText. Words that the vocabulary
lacks are `<unk>`.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_onlstm.text.vocabulary import EOS, UNKNOWN, by_frequency
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.reading import lines
from keras_onlstm.utils.types import StrPath

__all__ = ["Corpus", "encode", "find", "load", "mapped", "read_vocabulary", "sentences"]

PARTS = ("train", "valid", "test")
_BLOCK = 1 << 16  # ids that are written at once


class Corpus(NamedTuple):
    """A corpus as ids.

    Attributes:
        vocabulary: list of tokens; the place of a token is its id.
        train: int32 array (tokens,).
        valid: likewise.
        test: likewise.
    """

    vocabulary: list[str]
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def sentences(path: StrPath, level: str = "word") -> Iterator[list[str]]:
    """Reads a text line by line.

    Args:
        path: of the file.
        level: as in `read_vocabulary`.

    Yields:
        List of tokens of a line, without `<eos>`.

    Raises:
        ValueError: if the file is not UTF-8 text; the message names the line.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm import text
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "test.txt"
    ...     _ = path.write_text("the cat\\nsaw it")
    ...     list(text.corpus.sentences(path))
    [['the', 'cat'], ['saw', 'it']]
    """
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            if "\x00" in line:
                raise ValueError(f"{path}, line {number}: is not text, it holds a zero byte.")
            yield line.split() if level == "word" else list(line.replace(" ", "_"))


def read_vocabulary(
    paths: Sequence[StrPath], max_words: int | None = None, level: str = "word"
) -> list[str]:
    """The tokens of some files, the most frequent ones first.

    Args:
        paths: the files that are counted.
        max_words: integer, how many tokens to keep, `<eos>` and `<unk>` included; or `None`: all.
        level: `"word"` or `"character"`; a blank then is `_`.

    Returns:
        List of tokens: `<eos>`, `<unk>`, then by falling frequency, ties in the order of the
        alphabet.

    Raises:
        ValueError: if a file is not UTF-8 text, or there is no token at all.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm import text
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "train.txt"
    ...     _ = path.write_text("the cat saw the dog")
    ...     text.corpus.read_vocabulary([path])
    ['<eos>', '<unk>', 'the', 'cat', 'dog', 'saw']
    """
    counts = Counter(chain.from_iterable(chain.from_iterable(sentences(p, level) for p in paths)))
    for special in (EOS, UNKNOWN):
        counts.pop(special, None)
    if not counts:
        raise ValueError(f"{', '.join(map(str, paths))}: no words. Give files with text.")
    ranked = by_frequency(counts)
    kept = ranked if max_words is None else ranked[: max(max_words - 2, 0)]
    return [EOS, UNKNOWN, *kept]


def encode(
    path: StrPath,
    vocabulary: Iterable[str],
    level: str = "word",
    cache: StrPath | None = None,
    progress: Callable[[int], object] | None = None,
) -> np.ndarray:
    """A text file as ids, `<eos>` after every line, also after a blank one.

    Args:
        path: the file.
        vocabulary: list of tokens, with `<eos>` and `<unk>`.
        level: as in `read_vocabulary`.
        cache: path of a file to write the ids to, which is then mapped into memory: for files that
            memory does not hold. `None`: in memory.
        progress: function of the number of tokens so far, called now and then, or `None`.

    Returns:
        int32 array (tokens,).

    Raises:
        ValueError: if the file is not UTF-8 text or holds no words.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm import text
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "test.txt"
    ...     _ = path.write_text("the cat saw a bird")
    ...     text.corpus.encode(path, ["<eos>", "<unk>", "the", "cat", "saw"]).tolist()
    [2, 3, 4, 1, 1, 0]
    """
    places = {token: place for place, token in enumerate(vocabulary)}
    eos, unknown = places[EOS], places[UNKNOWN]

    def write(file):
        block, total, is_blank = [], 0, True
        for tokens in chain(sentences(path, level), [None]):  # None: there is no more
            if tokens is not None:
                is_blank = is_blank and not tokens
                block += [places.get(token, unknown) for token in tokens]
                block.append(eos)
            if len(block) >= _BLOCK or tokens is None:
                file.write(np.array(block, dtype="int32").tobytes())
                total += len(block)
                block = []
                if progress is not None:
                    progress(total)
        if is_blank:
            raise ValueError(f"{path}: holds no words.")

    if cache is None:
        with io.BytesIO() as memory:
            write(memory)
            return np.frombuffer(memory.getvalue(), dtype="int32")
    with replacing(cache) as temporary, open(temporary, "wb") as file:
        write(file)
    return np.memmap(cache, dtype="int32", mode="r")


def find(directory: StrPath, part: str) -> Path:
    """The file of a part of a corpus.

    Args:
        directory: of the corpus.
        part: `"train"`, `"valid"` or `"test"`.

    Returns:
        `Path`.

    Raises:
        FileNotFoundError: if there is none.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm import text
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     (Path(directory) / "ptb.test.txt").touch()
    ...     text.corpus.find(directory, "test").name
    'ptb.test.txt'
    """
    for name in (f"{part}.txt", f"ptb.{part}.txt"):
        if (Path(directory) / name).is_file():
            return Path(directory) / name
    raise FileNotFoundError(
        f"{directory}: no {part}.txt. A corpus is a directory of train.txt, valid.txt and "
        "test.txt, or of the Penn Treebank's ptb.train.txt and so on."
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
        directory: where `train.txt`, `valid.txt` and `test.txt` are.
        vocabulary: list of tokens, or `None`: that of the training text, of at most `max_words`.
        max_words: as in `read_vocabulary`.
        level: as in `read_vocabulary`.
        cache: directory for ids mapped into memory, or `None`: in memory.
        progress: as in `encode`.

    Returns:
        `Corpus`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if one is empty or not UTF-8 text.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm import text
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for part in ("train", "valid", "test"):
    ...         _ = (Path(directory) / f"{part}.txt").write_text("a b")
    ...     text.corpus.load(directory).valid.tolist()
    [2, 3, 0]
    """
    paths = {part: find(directory, part) for part in PARTS}
    if vocabulary is None:
        vocabulary = read_vocabulary([paths["train"]], max_words, level)
    ids = {}
    for part, path in paths.items():
        target = None if cache is None else _cached(cache, part)
        ids[part] = encode(path, vocabulary, level, target, progress)
    return Corpus(list(vocabulary), **ids)


def mapped(vocabulary: Sequence[str], cache: StrPath) -> Corpus:
    """A corpus whose ids `load` has written before, mapped into memory.

    Args:
        vocabulary: list of tokens.
        cache: directory of the ids.

    Returns:
        `Corpus`.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm import text
    >>> directory = Path(tempfile.mkdtemp())
    >>> for part in ("train", "valid", "test"):
    ...     _ = (directory / f"{part}.txt").write_text("a b")
    >>> loaded = text.corpus.load(directory, cache=directory)
    >>> text.corpus.mapped(loaded.vocabulary, directory).valid.tolist()
    [2, 3, 0]
    """
    ids = {part: np.memmap(_cached(cache, part), dtype="int32", mode="r") for part in PARTS}
    return Corpus(list(vocabulary), **ids)


def _cached(cache, part):
    return Path(cache) / f"{part}.ids"
