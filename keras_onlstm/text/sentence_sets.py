"""Splits a text of ids into sentences, and removes or adds sentences."""

from collections.abc import Container, Iterable, Sequence

import numpy as np

__all__ = ["split", "with_sentences", "without_sentences"]


def split(ids: np.ndarray, eos: int) -> list[np.ndarray]:
    """Splits a text after each `eos` into nonempty arrays without `eos`."""
    ends = np.flatnonzero(ids == eos)
    starts = [0, *(ends + 1)]
    parts = [ids[start:end] for start, end in zip(starts, [*ends, len(ids)], strict=True)]
    return [part for part in parts if len(part)]


def _joined(sentences, eos):
    return np.concatenate([np.append(sentence, eos) for sentence in sentences]).astype("int32")


def _keys(sentences, ignored):
    """The ids of sentences, without ignored ids."""
    return [tuple(i for i in map(int, sentence) if i not in ignored) for sentence in sentences]


def without_sentences(
    ids: np.ndarray, eos: int, others: Iterable[Sequence[int]], ignored: Container[int] = ()
) -> np.ndarray:
    """Removes sentences from a text, compared without the ids in `ignored`."""
    unwanted, present = set(_keys(others, ignored)), split(ids, eos)
    keys = _keys(present, ignored)
    kept = [part for part, key in zip(present, keys, strict=True) if key not in unwanted]
    if not kept:
        raise ValueError("every sentence of the training text is one of those left out of it.")
    return _joined(kept, eos)


def with_sentences(
    ids: np.ndarray, eos: int, others: Iterable[Sequence[int]], ignored: Container[int] = ()
) -> np.ndarray:
    """Appends sentences missing from a text, compared without the ids in `ignored`."""
    present, more = split(ids, eos), [np.asarray(sentence) for sentence in others]
    known, keys = set(_keys(present, ignored)), _keys(more, ignored)
    missing = [part for part, key in zip(more, keys, strict=True) if key not in known]
    return _joined([*present, *missing], eos)
