"""Arranges trees in a grid of steps, so that a batch takes few large steps. Only NumPy.

A word whose path has k edges depends on one whose path has k - 1, so it is in the k-th step of its
tree. Each step has a fixed number of rows for each edge type. A tree takes as many consecutive
steps as its longest path has edges, and begins at the first step with room for it; the longest
trees come first. Sizes are rounded up to few values, because each is compiled separately.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.tree import Edge

__all__ = ["BatchSchedule", "RowCapacity", "TreeSchedule", "bucket_size", "schedule_batch"]
__all__ += ["schedule_tree"]

_EDGES = len(Edge)
_FOLLOWERS = 3  # a word leads to one by LEFT, one by RIGHT, and to its next sibling
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
        """RowCapacity in proportion to what trees need, about `rows` rows in total."""
        counts = np.sum([schedule.counts.sum(0) for schedule in schedules], 0)
        read = sum(len(ids) for schedule in schedules for _, ids in schedule.left)
        shares = np.append(counts, read) / counts.sum() * rows
        # At least two, so that every weight has a gradient.
        return cls(*(int(room) for room in np.maximum(np.ceil(shares / 2), 1) * 2))

    def doubled(self) -> "RowCapacity":
        """Twice these capacity, for a tree that is too wide."""
        return RowCapacity(*(2 * room or 4 for room in self))


class BatchSchedule(NamedTuple):
    """A batch of trees as arrays, int32; K steps, R rows in each.

    Attributes:
        grids: dictionary of arrays: for each of `left`, `right`, `next_left`, `next_right` the ids
            of the source words, (K, its room); `source` (K, R), the previous step's row that a row
            continues, R at the start of a tree; `followers` (K, R, 3), the rows of the next step
            that continue it, R for none; `rows` (N,), indices in (K R) of the words, in the order
            of the sentences. Left dependents are read in a grid of K steps of M rows: `left_words`
            (K, M); `left_source` and `left_followers` (K, M), M for none; `left_rows` (K, room of
            `right`), indices in (K M) of a row's last left dependent, K M for none.
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
        place = step.place
        source[place], edge[place] = step.source, step.edge
        depth = level[place] = level[step.source] + 1
        if depth == len(counts):
            counts.append([0] * _EDGES)
        rank[place] = counts[depth][step.edge]
        counts[depth][step.edge] += 1
        if step.left:
            left.append((place - 1, words[list(step.left)]))
    rows = slice(1, None)
    fields = source[rows] - 1, edge[rows], level[rows], rank[rows], np.array(counts, "int32")
    return TreeSchedule(words[rows], words[source[rows]], *fields, left)


