"""Many trees of a sentence put together: the binary tree whose constituents got the most votes.

What several models, layers or algorithms agree on is right more often than what one of them says.
Each casts a vote for every constituent of its tree, and the best of all binary trees is found by
dynamic programming, exactly.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from keras_onlstm.parsing.scores import walk
from keras_onlstm.parsing.trees import METHODS, checked, from_splits
from keras_onlstm.utils.types import NltkTree

__all__ = ["check_methods", "consensus", "vote"]

_LARGEST = 1 << 20  # numbers in one comparison of all words with all words


def consensus(trees: Iterable[NltkTree], weights: npt.ArrayLike | None = None) -> NltkTree:
    """The binary tree whose constituents have the most votes, one from each tree that has them.

    Of trees with equally many, each constituent parts at the left-most place.

    Args:
        trees: iterable of `nltk.Tree` over the same words, of any shape and labels.
        weights: how much each tree's votes count, numbers of at least 0; default: 1.

    Returns:
        `nltk.Tree`, as `build_tree` makes them. Takes time O(words^3).

    Raises:
        ValueError: if there are no trees or no words, words differ, or there are not as many
            weights, or others.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import consensus
    >>> texts = "(S (A a b) c d)", "(S a (B b c) d)", "(S (C a b c) d)", "(S (A a b) (D c d))"
    >>> print(consensus(map(Tree.fromstring, texts)))
    (X (X a b) (X c d))
    >>> print(consensus(map(Tree.fromstring, texts), weights=[1, 3, 2, 1]))
    (X (X a (X b c)) d)
    """
    walked = [walk(tree) for tree in trees]
    if not walked:
        raise ValueError("There is no tree to vote.")
    tokens = checked(walked[0][1])
    for number, (_, words) in enumerate(walked, 1):
        if words != tokens:
            raise ValueError(f"tree {number}: has other words than the first tree.")
    factors = _weights(weights, len(walked))
    votes = np.zeros((len(tokens) + 1,) * 2)  # [start, end]
    for (constituents, _), weight in zip(walked, factors, strict=True):
        # A set: a constituent around nothing but another one is no second vote.
        spans = {(start, end) for _, start, end in constituents}
        votes[tuple(zip(*spans, strict=True))] += weight
    return _elected(votes, tokens)


def vote(
    distances: npt.ArrayLike,
    tokens: Iterable[str],
    methods: str | Iterable[str] = METHODS,
    weights: npt.ArrayLike | None = None,
) -> NltkTree:
    """`consensus` of the trees that rows of distances describe, without making these trees.

    Args:
        distances: (rows, words) numbers: one row a voter, such as a layer of a model.
        tokens: list of as many words.
        methods: of `build_tree`: a row votes with its tree of each.
        weights: how much each row's votes count, numbers of at least 0; default: 1.

    Returns:
        `nltk.Tree`.

    Raises:
        ValueError: if there is no word, row or method, a method is unknown, a number is not finite,
            or there are not as many words or weights, or negative ones.

    Example:

    >>> from keras_onlstm.parsing import vote
    >>> distances = [
    ...     [0.9, 0.1, 0.8, 0.3, 0.2],
    ...     [0.9, 0.2, 0.3, 0.8, 0.1],
    ...     [0.9, 0.1, 0.3, 0.4, 0.5],
    ... ]
    >>> print(vote(distances, "the cat saw a dog".split(), methods=["binary"]))
    (X (X (X the cat) saw) (X a dog))
    """
    tokens, methods = checked(tokens), check_methods("methods", methods)
    values = np.asarray(distances, "float64")
    if values.ndim != 2 or values.shape[1] != len(tokens) or not len(values):
        raise ValueError(
            f"{len(tokens)} words need rows of as many distances, not shape {values.shape}."
        )
    if not np.isfinite(values).all():
        row, place = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"the distance of word {place + 1} in row {row + 1} is {values[row, place]}: not a "
            "number."
        )
    factors = _weights(weights, len(values))[:, None]  # (R, 1)
    votes = np.zeros((len(tokens) + 1,) * 2)  # [start, end]
    places = np.arange(len(tokens))
    rows = max(1, _LARGEST // len(tokens) ** 2)
    for first in range(0, len(values), rows):
        part = slice(first, first + rows)
        before, after = _nearest(values[part])
        for method in methods:
            if method == "binary":
                # Between the words a gap divides, the word behind it has the largest distance.
                starts = np.maximum(before[:, 1:], 0)
                np.add.at(votes, (starts, after[:, 1:]), factors[part])
            else:
                np.add.at(votes, (before + 1, after), factors[part])
                # The word and what follows it, which may be all of the constituent.
                second = np.where(before + 1 < places, factors[part], 0.0)
                np.add.at(votes, (places, after), second)
    return _elected(votes, tokens)


def check_methods(name: str, methods: str | Iterable[str]) -> tuple[str, ...]:
    """The methods of `build_tree` as a tuple; refuses others, and none."""
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    if not names or not set(names) <= set(METHODS):
        raise ValueError(f"{name} are 'greedy', 'binary' or both, not {methods!r}.")
    return names


def _weights(weights, count):
    if weights is None:
        return np.ones(count)
    array = np.asarray(weights, "float64")
    if array.shape != (count,):
        raise ValueError(f"{count} voters need as many weights, not shape {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"weights are numbers, 0 or above, not {array.tolist()}.")
    return array


def _nearest(values):
    """Where the range ends in which a value is the first of the largest, as `build_tree` has it.

    Args:
        values: array (R, N).

    Returns:
        Arrays (R, N): the last place before with a value as large, or -1; and the first one behind
        with a larger value, or N.
    """
    places = np.arange(values.shape[1])
    here, there = values[:, :, None], values[:, None, :]  # (R, N, 1), (R, 1, N)
    left = places < places[:, None]  # (N, N)
    before = np.where((there >= here) & left, places, -1).max(axis=-1)
    after = np.where((there > here) & left.T, places, len(places)).min(axis=-1)
    return before, after


def _elected(votes, tokens):
    """The binary tree with the largest sum of votes, which are (N + 1, N + 1): [start, end]."""
    words = len(tokens)
    # The best sums of all ranges so wide, by where they start and by where they end: so the halves
    # of all ranges of one width are two plain blocks.
    by_start, by_end = np.zeros((2, words + 1, words + 1))  # [start or end, width]
    splits = np.zeros((words + 1, words + 1), "int32")  # [start, width]
    for width in range(2, words + 1):
        starts = slice(0, words - width + 1)
        sums = by_start[starts, 1:width] + by_end[width:, width - 1 : 0 : -1]  # (starts, splits)
        splits[starts, width] = sums.argmax(axis=1) + 1
        best = sums.max(axis=1) + votes.diagonal(width)
        by_start[starts, width] = by_end[width:, width] = best
    return from_splits(tokens, lambda start, end: start + int(splits[start, end - start]))
