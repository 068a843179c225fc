"""Eisner's algorithm: the best projective dependency trees, given a score for every arc.

Charts hold the best analyses of every span of words: *complete* spans, a word and its descendants
on one side, and *incomplete* spans, two words and the arc between them. Each tree has only one
derivation from them, so the K best derivations are the K best trees.

Sources: Eisner 1996, "Three New Probabilistic Models for Dependency Parsing",
https://aclanthology.org/C96-1058; Huang and Chiang 2005, "Better k-best Parsing", algorithm 1,
https://aclanthology.org/W05-1506.
"""

from typing import NamedTuple

import numpy as np

from keras_onlstm.utils.validation import check_integer

# Axes: N words, counted from 0 here; K best of every span; S spans of one width, by their first
# word; C split points of a span; P pairs of a rank of the left part and one of the right part.


class _Chart:
    """The K best scores of every span, and backpointers.

    Width: last word - first word. Scores are stored by either word, so every lookup is a slice.
    """

    def __init__(self, count, size):
        self.by_first = np.full((count, count, size), -np.inf)  # (N, width, K)
        self.by_last = np.full((count, count, size), -np.inf)
        self.made = np.zeros((count, count, size, 3), "int32")  # split point, ranks of both parts

    def put(self, width, scores, made):  # (S, K), (S, K, 3)
        self.by_first[: len(scores), width] = scores
        self.by_last[width:, width] = scores
        self.made[: len(scores), width] = made


class _Pairs(NamedTuple):
    """Pairs of ranks of two parts whose sum can be among the K best: (P,) each."""

    left: np.ndarray
    right: np.ndarray
    size: int  # K

    @classmethod
    def of(cls, size: int) -> "_Pairs":
        # With ranks a and b, counted from 1, at least a b - 1 other pairs are as good.
        ranks = np.arange(1, size + 1)
        left, right = np.nonzero(ranks[:, None] * ranks <= size)
        return cls(left, right, size)

    def best(self, left, right):
        """The K best pairs of a left and a right part, best first.

        Args:
            left: scores (S, C, K).
            right: scores (S, C, K).

        Returns:
            Scores (S, K), minus infinity if there are fewer pairs, and backpointers (S, K, 3):
            split point, rank on the left, rank on the right.
        """
        sums = left[..., self.left] + right[..., self.right]  # (S, C, P)
        flat = sums.reshape(len(sums), -1)  # (S, C * P)
        if self.size == 1:
            order = flat.argmax(1)[:, None]
        else:
            order = np.arange(flat.shape[1])[None]
            if flat.shape[1] > self.size:
                order = np.argpartition(-flat, self.size - 1, axis=1)[:, : self.size]
            ranks = np.argsort(-np.take_along_axis(flat, order, 1), axis=1, kind="stable")
            order = np.take_along_axis(np.broadcast_to(order, ranks.shape), ranks, 1)
        scores = np.full((len(flat), self.size), -np.inf)
        made = np.zeros((len(flat), self.size, 3), "int32")
        found = order.shape[1]
        scores[:, :found] = np.take_along_axis(flat, order, 1)
        cut, pair = np.divmod(order, len(self.left))
        made[:, :found] = np.stack([cut, self.left[pair], self.right[pair]], -1)
        return scores, made


def best_trees(scores: np.ndarray, count: int = 1) -> list[tuple[list[int], float]]:
    """Finds the projective trees with the highest sums of arc scores, one word under ROOT.

    Args:
        scores: array (n + 1, n): the arc scores from each head, ROOT first, to each word.
        count: K, the maximum number of trees.

    Returns:
        List of pairs, best first: heads, counted from 1 with 0 for ROOT, and the sum. There are
        fewer than K if the sentence has fewer trees.
    """
    size = check_integer("count", count)
    words = scores.shape[1]
    if scores.shape != (words + 1, words) or not words or not np.isfinite(scores).all():
        raise ValueError(f"scores are n + 1 by n finite numbers, not of shape {scores.shape}.")
    pairs = _Pairs.of(size)
    arcs = np.asarray(scores[1:], "float64")  # (N, N), from word to word
    left, right = _Chart(words, size), _Chart(words, size)  # complete; head last, first
    to_left, to_right = _Chart(words, size), _Chart(words, size)  # incomplete, same backpointers
    leaf = np.full((words, size), -np.inf)
    leaf[:, 0] = 0.0
    for chart in (left, right):
        chart.put(0, leaf, 0)
    for width in range(1, words):
        first = slice(0, words - width)
        last = slice(width, words)
        sums, made = pairs.best(right.by_first[first, :width], left.by_last[last, width - 1 :: -1])
        firsts = np.arange(words - width)
        to_right.put(width, sums + arcs[firsts, firsts + width, None], made)
        to_left.put(width, sums + arcs[firsts + width, firsts, None], made)
        # From a head to its outermost dependent, and the rest of that dependent.
        wide, rest = slice(1, width + 1), slice(width - 1, None, -1)
        right.put(width, *pairs.best(to_right.by_first[first, wide], right.by_last[last, rest]))
        rest = slice(width, 0, -1)
        left.put(width, *pairs.best(left.by_first[first, :width], to_left.by_last[last, rest]))
    places = np.arange(words)
    tops = left.by_first[0, :] + np.asarray(scores[0], "float64")[:, None]  # (N, K)
    found, made = pairs.best(tops[None], right.by_last[words - 1, words - 1 - places][None])
    charts = {"left": left, "right": right, "between": to_right}
    return [
        (_heads(charts, words, *how), float(total))
        for total, how in zip(found[0], made[0].tolist(), strict=True)
        if total > -np.inf
    ]


def _heads(charts, words, top, left, right):
    """Heads of a tree, from the word `top` under ROOT and the ranks of its two spans."""
    charts = {name: chart.made for name, chart in charts.items()}
    heads = [0] * words
    pending = [("left", 0, top, left), ("right", top, words - 1, right)]
    while pending:
        kind, first, last, rank = pending.pop()
        if first == last:
            continue
        cut, one, other = charts[kind][first, last - first, rank].tolist()
        if kind == "between":
            pending.append(("right", first, first + cut, one))
            pending.append(("left", first + cut + 1, last, other))
        elif kind == "right":
            middle = first + cut + 1
            heads[middle] = first + 1
            pending.append(("between", first, middle, one))
            pending.append(("right", middle, last, other))
        else:
            middle = first + cut
            heads[middle] = last + 1
            pending.append(("left", first, middle, one))
            pending.append(("between", middle, last, other))
    return heads
