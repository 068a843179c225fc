"""Files of a parser's K best dependency trees for each sentence, and of their scores.

The format is that of the published experiments. One file has CoNLL trees: the K best trees of a
sentence follow one another, best first. The other has a line of scores for each sentence. The
number of scores in a line is the number of the sentence's trees.

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
from keras_onlstm.dependencies.attachment import check_words
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.reading import lines
from keras_onlstm.utils.types import StrPath

__all__ = ["Candidates", "check_golds", "read", "write", "write_scores"]


class Candidates(NamedTuple):
    """The K best trees of a sentence.

    Attributes:
        trees: list of K `DependencyTree` of the same words, best first.
        scores: array (K,), the parser's scores.
    """

    trees: list[DependencyTree]
    scores: np.ndarray


def read(lists: StrPath, scores: StrPath) -> list[Candidates]:
    """Reads the K best trees of sentences.

    Args:
        lists: file of trees, in any format of `datasets.conll`.
        scores: file of scores.

    Returns:
        List of `Candidates`.

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: if a score is not a finite number, the numbers of trees and of scores differ,
            the trees of a sentence have different words, or one is not projective. The message
            has the line, or the sentence and the tree.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.evaluation.candidates import Candidates, read, write
    >>> trees = [DependencyTree(["he", "fell"], heads) for heads in ([2, 0], [0, 1])]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     files = pathlib.Path(directory, "a.conll"), pathlib.Path(directory, "a.scores")
    ...     write([Candidates(trees, [2.5, -1.0])], *files)
    ...     ((found, scores),) = read(*files)
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
        _check_block(block, f"{lists}, sentence {number}")
        found.append(Candidates(block, np.array(row)))
    rest = sum(1 for _ in trees)
    if rest or not found:
        raise ValueError(
            f"{lists}: has {read + rest:,} trees, and {scores} has {read:,} scores. Each tree has "
            "one, and there is one sentence at the least."
        )
    return found


def _numbers(path: StrPath) -> Iterator[list[float]]:
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
                    "sentence, finite numbers apart by blanks."
                )
            yield row


def _check_block(trees, name):
    for rank, tree in enumerate(trees, 1):
        check_words(f"{name}, tree {rank}", tree, trees[0].words)
        if not tree.is_projective:
            raise ValueError(
                f"{name}, tree {rank}: is not projective, so that no model of these scores it. "
                "Leave it out, with its score, or write it projectivized()."
            )


def check_golds(
    candidates: Sequence[Candidates], golds: Sequence[DependencyTree], name: StrPath
) -> None:
    """Checks that gold trees have the same sentences as the candidates.

    Args:
        candidates: list of `Candidates`.
        golds: list of `DependencyTree`.
        name: file of the candidates, for the error message.

    Raises:
        ValueError: if the sentences differ.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.evaluation.candidates import Candidates, check_golds
    >>> found = [Candidates([chain(["he", "fell"])], [0.5])]
    >>> check_golds(found, [chain(["she", "fell"])], "a.conll")
    Traceback (most recent call last):
    ...
    ValueError: a.conll, sentence 1: word 1 must be 'she', not 'he'.
    """
    if len(candidates) != len(golds):
        raise ValueError(
            f"{name}: has {len(candidates):,} sentences, and {len(golds):,} gold trees."
        )
    for number, ((trees, _), gold) in enumerate(zip(candidates, golds, strict=True), 1):
        check_words(f"{name}, sentence {number}", trees[0], gold.words)


def write(candidates: Iterable[Candidates], lists: StrPath, scores: StrPath) -> None:
    """Writes the K best trees of sentences in the format of `read`.

    Args:
        candidates: list of `Candidates`.
        lists: file of trees in CoNLL-X, replaced atomically.
        scores: file of scores, replaced atomically.

    Raises:
        ValueError: if a word cannot be written in CoNLL-X.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.evaluation.candidates import Candidates, write
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     lists, scores = (pathlib.Path(directory, f"a.{end}") for end in ("conll", "scores"))
    ...     write(
    ...         [Candidates([chain(["yes"])], [0.5]), Candidates([chain(["no"])], [2])],
    ...         lists,
    ...         scores,
    ...     )
    ...     scores.read_text().splitlines()
    ['0.5', '2.0']
    """
    candidates = list(candidates)
    conll.write(chain.from_iterable(trees for trees, _ in candidates), lists)
    write_scores((found for _, found in candidates), scores)


def write_scores(rows: Iterable[npt.ArrayLike], path: StrPath) -> None:
    """Writes the scores of each sentence in a line, with full precision.

    Args:
        rows: list of arrays (K,).
        path: the file, replaced atomically.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.evaluation.candidates import write_scores
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_scores([[2.5, -1], [0.125]], pathlib.Path(directory, "a.scores"))
    ...     pathlib.Path(directory, "a.scores").read_text().splitlines()
    ['2.5 -1.0', '0.125']
    """
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(" ".join(map(repr, np.asarray(row, "float64").tolist())) + "\n")
