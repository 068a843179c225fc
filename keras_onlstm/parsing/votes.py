"""Combines several trees of a sentence into the binary tree whose constituents have most votes."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from keras_onlstm.parsing.scores import walk
from keras_onlstm.parsing.trees import METHODS, check_tokens, from_splits
from keras_onlstm.utils import NltkTree

_BLOCK = 1 << 20  # numbers that `_ranges` compares at once


def consensus(trees: Iterable[NltkTree], weights: npt.ArrayLike | None = None) -> NltkTree:
    """Finds the binary tree whose constituents occur in the most trees.

    Ties are broken by splitting each constituent at the left-most position.

    Args:
        trees: iterable of `nltk.Tree` over the same words, of any shape and labels.
        weights: weight of each tree's votes, numbers of at least 0; default: 1.

    Returns:
        `nltk.Tree`, in the form of `build_tree`. Takes time O(words^3).

    Raises:
        ValueError: if there is no tree or no word, if the trees have different words, or if the
            weights are not finite numbers, 0 or above, one for each tree.

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import consensus
    >>> texts = "(S (A a b) c d)", "(S a (B b c) d)", "(S (C a b c) d)", "(S (A a b) (D c d))"
    >>> print(consensus(map(Tree.fromstring, texts)))
    (X (X a b) (X c d))
    >>> print(consensus(map(Tree.fromstring, texts), weights=[1, 3, 2, 1]))
    (X (X a (X b c)) d)
    """
    walked = [walk(tree) for tree in trees]  # (constituents, words) of each tree
    if not walked:
        raise ValueError("trees is empty: at least one tree must vote.")
    tokens = check_tokens(walked[0][1])
    for number, (_, words) in enumerate(walked, 1):
        if words != tokens:
            raise ValueError(f"tree {number} has other words than tree 1.")
    factors = _weights(weights, len(walked))
    votes = np.zeros((len(tokens) + 1,) * 2)  # [start, end]
    for (constituents, _), weight in zip(walked, factors, strict=True):
        # A set, because a unary constituent must not add a second vote for its span.
        spans = {(start, end) for _, start, end in constituents}
        votes[tuple(zip(*spans, strict=True))] += weight
    return _most_voted(votes, tokens)


def vote(
    distances: npt.ArrayLike,
    tokens: Iterable[str],
    methods: str | Iterable[str] = METHODS,
    weights: npt.ArrayLike | None = None,
) -> NltkTree:
    """Computes the `consensus` of trees given by their distances, without building these trees.

    Args:
        distances: numbers (rows, words), with a row for each voter, such as a layer of a model.
        tokens: list of as many words.
        methods: methods of `build_tree`; a row votes with one tree for each method.
        weights: weight of each row's votes, numbers of at least 0; default: 1.

    Raises:
        ValueError: if words, rows or methods are empty, a method is unknown, a number is not
            finite, the numbers of words or weights do not match, or a weight is negative.

    >>> from keras_onlstm.parsing import vote
    >>> print(vote([[9, 1, 8, 2], [9, 1, 2, 8], [9, 1, 3, 4]], "the cat saw it".split(), "binary"))
    (X (X (X the cat) saw) it)
    """
    tokens, methods = check_tokens(tokens), check_methods("methods", methods)
    values = np.asarray(distances, "float64")
    if values.ndim != 2 or values.shape[1] != len(tokens) or not len(values):
        raise ValueError(
            f"distances must have the shape (rows, {len(tokens)}), got the shape {values.shape}."
        )
    if not np.isfinite(values).all():
        row, index = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"distances[{row}, {index}] must be finite, got {values[row, index]}.")
    factors = _weights(weights, len(values))[:, None]  # (R, 1)
    votes = np.zeros((len(tokens) + 1,) * 2)  # [start, end]
    positions = np.arange(len(tokens))
    rows = max(1, _BLOCK // len(tokens) ** 2)
    for first in range(0, len(values), rows):
        part = slice(first, first + rows)
        before, after = _ranges(values[part])
        for method in methods:
            if method == "binary":
                # A split before a word divides the widest range where its distance is the largest.
                starts = np.maximum(before[:, 1:], 0)
                np.add.at(votes, (starts, after[:, 1:]), factors[part])
            else:
                np.add.at(votes, (before + 1, after), factors[part])
                # (x_i (x_>i)), unless it is the whole constituent, which has its vote.
                second = np.where(before + 1 < positions, factors[part], 0.0)
                np.add.at(votes, (positions, after), second)
    return _most_voted(votes, tokens)


def check_methods(name: str, methods: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the methods as a non-empty tuple of names that `build_tree` accepts."""
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    if not names or not set(names) <= set(METHODS):
        raise ValueError(f"{name} must be 'greedy', 'binary' or both, got {methods!r}.")
    return names


def _weights(weights, count):
    if weights is None:
        return np.ones(count)
    array = np.asarray(weights, "float64")
    if array.shape != (count,):
        raise ValueError(
            f"weights must have the shape ({count},), one for each voter, got {array.shape}."
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"weights must be finite and at least 0, got {array.tolist()}.")
    return array


def _ranges(values):
    """The range around each of the values (R, N) in which it is the first largest.

    Returns arrays (R, N): the last index before it with a value at least as large, or -1; and the
    first index after it with a larger value, or N.
    """
    positions = np.arange(values.shape[1])
    each, other = values[:, :, None], values[:, None, :]  # (R, N, 1), (R, 1, N)
    is_before = positions < positions[:, None]  # (N, N)
    before = np.where((other >= each) & is_before, positions, -1).max(axis=-1)
    after = np.where((other > each) & is_before.T, positions, len(positions)).min(axis=-1)
    return before, after


def _most_voted(votes, tokens):
    """The binary tree with the largest sum of votes (N + 1, N + 1), by CKY over [start, end)."""
    words = len(tokens)
    # Largest sums by width, indexed both by start and by end of the range. So the left and the
    # right parts of all splits of one width are two slices.
    by_start, by_end = np.zeros((2, words + 1, words + 1))  # [start or end, width]
    splits = np.zeros((words + 1, words + 1), "int32")  # [start, width]
    for width in range(2, words + 1):
        starts = slice(0, words - width + 1)
        sums = by_start[starts, 1:width] + by_end[width:, width - 1 : 0 : -1]  # (starts, splits)
        splits[starts, width] = sums.argmax(axis=1) + 1
        best = sums.max(axis=1) + votes.diagonal(width)
        by_start[starts, width] = by_end[width:, width] = best
    return from_splits(tokens, lambda start, end: start + int(splits[start, end - start]))
