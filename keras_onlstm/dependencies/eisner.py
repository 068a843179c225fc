"""Eisner's algorithm: the best projective dependency trees, given a score for every arc.

Charts hold the best analyses of every span of words: *complete* spans, a word and its descendants
on one side, and *incomplete* spans, two words and the arc between them. Each tree has only one
derivation from them, so the K best derivations are the K best trees.

Sources: Eisner 1996, "Three New Probabilistic Models for Dependency Parsing",
https://aclanthology.org/C96-1058; Huang and Chiang 2005, "Better k-best Parsing", algorithm 1,
https://aclanthology.org/W05-1506.
"""

import numpy as np

from keras_onlstm.utils.validation import check_integer

# Axes: N words, counted from 0 here; K best of every span; S spans of one width, by their first
# word; C split points of a span; P pairs of a rank of the left part and one of the right part.


class _Chart:
    """The K best scores of every span, by its first or last word and its width, last - first."""

    def __init__(self, count, size):
        self.by_first = np.full((count, count, size), -np.inf)  # (N, width, K)
        self.by_last = np.full((count, count, size), -np.inf)
        # Split point, and ranks of both parts.
        self.backpointers = np.zeros((count, count, size, 3), "int32")

    def store(self, width, scores, backpointers):  # (S, K), (S, K, 3)
        self.by_first[: len(scores), width] = scores
        self.by_last[width:, width] = scores
        self.backpointers[: len(scores), width] = backpointers


class _Pairs:
    """Pairs of ranks of two parts whose sum can be among the K best: (P,) each."""

    def __init__(self, size):
        # With ranks a and b, counted from 1, at least a b - 1 other pairs are as good.
        ranks = np.arange(1, size + 1)
        self.left, self.right = np.nonzero(ranks[:, None] * ranks <= size)
        self.size = size  # K

    def best(self, left, right):
        """The K best pairs of a left and a right part, best first, from scores (S, C, K) of both.

        Returns scores (S, K), minus infinity if there are fewer pairs, and backpointers (S, K, 3).
        """
        sums = left[..., self.left] + right[..., self.right]  # (S, C, P)
        flat = sums.reshape(len(sums), -1)  # (S, C * P)
        if self.size == 1:
            order = flat.argmax(1)[:, None]
        else:
            order = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
            if flat.shape[1] > self.size:
                order = np.argpartition(-flat, self.size - 1, axis=1)[:, : self.size]
            ranks = np.argsort(-np.take_along_axis(flat, order, 1), axis=1, kind="stable")
            order = np.take_along_axis(order, ranks, 1)
        scores = np.full((len(flat), self.size), -np.inf)
        backpointers = np.zeros((len(flat), self.size, 3), "int32")
        count = order.shape[1]
        scores[:, :count] = np.take_along_axis(flat, order, 1)
        split, pair = np.divmod(order, len(self.left))
        backpointers[:, :count] = np.stack([split, self.left[pair], self.right[pair]], -1)
        return scores, backpointers


def best_trees(scores: np.ndarray, count: int = 1) -> list[tuple[list[int], float]]:
    """Finds the `count` projective trees with the highest sums of arc scores (n + 1, n).

    The scores are from each head, ROOT first, to each word. Returns (heads, sum), best first.
    """
    size = check_integer("count", count)
    words = scores.shape[1]
    if scores.shape != (words + 1, words) or not words or not np.isfinite(scores).all():
        raise ValueError(f"scores must be finite and of shape (n + 1, n), got {scores.shape}.")
    pairs = _Pairs(size)
    arcs = np.asarray(scores[1:], "float64")  # (N, N), from word to word
    left, right = _Chart(words, size), _Chart(words, size)  # complete; head last, first
    to_left, to_right = _Chart(words, size), _Chart(words, size)  # incomplete, same backpointers
    leaf = np.full((words, size), -np.inf)
    leaf[:, 0] = 0.0
    for chart in (left, right):
        chart.store(0, leaf, 0)
    for width in range(1, words):
        first = slice(0, words - width)
        last = slice(width, words)
        sums, split = pairs.best(right.by_first[first, :width], left.by_last[last, width - 1 :: -1])
        firsts = np.arange(words - width)
        to_right.store(width, sums + arcs[firsts, firsts + width, None], split)
        to_left.store(width, sums + arcs[firsts + width, firsts, None], split)
        # From a head to its outermost dependent, and the rest of that dependent.
        wide, rest = slice(1, width + 1), slice(width - 1, None, -1)
        right.store(width, *pairs.best(to_right.by_first[first, wide], right.by_last[last, rest]))
        rest = slice(width, 0, -1)
        left.store(width, *pairs.best(left.by_first[first, :width], to_left.by_last[last, rest]))
    tops = left.by_first[0, :] + np.asarray(scores[0], "float64")[:, None]  # (N, K)
    sums, roots = pairs.best(tops[None], right.by_last[words - 1, ::-1][None])
    charts = {"left": left, "right": right, "between": to_right}
    return [
        (_heads(charts, words, *root), float(total))
        for total, root in zip(sums[0], roots[0].tolist(), strict=True)
        if total > -np.inf
    ]


def _heads(charts, words, top, left, right):
    """Heads of a tree, from the word `top` under ROOT and the ranks of its two spans."""
    heads = [0] * words
    pending = [("left", 0, top, left), ("right", top, words - 1, right)]
    while pending:
        kind, first, last, rank = pending.pop()
        if first == last:
            continue
        split, left, right = charts[kind].backpointers[first, last - first, rank].tolist()
        middle = first + split
        if kind == "between":
            pending += [("right", first, middle, left), ("left", middle + 1, last, right)]
        elif kind == "right":
            heads[middle + 1] = first + 1
            pending += [("between", first, middle + 1, left), ("right", middle + 1, last, right)]
        else:
            heads[middle] = last + 1
            pending += [("left", first, middle, left), ("between", middle, last, right)]
    return heads
