"""Reads corpora in several processes, and keeps the ids of large ones in files."""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_onlstm.text import corpus
from keras_onlstm.text.vocabulary import read_words, write_words
from keras_onlstm.utils.console import advance, progress_bar
from keras_onlstm.utils.files import read_json, write_json

__all__ = ["load", "word_counts"]

VOCABULARY = "vocabulary.txt"
ORIGIN = "origin.json"  # next to the ids: digests of the texts
MAPPED = 100_000_000  # bytes; ids of larger texts are kept in files instead of memory


def load(
    directory: str | Path,
    cache: str | Path,
    vocabulary: Sequence[str] | None,
    max_words: int | None,
    level: str,
    processes: Any,
) -> corpus.Corpus:
    """Reads a corpus like `text.corpus.load`, with files for the ids of a large one.

    Args:
        directory: directory of the corpus.
        cache: directory for the memory-mapped ids of a large corpus. They are written again only if
            the corpus has changed.
        vocabulary: list of tokens, or `None` for that of the training text.
        max_words: maximum size of that vocabulary, or `None`.
        level: `"word"` or `"character"`.
        processes: `distribution.processes.Processes`. Each reads a small corpus itself; only the
            first one converts a large corpus to ids.

    Returns:
        `text.corpus.Corpus`.

    Raises:
        FileNotFoundError: if a file of the corpus is missing.
        ValueError: if one is empty or not UTF-8 text, or the processes read different texts.
    """
    cache, how = Path(cache), (vocabulary, max_words, level)
    if not processes.on_first(lambda: _size(directory) > MAPPED):
        found = corpus.load(directory, *how)
        processes.check_equal({"text": _digest(found)}, f"{directory}: the digest of its {{}}")
        return found
    if not processes.is_first:
        processes.wait()
        return corpus.mapped(read_words(cache / VOCABULARY, "Start all processes again."), cache)
    cache.mkdir(parents=True, exist_ok=True)
    texts = {part: _file_digest(corpus.find(directory, part)) for part in corpus.PARTS}
    limit = max_words if vocabulary is None else "words that were given"
    # Earlier versions, without <eos> for blank lines, did not write the last entry.
    origin = {"texts": texts, "level": level, "max_words": limit, "blank_lines": True}
    words = _cached_words(cache, origin, vocabulary)
    if words is not None:
        found = corpus.mapped(words, cache)
    else:
        (cache / ORIGIN).unlink(missing_ok=True)
        with progress_bar("tokens", file=sys.stdout) as bar:
            found = corpus.load(directory, *how, cache, lambda tokens: advance(bar, tokens))
        write_words(cache / VOCABULARY, found.vocabulary)
        write_json(cache / ORIGIN, {**origin, **_ids_state(cache)})
    processes.wait()
    return found


def _cached_words(cache, origin, vocabulary):
    """The vocabulary of cached ids if they are complete and of these texts, or `None`."""
    try:
        found, words = read_json(cache / ORIGIN, dict, ""), read_words(cache / VOCABULARY)
    except (FileNotFoundError, ValueError):
        return None
    if vocabulary is not None and words == list(vocabulary):
        origin = {**origin, "max_words": found.get("max_words")}  # its origin does not matter
    return words if found == {**origin, **_ids_state(cache)} else None


def _ids_state(cache):
    sizes = {path.name: path.stat().st_size for path in sorted(cache.glob("*.ids"))}
    return {"words": _file_digest(cache / VOCABULARY), "bytes": sizes}


def _file_digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(directory):
    return sum(path.stat().st_size for path in Path(directory).glob("*.txt"))


def _digest(found):
    """A short digest of the ids and the vocabulary of a corpus."""
    known = hashlib.sha256("".join(f"{word}\n" for word in found.vocabulary).encode())
    for ids in found[1:]:
        known.update(f"{len(ids)}\n".encode() + ids.tobytes())
    return known.hexdigest()[:16]


def word_counts(ids: np.ndarray, words: int, block: int = 10_000_000) -> np.ndarray:
    """Counts how often each word occurs in a text that may be larger than memory.

    Args:
        ids: integers (tokens,).
        words: V, size of the vocabulary.
        block: number of tokens counted at once.

    Returns:
        Integers (V,).

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.text.large_corpus import word_counts
    >>> word_counts(np.array([2, 0, 2]), 4).tolist()
    [1, 0, 2, 0]
    """
    parts = [ids[start : start + block] for start in range(0, len(ids), block)]
    return sum((np.bincount(part, minlength=words) for part in parts), np.zeros(words, "int64"))
