"""Arranges trees in a grid of steps, so that a batch takes few large steps. Only NumPy.

A word whose path has k edges depends on one whose path has k - 1, so it is in the k-th step of its
tree. Each step has a fixed number of rows for each edge type. A tree takes as many consecutive
steps as its longest path has edges, and begins at the first step with enough free rows; the longest
trees are placed first. Sizes are rounded up to few values, because each is compiled separately.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.tree import Edge

_EDGES = len(Edge)
_FOLLOWERS = 3  # the first dependents of a word on both sides, and its next sibling
_COLUMN = np.array([0, 1, 2, 2])  # column of `followers`, by edge


class TreeSchedule(NamedTuple):
    """A tree of n words as arrays, for `schedule_batch`. Its longest path has D edges.

    Attributes:
        words: (n,) ids, in the order of the sentence.
        inputs: (n,) ids of the words' sources.
        source: (n,) indices of the sources, -1 for ROOT.
        edge: (n,) `Edge`.
        level: (n,) number of edges in a word's path, minus one.
        rank: (n,) index of a word among those of its level and edge type.
        counts: (D, 4) number of words of each level and edge type.
        left: list of pairs: the index of a word, and the ids of its source's left dependents, the
            farthest first.
    """

    words: np.ndarray
    inputs: np.ndarray
    source: np.ndarray
    edge: np.ndarray
    level: np.ndarray
    rank: np.ndarray
    counts: np.ndarray
    left: list[tuple[int, np.ndarray]]


class RowCapacity(NamedTuple):
    """Number of rows in a step for each edge type, and in the grid of left dependents."""

    left: int = 20
    right: int = 24
    next_left: int = 14
    next_right: int = 10
    left_dependents: int = 16

    @classmethod
    def fitting(cls, schedules: Sequence[TreeSchedule], rows: int = 68) -> "RowCapacity":
        """Capacities in proportion to the rows that trees need, about `rows` rows in total."""
        counts = np.sum([schedule.counts.sum(0) for schedule in schedules], 0)
        left = sum(len(ids) for schedule in schedules for _, ids in schedule.left)
        shares = np.append(counts, left) / counts.sum() * rows
        # At least two, so that every weight has a gradient.
        return cls(*(int(count) for count in np.maximum(np.ceil(shares / 2), 1) * 2))

    def doubled(self) -> "RowCapacity":
        """Twice these capacities, for a tree that is too wide."""
        return RowCapacity(*(2 * count or 4 for count in self))


class BatchSchedule(NamedTuple):
    """A batch of trees as arrays, int32; K steps, R rows in each.

    Attributes:
        grids: dictionary of arrays: for each of `left`, `right`, `next_left`, `next_right` the ids
            of the source words (K, capacity); `source` (K, R), the row of the previous step that a
            row continues, R at the start of a tree; `followers` (K, R, 3), the rows of the next
            step that continue it, R for none; `rows` (N,), indices in (K R) of the words, in the
            order of the sentences. Left dependents are read in a grid of K steps of M rows:
            `left_words` (K, M); `left_source` and `left_followers` (K, M), M for none; `left_rows`
            (K, capacity of `right`), indices in (K M) of the last left dependent, K M for none.
        targets: (N,) ids of the words, padded with 0.
        weights: (N,) float32, 1 for each word, 0 for padding.
        words: integer, number of words.
    """

    grids: dict[str, np.ndarray]
    targets: np.ndarray
    weights: np.ndarray
    words: int


def schedule_tree(tree: DependencyTree, ids: Sequence[int], root: int) -> TreeSchedule:
    """The `TreeSchedule` of a projective tree, from the ids of its words and of ROOT."""
    count = len(tree)
    words = np.array([root, *ids], "int32")
    source, edge, level, rank = (np.zeros(count + 1, "int32") for _ in range(4))
    level[0] = -1
    counts: list[list[int]] = []
    left = []
    for step in tree.steps():
        index = step.position
        source[index], edge[index] = step.source, step.edge
        depth = level[index] = level[step.source] + 1
        if depth == len(counts):
            counts.append([0] * _EDGES)
        rank[index] = counts[depth][step.edge]
        counts[depth][step.edge] += 1
        if step.left:
            left.append((index - 1, words[list(step.left)]))
    rows = slice(1, None)
    fields = source[rows] - 1, edge[rows], level[rows], rank[rows], np.array(counts, "int32")
    return TreeSchedule(words[rows], words[source[rows]], *fields, left)


def bucket_size(size: int, multiple: int, sizes: int) -> int:
    """Rounds a size up to a multiple of `multiple`, to one of `sizes` between two powers of 2.

    `multiple` and `sizes` are powers of 2. With 4 and 4, 13 becomes 16, 31 becomes 32, 33 becomes
    40.
    """
    step = max(multiple, (1 << max(size - 1, 1).bit_length() - 1) // sizes)
    return -(-max(size, 1) // step) * step


def _pack(schedules, capacity):
    """The first step of each tree, the rows already used at its levels, and the number of steps."""
    used = np.zeros((sum(len(schedule.counts) for schedule in schedules) + 1, _EDGES), "int32")
    starts, before, end = [0] * len(schedules), [used] * len(schedules), 0
    for index in sorted(range(len(schedules)), key=lambda i: -len(schedules[i].counts)):
        counts = schedules[index].counts
        depth = len(counts)
        windows = np.lib.stride_tricks.sliding_window_view(used[: end + depth], depth, axis=0)
        free = np.array(capacity[:_EDGES]) - counts  # (D, 4)
        start = int((windows <= free.T).all((1, 2)).argmax())
        span = used[start : start + depth]
        starts[index], before[index] = start, span.copy()
        span += counts
        end = max(end, start + depth)
    return np.array(starts), np.concatenate(before), end


def _pack_left(schedules, steps, rows):
    """Row and step where each sequence of left dependents begins, or `None` if they do not fit."""
    lengths = [len(ids) for schedule in schedules for _, ids in schedule.left]
    filled = [0] * rows
    cells = [(0, 0)] * len(lengths)
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        row = next((row for row in range(rows) if filled[row] + lengths[index] <= steps), None)
        if row is None:
            return None
        cells[index] = row, filled[row]
        filled[row] += lengths[index]
    return cells


def _left_grids(schedules, steps, capacity, rows, right):
    """The arrays of left dependents; `rows` are the cells (step, row) of all words."""
    cells = _pack_left(schedules, steps, capacity)
    if cells is None:
        return None
    words = np.zeros((steps, capacity), "int32")
    source = np.full((steps, capacity), capacity, "int32")
    followers = source.copy()
    last = np.full((steps, right.stop - right.start), steps * capacity, "int32")
    first, remaining = 0, iter(cells)
    for schedule in schedules:
        for index, ids in schedule.left:
            row, start = next(remaining)
            end = start + len(ids)
            words[start:end, row] = ids
            source[start + 1 : end, row] = row
            followers[start : end - 1, row] = row
            step, column = rows[first + index]
            last[step, column - right.start] = (end - 1) * capacity + row
        first += len(schedule.words)
    return {
        "left_words": words,
        "left_source": source,
        "left_followers": followers,
        "left_rows": last,
    }


def schedule_batch(
    schedules: Sequence[TreeSchedule], capacity: RowCapacity, left_dependents: bool = False
) -> BatchSchedule:
    """Arranges at least one tree in a grid, with `capacity` doubled until every tree fits.

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.tree_lstm.schedule import RowCapacity, schedule_batch, schedule_tree
    >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
    >>> schedule = schedule_tree(tree, [5, 6, 7, 8], root=1)
    >>> grids = schedule_batch([schedule], RowCapacity(1, 1, 0, 0)).grids
    >>> grids["right"][:, 0], grids["left"][:, 0]
    (array([1, 7, 0, 0], dtype=int32), array([0, 7, 6, 0], dtype=int32))
    """
    widest = np.max([schedule.counts.max(0) for schedule in schedules], 0)
    while (widest > capacity[:_EDGES]).any() or (
        left_dependents
        and not capacity.left_dependents
        and any(schedule.left for schedule in schedules)
    ):
        capacity = capacity.doubled()
    starts, before, end = _pack(schedules, capacity)
    lengths = [len(schedule.words) for schedule in schedules]
    depths = [len(schedule.counts) for schedule in schedules]
    level, edge, source, rank, inputs, targets = (
        np.concatenate([getattr(schedule, name) for schedule in schedules])
        for name in ("level", "edge", "source", "rank", "inputs", "words")
    )
    is_start = source < 0
    source = np.where(is_start, 0, source + np.repeat(np.cumsum([0, *lengths[:-1]]), lengths))
    offsets = np.cumsum([0, *capacity[: _EDGES - 1]])
    step = np.repeat(starts, lengths) + level
    used = before[np.repeat(np.cumsum([0, *depths[:-1]]), lengths) + level, edge]
    row = offsets[edge] + used + rank
    height, width = bucket_size(end, 4, 4), sum(capacity[:_EDGES])
    grids: dict[str, np.ndarray] = {}
    if left_dependents:
        right = slice(offsets[Edge.RIGHT], offsets[Edge.RIGHT] + capacity.right)
        cells = list(zip(step.tolist(), row.tolist(), strict=True))
        longest = max((len(ids) for schedule in schedules for _, ids in schedule.left), default=1)
        height = max(height, bucket_size(longest, 4, 4))
        rows = capacity.left_dependents
        while (left := _left_grids(schedules, height, rows, cells, right)) is None:
            height = bucket_size(height + 1, 4, 4)
        grids |= left
    words = np.zeros((height, width), "int32")
    words[step, row] = inputs
    grids |= {
        name: words[:, offset : offset + rows]
        for name, offset, rows in zip(capacity._fields, offsets, capacity[:_EDGES], strict=False)
    }
    grids["source"] = np.full((height, width), width, "int32")
    grids["source"][step, row] = np.where(is_start, width, row[source])
    grids["followers"] = np.full((height, width, _FOLLOWERS), width, "int32")
    source, follower, edge = source[~is_start], row[~is_start], edge[~is_start]
    grids["followers"][step[source], row[source], _COLUMN[edge]] = follower
    count = len(level)
    padding = (0, bucket_size(count, 64, 8) - count)
    grids["rows"] = np.pad(step * width + row, padding).astype("int32")
    weights = np.pad(np.ones(count, "float32"), padding)
    return BatchSchedule(grids, np.pad(targets, padding), weights, count)
