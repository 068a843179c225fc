"""Reranking of the K best dependency trees of a sentence, and files of such candidates."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.attachment import check_words
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import lines, replacing

__all__ = ["Candidates", "Difference", "bootstrap", "read", "write"]

_BLOCK = 2**22  # largest number of entries of (draws, sentences) in memory


class Candidates(NamedTuple):
    """The K best trees of a sentence, best first, and the parser's scores (K,)."""

    trees: list[DependencyTree]
    scores: np.ndarray


def read(lists: StrPath, scores: StrPath) -> list[Candidates]:
    """Reads the K best trees of sentences.

    Args:
        lists: file of trees, in any format of `datasets.conll`.
        scores: file of scores, one line per sentence.

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: if a score is not a finite number, the numbers of trees and of scores differ,
            the trees of a sentence have different words, or one is not projective.

    >>> trees = [DependencyTree(["he", "fell"], heads) for heads in ([2, 0], [0, 1])]
    >>> write([Candidates(trees, [2.5, -1.0])], "a.conll", "a.scores")
    >>> ((trees, scores),) = read("a.conll", "a.scores")
    >>> [tree.heads for tree in trees], scores.tolist()
    ([(2, 0), (0, 1)], [2.5, -1.0])
    """
    trees, count, candidates = iter(conll.read(lists)), 0, []
    for number, row in enumerate(_read_scores(scores), 1):
        block = list(islice(trees, len(row)))
        count += len(block)
        if len(block) < len(row):
            raise ValueError(
                f"{scores}, line {number}: has {len(row)} scores, but {lists} ends after its tree "
                f"{count:,}. A line must have one score for each tree of a sentence."
            )
        _check_trees(block, f"{lists}, sentence {number}")
        candidates.append(Candidates(block, np.array(row)))
    rest = sum(1 for _ in trees)
    if rest or not candidates:
        raise ValueError(
            f"{lists}: has {count + rest:,} trees, and {scores} has {count:,} scores. Give at "
            "least one sentence, and one score for each tree."
        )
    return candidates


def _read_scores(path: StrPath) -> Iterator[list[float]]:
    """Yields the scores in each line of a file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            try:
                row = [float(text) for text in line.split()]
            except ValueError:
                row = []
            if not row or not all(map(math.isfinite, row)):
                raise ValueError(
                    f"{path}, line {number}: {line[:40]!r} must be the scores of the trees of a "
                    "sentence: finite numbers, separated by blanks."
                )
            yield row


def _check_trees(trees, name):
    for rank, tree in enumerate(trees, 1):
        check_words(f"{name}, tree {rank}", tree, trees[0].words)
        if not tree.is_projective:
            raise ValueError(
                f"{name}, tree {rank}: is not projective, so a TreeLSTM cannot score it. Remove it "
                "and its score, or projectivize it with projectivize()."
            )


def check_golds(
    candidates: Sequence[Candidates], golds: Sequence[DependencyTree], name: StrPath
) -> None:
    """Checks that gold trees have the same sentences as the candidates of the file `name`."""
    if len(candidates) != len(golds):
        raise ValueError(
            f"{name}: has {len(candidates):,} sentences, but there are {len(golds):,} gold trees."
        )
    for number, ((trees, _), gold) in enumerate(zip(candidates, golds, strict=True), 1):
        check_words(f"{name}, sentence {number}", trees[0], gold.words)


def write(candidates: Iterable[Candidates], lists: StrPath, scores: StrPath) -> None:
    """Writes the K best trees of sentences in the format of `read`, each file atomically."""
    candidates = list(candidates)
    conll.write(chain.from_iterable(trees for trees, _ in candidates), lists)
    write_scores((row for _, row in candidates), scores)


def write_scores(rows: Iterable[npt.ArrayLike], path: StrPath) -> None:
    """Writes the scores of each sentence in a line, with full precision, atomically."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(" ".join(map(repr, np.asarray(row, "float64").tolist())) + "\n")


def table(rows: Sequence[npt.ArrayLike], fill: float) -> np.ndarray:
    """Pads rows of different lengths to one array (rows, largest length)."""
    arrays = [np.asarray(row, "float64") for row in rows]
    padded = np.full((len(arrays), max(map(len, arrays))), float(fill))
    for index, array in enumerate(arrays):
        padded[index, : len(array)] = array
    return padded


def choose(scores: np.ndarray, count: int) -> np.ndarray:
    """The index (S,) of the best of the first `count` scores (S, K); ties go to the first."""
    return scores[:, :count].argmax(1)


def last_best(values: npt.ArrayLike) -> int:
    """The index of the largest value; ties go to the last. Used to choose K."""
    values = np.asarray(values)
    return len(values) - 1 - int(values[::-1].argmax())


class Difference(NamedTuple):
    """Difference in accuracy of two parsers, second minus first, with a 95% confidence interval."""

    value: float
    low: float
    high: float
    p: float  # two-sided: twice the share of draws whose difference has the other sign


def bootstrap(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    words: npt.ArrayLike,
    draws: int = 10_000,
    seed: int = 0,
) -> Difference:
    """Bootstrap test of whether one parser is better than another on the same sentences.

    Each draw samples S sentences with replacement. The p-value is never less than 2 / (draws + 1).

    Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapters 13 and 15.

    Args:
        first: integers (S,), number of words of every sentence that the first parser has right.
        second: integers (S,), the same for the second parser.
        words: integers (S,), number of scored words in every sentence.
        draws: number of bootstrap samples.
        seed: integer.

    >>> difference = bootstrap([8, 4, 9, 5], [9, 5, 9, 7], [10, 6, 10, 8])
    >>> round(difference.value, 4), round(difference.low, 4), round(difference.high, 4)
    (0.1176, 0.0278, 0.2143)
    """
    words = np.asarray(words, "int64")
    gains = np.asarray(second, "int64") - np.asarray(first, "int64")
    if not words.sum():
        raise ValueError("words contains no scored word: all are punctuation.")
    generator, size = np.random.default_rng(seed), len(words)
    block = max(_BLOCK // size, 1)
    blocks = []
    for start in range(0, draws, block):
        count = min(block, draws - start)
        times = generator.multinomial(size, np.full(size, 1 / size), count)  # (draws, S)
        # A sample without scored words counts as no difference.
        blocks.append(times @ gains / np.maximum(times @ words, 1))
    differences = np.concatenate(blocks)
    low, high = np.quantile(differences, [0.025, 0.975])
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(2 * (1 + int(beyond)) / (draws + 1), 1.0)
    return Difference(float(gains.sum() / words.sum()), float(low), float(high), p)
