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

__all__ = ["Layout", "Plan", "Rooms", "lay_out", "plan", "rung"]

_EDGES = len(Edge)
_FOLLOWERS = 3  # a word leads to one by LEFT, one by RIGHT, and to its next sibling
_COLUMN = np.array([0, 1, 2, 2])  # column of `followers`, by edge


class Layout(NamedTuple):
    """A tree of n words as arrays, for `plan`. Its longest path has D edges.

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


class Rooms(NamedTuple):
    """Number of rows in a step for each edge type, and in the grid of left dependents."""

    left: int = 20
    right: int = 24
    next_left: int = 14
    next_right: int = 10
    left_dependents: int = 16

    @classmethod
    def fitting(cls, layouts: Sequence[Layout], rows: int = 68) -> "Rooms":
        """Rooms in proportion to what trees need, about `rows` rows in total."""
        counts = np.sum([layout.counts.sum(0) for layout in layouts], 0)
        read = sum(len(ids) for layout in layouts for _, ids in layout.left)
        shares = np.append(counts, read) / counts.sum() * rows
        # At least two, so that every weight has a gradient.
        return cls(*(int(room) for room in np.maximum(np.ceil(shares / 2), 1) * 2))

    def doubled(self) -> "Rooms":
        """Twice these rooms, for a tree that is too wide."""
        return Rooms(*(2 * room or 4 for room in self))


class Plan(NamedTuple):
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


def lay_out(tree: DependencyTree, ids: Sequence[int], root: int) -> Layout:
    """The `Layout` of a projective tree, from the ids of its words and of ROOT."""
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
    return Layout(words[rows], words[source[rows]], *fields, left)


def rung(size: int, least: int, sizes: int) -> int:
    """Rounds a size up to a multiple of `least`, to one of `sizes` between two powers of 2.

    `least` and `sizes` are powers of 2. With 4 and 4, 13 becomes 16, 31 becomes 32, 33 becomes 40.
    """
    step = max(least, (1 << max(size - 1, 1).bit_length() - 1) // sizes)
    return -(-max(size, 1) // step) * step


def _pack(layouts, rooms):
    """The first step of each tree, the rows already used at its levels, and the number of steps."""
    used = np.zeros((sum(len(layout.counts) for layout in layouts) + 1, _EDGES), "int32")
    starts, before, end = [0] * len(layouts), [used] * len(layouts), 0
    for place in sorted(range(len(layouts)), key=lambda place: -len(layouts[place].counts)):
        counts = layouts[place].counts
        depth = len(counts)
        windows = np.lib.stride_tricks.sliding_window_view(used[: end + depth], depth, axis=0)
        room = np.array(rooms[:_EDGES]) - counts  # (D, 4)
        start = int((windows <= room.T).all((1, 2)).argmax())
        span = used[start : start + depth]
        starts[place], before[place] = start, span.copy()
        span += counts
        end = max(end, start + depth)
    return np.array(starts), np.concatenate(before), end


def _pack_left(layouts, steps, rows):
    """Row and step where each sequence of left dependents begins; `None` without room."""
    lengths = [len(ids) for layout in layouts for _, ids in layout.left]
    filled = [0] * rows
    places = [(0, 0)] * len(lengths)
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        row = next((row for row in range(rows) if filled[row] + lengths[number] <= steps), None)
        if row is None:
            return None
        places[number] = row, filled[row]
        filled[row] += lengths[number]
    return places


def _left_grids(layouts, steps, room, rows, right):
    """The arrays of left dependents; `rows` are the cells (step, row) of all words."""
    places = _pack_left(layouts, steps, room)
    if places is None:
        return None
    words = np.zeros((steps, room), "int32")
    source = np.full((steps, room), room, "int32")
    followers = source.copy()
    found = np.full((steps, right.stop - right.start), steps * room, "int32")
    first, number = 0, 0
    for layout in layouts:
        for place, ids in layout.left:
            row, start = places[number]
            end = start + len(ids)
            words[start:end, row] = ids
            source[start + 1 : end, row] = row
            followers[start : end - 1, row] = row
            step, column = rows[first + place]
            found[step, column - right.start] = (end - 1) * room + row
            number += 1
        first += len(layout.words)
    return {
        "left_words": words,
        "left_source": source,
        "left_followers": followers,
        "left_rows": found,
    }


def plan(layouts: Sequence[Layout], rooms: Rooms, left_dependents: bool = False) -> Plan:
    """Arranges trees in a grid.

    Args:
        layouts: list of `Layout`, at least one.
        rooms: `Rooms`, doubled until every tree fits.
        left_dependents: whether left dependents are arranged too.

    Returns:
        `Plan`.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.tree_lstm.plan import Rooms, lay_out, plan
    >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
    >>> planned = plan([lay_out(tree, [5, 6, 7, 8], root=1)], Rooms(1, 1, 0, 0))
    >>> planned.grids["right"][:, 0], planned.grids["left"][:, 0]
    (array([1, 7, 0, 0], dtype=int32), array([0, 7, 6, 0], dtype=int32))
    """
    widest = np.max([layout.counts.max(0) for layout in layouts], 0)
    while (widest > rooms[:_EDGES]).any() or (
        left_dependents and not rooms.left_dependents and any(layout.left for layout in layouts)
    ):
        rooms = rooms.doubled()
    starts, before, end = _pack(layouts, rooms)
    lengths = [len(layout.words) for layout in layouts]
    depths = [len(layout.counts) for layout in layouts]
    firsts = np.cumsum([0, *lengths[:-1]])
    level = np.concatenate([layout.level for layout in layouts])
    edge = np.concatenate([layout.edge for layout in layouts])
    source = np.concatenate([layout.source for layout in layouts])
    begun = source < 0
    source = np.where(begun, 0, source + np.repeat(firsts, lengths))
    offsets = np.cumsum([0, *rooms[: _EDGES - 1]])
    step = np.repeat(starts, lengths) + level
    filled = before[np.repeat(np.cumsum([0, *depths[:-1]]), lengths) + level, edge]
    row = offsets[edge] + filled + np.concatenate([layout.rank for layout in layouts])
    height, wide = rung(end, 4, 4), sum(rooms[:_EDGES])
    right = slice(offsets[Edge.RIGHT], offsets[Edge.RIGHT] + rooms.right)
    grids: dict[str, np.ndarray] = {}
    if left_dependents:
        places = list(zip(step.tolist(), row.tolist(), strict=True))
        longest = max((len(ids) for layout in layouts for _, ids in layout.left), default=1)
        height = max(height, rung(longest, 4, 4))
        while (laid := _left_grids(layouts, height, rooms.left_dependents, places, right)) is None:
            height = rung(height + 1, 4, 4)
        grids |= laid
    words = np.zeros((height, wide), "int32")
    words[step, row] = np.concatenate([layout.inputs for layout in layouts])
    grids |= {
        name: words[:, offset : offset + room]
        for name, offset, room in zip(rooms._fields, offsets, rooms[:_EDGES], strict=False)
    }
    grids["source"] = np.full((height, wide), wide, "int32")
    grids["source"][step, row] = np.where(begun, wide, row[source])
    grids["followers"] = np.full((height, wide, _FOLLOWERS), wide, "int32")
    after = ~begun
    grids["followers"][step[source[after]], row[source[after]], _COLUMN[edge[after]]] = row[after]
    count = len(level)
    rows, targets = np.zeros((2, rung(count, 64, 8)), "int32")
    rows[:count] = step * wide + row
    targets[:count] = np.concatenate([layout.words for layout in layouts])
    weights = np.zeros(len(rows), "float32")
    weights[:count] = 1.0
    return Plan({**grids, "rows": rows}, targets, weights, count)
