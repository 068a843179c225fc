"""Choosing among the K best dependency trees of a sentence, and whether that made them better.

A model that gives log P(sentence | tree) chooses the tree under which its words are most likely.
How many trees it is let choose from, K, is found on validation sentences.

Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 3.3,
https://aclanthology.org/N16-1035, and the code that goes with it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Difference", "bootstrap", "choose", "last_best", "table"]

_BLOCK = 2**22  # numbers of draws that are held at once


class Difference(NamedTuple):
    """What two ways to parse differ by, and how sure that is.

    Attributes:
        value: share of right words of the second one, minus that of the first.
        low: with `high`, the interval of 95% over draws of sentences.
        high: see `low`.
        p: how likely draws are that have the difference on the other side of 0, doubled: of a test
            of both sides.
    """

    value: float
    low: float
    high: float
    p: float


def table(rows: Sequence[npt.ArrayLike], fill: float) -> np.ndarray:
    """Rows of different lengths as one array.

    Args:
        rows: list of S arrays.
        fill: number that stands where a row has ended.

    Returns:
        Array (S, largest length).

    Example:

    >>> from keras_onlstm.evaluation.reranking import table
    >>> table([[1, 2], [3]], 0).tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """
    arrays = [np.asarray(row, "float64") for row in rows]
    full = np.full((len(arrays), max(map(len, arrays))), float(fill))
    for place, array in enumerate(arrays):
        full[place, : len(array)] = array
    return full


def choose(scores: np.ndarray, count: int) -> np.ndarray:
    """The tree with the highest score of the first ones of every sentence, of equals the first.

    Args:
        scores: array (S, K), minus infinity where a sentence has no more trees.
        count: integer, how many to choose from.

    Returns:
        Integers (S,), from 0 on.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.evaluation.reranking import choose
    >>> choose(np.array([[-9.0, -7.0, -7.0], [-5.0, -6.0, -4.0]]), 2).tolist()
    [1, 0]
    """
    return scores[:, :count].argmax(1)


def last_best(values: npt.ArrayLike) -> int:
    """The place of the largest value, of equals the last: how K is chosen.

    Args:
        values: array (N,).

    Returns:
        Integer, from 0 on.

    Example:

    >>> from keras_onlstm.evaluation.reranking import last_best
    >>> last_best([90.0, 91.5, 91.5, 91.0])
    2
    """
    values = np.asarray(values)
    return len(values) - 1 - int(values[::-1].argmax())


def bootstrap(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    words: npt.ArrayLike,
    draws: int = 10_000,
    seed: int = 0,
) -> Difference:
    """How sure it is that one way to parse is better than another on the same sentences.

    Sentences are drawn, with those drawn before, until there are as many as there were.

    Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapters 13 and 15.

    Args:
        first: integers (S,), how many words of every sentence the first way has right.
        second: likewise, of the other.
        words: integers (S,), how many words of every sentence count.
        draws: how often that many sentences are drawn.
        seed: integer.

    Returns:
        `Difference`. Its p is never less than 2 / (draws + 1).

    Raises:
        ValueError: if no word counts.

    Example:

    >>> from keras_onlstm.evaluation.reranking import bootstrap
    >>> found = bootstrap([8, 4, 9, 5], [9, 5, 9, 7], [10, 6, 10, 8])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.1176, 0.0278, 0.2143)
    """
    words = np.asarray(words, "int64")
    gains = np.asarray(second, "int64") - np.asarray(first, "int64")
    if not words.sum():
        raise ValueError("No word counts: all are punctuation.")
    generator, size = np.random.default_rng(seed), len(words)
    found = []
    for start in range(0, draws, max(_BLOCK // size, 1)):
        some = min(max(_BLOCK // size, 1), draws - start)
        times = generator.multinomial(size, np.full(size, 1 / size), some)  # (draws, S)
        # A draw of sentences without words tells nothing, and counts as no difference.
        found.append(times @ gains / np.maximum(times @ words, 1))
    drawn = np.concatenate(found)
    low, high = np.quantile(drawn, [0.025, 0.975])
    beyond = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = min(2 * (1 + int(beyond)) / (draws + 1), 1.0)
    return Difference(float(gains.sum() / words.sum()), float(low), float(high), p)
