"""Reranking of the K best dependency trees of a sentence, and a significance test of the gain.

A model that gives log P(sentence | tree) chooses the tree under which the words are most likely.
The number of trees to choose from, K, is tuned on validation sentences.

Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 3.3,
https://aclanthology.org/N16-1035, and the code that goes with it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Difference", "bootstrap", "choose", "last_best", "table"]

_BLOCK = 2**22  # largest number of entries of (draws, sentences) in memory


class Difference(NamedTuple):
    """Difference in accuracy of two parsers, with a bootstrap confidence interval.

    Attributes:
        value: accuracy of the second parser minus accuracy of the first, by words.
        low: lower end of the 95% interval over resampled sentences.
        high: upper end of the interval.
        p: two-sided p-value: twice the share of draws whose difference has the other sign.
    """

    value: float
    low: float
    high: float
    p: float


def table(rows: Sequence[npt.ArrayLike], fill: float) -> np.ndarray:
    """Pads rows of different lengths to one array.

    Args:
        rows: list of S arrays.
        fill: padding value after the end of a row.

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
    """Chooses the best of the first `count` trees of every sentence; ties go to the first.

    Args:
        scores: array (S, K), minus infinity where a sentence has fewer trees.
        count: integer, number of trees to choose from.

    Returns:
        Integers (S,), 0-based.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.evaluation.reranking import choose
    >>> choose(np.array([[-9.0, -7.0, -7.0], [-5.0, -6.0, -4.0]]), 2).tolist()
    [1, 0]
    """
    return scores[:, :count].argmax(1)


def last_best(values: npt.ArrayLike) -> int:
    """Index of the largest value; ties go to the last. Used to choose K.

    Args:
        values: array (N,).

    Returns:
        Integer, 0-based.

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
    """Bootstrap test of whether one parser is better than another on the same sentences.

    Each draw samples S sentences with replacement.

    Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapters 13 and 15.

    Args:
        first: integers (S,), number of words of every sentence that the first parser has right.
        second: integers (S,), the same for the second parser.
        words: integers (S,), number of scored words in every sentence.
        draws: number of bootstrap samples.
        seed: integer.

    Returns:
        `Difference`. Its p is never less than 2 / (draws + 1).

    Raises:
        ValueError: if no words are scored.

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
        # A sample without scored words counts as no difference.
        found.append(times @ gains / np.maximum(times @ words, 1))
    drawn = np.concatenate(found)
    low, high = np.quantile(drawn, [0.025, 0.975])
    beyond = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = min(2 * (1 + int(beyond)) / (draws + 1), 1.0)
    return Difference(float(gains.sum() / words.sum()), float(low), float(high), p)
