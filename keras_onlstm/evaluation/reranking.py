"""Choosing among the K best dependency trees that a parser gives a sentence.

A model that gives log P(sentence | tree) chooses the tree under which its words are most likely.
How many trees it is let choose from, K, is found on validation sentences.

The files are those of the published experiments: CoNLL trees, the K best ones of a sentence one
after the other, best first; and beside them the parser's scores, those of a sentence in a line. So
a line of scores says how many trees there are of the sentence.

Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 3.3,
https://aclanthology.org/N16-1035, and the code that goes with it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.reading import lines
from keras_onlstm.utils.types import StrPath

__all__ = [
    "Candidates", "Difference",
    "bootstrap", "check_golds", "choose", "last_best", "read", "table", "write", "write_scores",
]  # fmt: skip

_BLOCK = 2**22  # numbers of draws that are held at once


class Candidates(NamedTuple):
    """The trees that a parser gives a sentence.

    Attributes:
        trees: list of K `DependencyTree` of the same words, best first.
        scores: array (K,), the parser's.
    """

    trees: list[DependencyTree]
    scores: np.ndarray


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


def read(lists: StrPath, scores: StrPath) -> list[Candidates]:
    """Reads the K best trees of sentences.

    Args:
        lists: file of trees, in any format of `datasets.conll`.
        scores: file of scores.

    Returns:
        List of `Candidates`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a score is no finite number, the numbers of trees and of scores differ, the
            trees of a sentence have different words, or one is not projective; the message names
            the line, or the sentence and the tree.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.evaluation import reranking
    >>> trees = [DependencyTree(["he", "fell"], heads) for heads in ([2, 0], [0, 1])]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     files = pathlib.Path(directory, "a.conll"), pathlib.Path(directory, "a.scores")
    ...     reranking.write([reranking.Candidates(trees, [2.5, -1.0])], *files)
    ...     ((found, scores),) = reranking.read(*files)
    >>> [tree.heads for tree in found], scores.tolist()
    ([(2, 0), (0, 1)], [2.5, -1.0])
    """
    trees, read, found = iter(conll.read(lists)), 0, []
    for number, row in enumerate(_numbers(scores), 1):
        block = list(islice(trees, len(row)))
        read += len(block)
        if len(block) < len(row):
            raise ValueError(
                f"{scores}, line {number}: the trees end before its scores do: {lists} has "
                f"{read:,}. A line has as many scores as there are trees of a sentence."
            )
        _check_block(block, f"{lists}, sentence {number}", scores)
        found.append(Candidates(block, np.array(row)))
    rest = sum(1 for _ in trees)
    if rest or not found:
        raise ValueError(
            f"{lists}: has {read + rest:,} trees, and {scores} has {read:,} scores. Each tree has "
            "one, and there is one sentence at the least."
        )
    return found


def _numbers(path) -> Iterator[list[float]]:
    """The numbers of every line of a file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            row = []
            for text in line.split():
                try:
                    row.append(float(text))
                except ValueError:
                    row.append(math.nan)
                if not math.isfinite(row[-1]):
                    raise ValueError(
                        f"{path}, line {number}: {text[:40]!r} is no finite number. A line has the "
                        "scores of the trees of a sentence, apart by blanks."
                    )
            if not row:
                raise ValueError(
                    f"{path}, line {number}: has no score. A sentence without a tree has no line."
                )
            yield row


def _check_block(trees, name, scores):
    for rank, tree in enumerate(trees, 1):
        if tree.words != trees[0].words:
            raise ValueError(
                f"{name}, tree {rank}: {_differing(tree.words, trees[0].words, 'the first tree')} "
                f"Are there as many trees as {scores} has scores in that line?"
            )
        if not tree.is_projective:
            raise ValueError(
                f"{name}, tree {rank}: is not projective, so that no model of these scores it. "
                "Leave it out, with its score, or write it projectivized()."
            )


def _differing(words, others, name):
    """Where two sentences differ, in words."""
    if len(words) != len(others):
        return f"has {len(words)} words, {name} {len(others)}."
    place = next(p for p, (one, other) in enumerate(zip(words, others, strict=True)) if one != other)
    return f"word {place + 1} is {words[place][:40]!r}, of {name} {others[place][:40]!r}."


def check_golds(
    candidates: Sequence[Candidates], golds: Sequence[DependencyTree], name: StrPath
) -> None:
    """Refuses gold trees that are of other sentences.

    Args:
        candidates: list of `Candidates`.
        golds: list of `DependencyTree`.
        name: of the file of the candidates, for the message.

    Raises:
        ValueError: if they are.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.evaluation.reranking import Candidates, check_golds
    >>> check_golds([Candidates([chain(["he", "fell"])], [0.5])], [chain(["she", "fell"])], "a.conll")
    Traceback (most recent call last):
    ...
    ValueError: a.conll, sentence 1: word 1 is 'he', of the gold tree 'she'.
    """
    if len(candidates) != len(golds):
        raise ValueError(f"{name}: has {len(candidates):,} sentences, and {len(golds):,} gold trees.")
    for number, ((trees, _), gold) in enumerate(zip(candidates, golds, strict=True), 1):
        if trees[0].words != gold.words:
            differing = _differing(trees[0].words, gold.words, "the gold tree")
            raise ValueError(f"{name}, sentence {number}: {differing}")


def write(candidates: Iterable[Candidates], lists: StrPath, scores: StrPath) -> None:
    """Writes the K best trees of sentences, as `read` takes them.

    Args:
        candidates: list of `Candidates`.
        lists: file of trees, CoNLL-X, which is replaced at once or not at all.
        scores: file of scores, likewise.

    Raises:
        ValueError: if a word does not fit into such a file.
    """
    candidates = list(candidates)
    conll.write(chain.from_iterable(trees for trees, _ in candidates), lists)
    write_scores((found for _, found in candidates), scores)


def write_scores(rows: Iterable[npt.ArrayLike], path: StrPath) -> None:
    """Writes scores, those of a sentence in a line, so that they are read as they were.

    Args:
        rows: list of arrays (K,).
        path: the file, which is replaced at once or not at all.
    """
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(" ".join(map(repr, np.asarray(row, "float64").tolist())) + "\n")


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
    (0.1176, 0.0278, 0.2083)
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