def bucket_size(size: int, least: int, sizes: int) -> int:
    """Rounds a size up to a multiple of `least`, to one of `sizes` between two powers of 2.

    `least` and `sizes` are powers of 2. With 4 and 4, 13 becomes 16, 31 becomes 32, 33 becomes 40.
    """
    step = max(least, (1 << max(size - 1, 1).bit_length() - 1) // sizes)
    return -(-max(size, 1) // step) * step


def _pack(schedules, capacity):
    """The first step of each tree, the rows already used at its levels, and the number of steps."""
    used = np.zeros((sum(len(schedule.counts) for schedule in schedules) + 1, _EDGES), "int32")
    starts, before, end = [0] * len(schedules), [used] * len(schedules), 0
    for place in sorted(range(len(schedules)), key=lambda place: -len(schedules[place].counts)):
        counts = schedules[place].counts
        depth = len(counts)
        windows = np.lib.stride_tricks.sliding_window_view(used[: end + depth], depth, axis=0)
        room = np.array(capacity[:_EDGES]) - counts  # (D, 4)
        start = int((windows <= room.T).all((1, 2)).argmax())
        span = used[start : start + depth]
        starts[place], before[place] = start, span.copy()
        span += counts
        end = max(end, start + depth)
    return np.array(starts), np.concatenate(before), end


def _pack_left(schedules, steps, rows):
    """Row and step where each sequence of left dependents begins; `None` without room."""
    lengths = [len(ids) for schedule in schedules for _, ids in schedule.left]
    filled = [0] * rows
    places = [(0, 0)] * len(lengths)
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        row = next((row for row in range(rows) if filled[row] + lengths[number] <= steps), None)
        if row is None:
            return None
        places[number] = row, filled[row]
        filled[row] += lengths[number]
    return places


def _left_grids(schedules, steps, room, rows, right):
    """The arrays of left dependents; `rows` are the cells (step, row) of all words."""
    places = _pack_left(schedules, steps, room)
    if places is None:
        return None
    words = np.zeros((steps, room), "int32")
    source = np.full((steps, room), room, "int32")
    followers = source.copy()
    found = np.full((steps, right.stop - right.start), steps * room, "int32")
    first, number = 0, 0
    for schedule in schedules:
        for place, ids in schedule.left:
            row, start = places[number]
            end = start + len(ids)
            words[start:end, row] = ids
            source[start + 1 : end, row] = row
            followers[start : end - 1, row] = row
            step, column = rows[first + place]
            found[step, column - right.start] = (end - 1) * room + row
            number += 1
        first += len(schedule.words)
    return {
        "left_words": words,
        "left_source": source,
        "left_followers": followers,
        "left_rows": found,
    }


def schedule_batch(
    schedules: Sequence[TreeSchedule], capacity: RowCapacity, left_dependents: bool = False
) -> BatchSchedule:
    """Arranges trees in a grid.

    Args:
        schedules: list of `TreeSchedule`, at least one.
        capacity: `RowCapacity`, doubled until every tree fits.
        left_dependents: whether left dependents are arranged too.

    Returns:
        `BatchSchedule`.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.tree_lstm.schedule import RowCapacity, schedule_tree, schedule_batch
    >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
    >>> scheduled = schedule_batch(
    ...     [schedule_tree(tree, [5, 6, 7, 8], root=1)], RowCapacity(1, 1, 0, 0)
    ... )
    >>> scheduled.grids["right"][:, 0], scheduled.grids["left"][:, 0]
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
    firsts = np.cumsum([0, *lengths[:-1]])
    level = np.concatenate([schedule.level for schedule in schedules])
    edge = np.concatenate([schedule.edge for schedule in schedules])
    source = np.concatenate([schedule.source for schedule in schedules])
    begun = source < 0
    source = np.where(begun, 0, source + np.repeat(firsts, lengths))
    offsets = np.cumsum([0, *capacity[: _EDGES - 1]])
    step = np.repeat(starts, lengths) + level
    filled = before[np.repeat(np.cumsum([0, *depths[:-1]]), lengths) + level, edge]
    row = offsets[edge] + filled + np.concatenate([schedule.rank for schedule in schedules])
    height, wide = bucket_size(end, 4, 4), sum(capacity[:_EDGES])
    right = slice(offsets[Edge.RIGHT], offsets[Edge.RIGHT] + capacity.right)
    grids: dict[str, np.ndarray] = {}
    if left_dependents:
        places = list(zip(step.tolist(), row.tolist(), strict=True))
        longest = max((len(ids) for schedule in schedules for _, ids in schedule.left), default=1)
        height = max(height, bucket_size(longest, 4, 4))
        while (
            laid := _left_grids(schedules, height, capacity.left_dependents, places, right)
        ) is None:
            height = bucket_size(height + 1, 4, 4)
        grids |= laid
    words = np.zeros((height, wide), "int32")
    words[step, row] = np.concatenate([schedule.inputs for schedule in schedules])
    grids |= {
        name: words[:, offset : offset + room]
        for name, offset, room in zip(capacity._fields, offsets, capacity[:_EDGES], strict=False)
    }
    grids["source"] = np.full((height, wide), wide, "int32")
    grids["source"][step, row] = np.where(begun, wide, row[source])
    grids["followers"] = np.full((height, wide, _FOLLOWERS), wide, "int32")
    after = ~begun
    grids["followers"][step[source[after]], row[source[after]], _COLUMN[edge[after]]] = row[after]
    count = len(level)
    rows, targets = np.zeros((2, bucket_size(count, 64, 8)), "int32")
    rows[:count] = step * wide + row
    targets[:count] = np.concatenate([schedule.words for schedule in schedules])
    weights = np.zeros(len(rows), "float32")
    weights[:count] = 1.0
    return BatchSchedule({**grids, "rows": rows}, targets, weights, count)
