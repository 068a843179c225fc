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
    """Reads a corpus as `text.corpus.load` does, with files for the ids of a large one in `cache`.

    The files are written again only if the corpus has changed. Each of the
    `distribution.processes.Processes` reads a small corpus itself; only the first one converts a
    large corpus to ids. Raises `ValueError` if the processes read different texts.
    """
    cache, options = Path(cache), (vocabulary, max_words, level)
    texts = list(Path(directory).glob("*.txt"))
    if not processes.on_first(lambda: sum(path.stat().st_size for path in texts) > MAPPED):
        ids = corpus.load(directory, *options)
        processes.check_equal({"text": _digest(ids)}, f"{directory}: the digest of its {{}}")
        return ids
    if not processes.is_first:
        processes.wait()
        return corpus.mapped(read_words(cache / VOCABULARY, "Start all processes again."), cache)
    cache.mkdir(parents=True, exist_ok=True)
    digests = {part: _file_digest(corpus.find(directory, part)) for part in corpus.PARTS}
    limit = max_words if vocabulary is None else "words that were given"
    # Earlier versions, without <eos> for blank lines, did not write the last entry.
    origin = {"texts": digests, "level": level, "max_words": limit, "blank_lines": True}
    if (words := _cached_words(cache, origin, vocabulary)) is not None:
        ids = corpus.mapped(words, cache)
    else:
        (cache / ORIGIN).unlink(missing_ok=True)
        with progress_bar("tokens", file=sys.stdout) as bar:
            ids = corpus.load(directory, *options, cache, lambda tokens: advance(bar, tokens))
        write_words(cache / VOCABULARY, ids.vocabulary)
        write_json(cache / ORIGIN, {**origin, **_ids_state(cache)})
    processes.wait()
    return ids


def _cached_words(cache, origin, vocabulary):
    """The vocabulary of cached ids if they are complete and of these texts, or `None`."""
    try:
        cached, words = read_json(cache / ORIGIN, dict, ""), read_words(cache / VOCABULARY)
    except (FileNotFoundError, ValueError):
        return None
    if vocabulary is not None and words == list(vocabulary):
        origin = {**origin, "max_words": cached.get("max_words")}  # its origin does not matter
    return words if cached == {**origin, **_ids_state(cache)} else None


def _ids_state(cache):
    sizes = {path.name: path.stat().st_size for path in sorted(cache.glob("*.ids"))}
    return {"words": _file_digest(cache / VOCABULARY), "bytes": sizes}


def _file_digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(ids):
    """A short digest of the ids and the vocabulary of a corpus."""
    digest = hashlib.sha256("".join(f"{word}\n" for word in ids.vocabulary).encode())
    for part in ids[1:]:
        digest.update(f"{len(part)}\n".encode() + part.tobytes())
    return digest.hexdigest()[:16]


def word_counts(ids: np.ndarray, words: int) -> np.ndarray:
    """Counts (V,) of the words of a text of ids, which may be larger than memory.

    >>> word_counts(np.array([2, 0, 2]), 4).tolist()
    [1, 0, 2, 0]
    """
    counts = np.zeros(words, "int64")
    for start in range(0, len(ids), 10_000_000):
        counts += np.bincount(ids[start : start + 10_000_000], minlength=words)
    return counts
