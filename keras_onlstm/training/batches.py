"""Batches of texts and of dependency trees, whose order depends only on a seed and the epoch."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.text.sentences import split
from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive
from keras_onlstm.tree_lstm.schedule import RowCapacity, TreeSchedule
from keras_onlstm.utils.keras_private import VaryingBatches
from keras_onlstm.utils.validation import check_integer, renamed_arguments

Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


class EpochBatches(VaryingBatches):
    """Base class. `_order(generator)` returns the list of the batches of an epoch."""

    def __init__(self, batch_size: int, shuffle: bool, seed: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size, self.shuffle = check_integer("batch_size", batch_size), shuffle
        self.seed = check_integer("seed", seed, 0)

    def set_epoch(self, epoch: int) -> None:
        """Sets the batches of an epoch, counted from 0."""
        self._epoch = epoch
        self._batches: list = self._order(self._generator(epoch))

    def _generator(self, *numbers):
        return np.random.Generator(np.random.PCG64([self.seed, *numbers]))

    def _order(self, generator):
        raise NotImplementedError

    def _permutation(self, generator, count):
        return generator.permutation(count) if self.shuffle else np.arange(count)

    def _split(self, generator, order):
        """Cuts an order into batches, and shuffles these."""
        size = self.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        return [batches[index] for index in self._permutation(generator, len(batches))]

    def on_epoch_end(self) -> None:
        """Goes to the next epoch, as `keras.Model.fit` expects."""
        self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._batches)


def contiguous(ids: np.ndarray, batch_size: int) -> np.ndarray:
    """Cuts a text (tokens,) into `batch_size` rows (B, tokens // B), and drops the rest.

    >>> import numpy as np
    >>> from keras_onlstm.training import contiguous
    >>> contiguous(np.arange(7), 2).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    columns = len(ids) // batch_size
    if columns < 2:
        raise ValueError(
            f"{len(ids)} tokens are too few for a batch of {batch_size}: use a smaller one."
        )
    return np.asarray(ids[: columns * batch_size]).reshape(batch_size, columns)


def _rows_of_process(batch_size, multiple, process):
    """The number of rows of a batch, and the indices of those that one process reads."""
    rows = -(-batch_size // check_integer("multiple", multiple)) * multiple
    index, processes = process
    return rows, np.array_split(np.arange(rows, dtype="int32"), processes)[index]


class Windows(EpochBatches):
    """Windows of a text in their order, for truncated backpropagation through time.

    A window's length is drawn around `window` with probability 0.95 and around half of it
    otherwise, with a standard deviation of 5, at least 5 (Merity et al. 2018). Windows are padded
    to one of four lengths, because some backends compile for each shape.

    Args:
        ids: (tokens,) the text.
        batch_size: positive integer, B.
        window: integer, 10 or above.
        variable_bptt: whether lengths vary. If not, all but the last are `window`.
        seed: integer, 0 or above.
        multiple: number of devices; empty rows are added until it divides their number.
        process: index and number of processes, which divides `multiple`; each reads its own rows.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Indexing gives a batch for `TruncatedModel`: a dictionary of `ids` (B, L), a boolean `mask`
    (B, L), `False` for padding, and `rows` (B,), the indices of the sequences; targets (B, L); and
    their weights (B, L), 0 for padding. `keras.Model.fit` also takes it, with `shuffle=False`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training import Windows
    >>> windows = Windows(np.arange(50), batch_size=2, window=10, variable_bptt=False)
    >>> inputs, targets, weights = windows[0]
    >>> inputs["ids"][:, :3].tolist(), targets[:, :3].tolist()
    ([[0, 1, 2], [25, 26, 27]], [[1, 2, 3], [26, 27, 28]])
    """

    @renamed_arguments(jitter="variable_bptt")
    def __init__(
        self,
        ids: np.ndarray,
        batch_size: int,
        window: int = 70,
        variable_bptt: bool = True,
        seed: int = 0,
        multiple: int = 1,
        process: tuple[int, int] = (0, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size, False, seed, **kwargs)
        self.text = contiguous(ids, self.batch_size)
        self.rows, self._own_rows = _rows_of_process(batch_size, multiple, process)
        self.window = window = check_integer("window", window, 10)
        self.axis_1_varies = self.lengths_vary = self.variable_bptt = variable_bptt
        # Up to 2.6 deviations above half a window, and 0.4, 2 and 5 above a whole one.
        lengths = {math.ceil(window / 2) + 13, window + 2, window + 10, window + 25}
        self.padded_lengths = sorted(lengths) if variable_bptt else [window]
        self.set_epoch(0)

    def _order(self, generator):
        """The start and the end of each window."""
        last = self.text.shape[1] - 1  # the last token is only a target
        ends = [0]
        while ends[-1] < last:
            length = self.window
            if self.variable_bptt:
                mean = self.window if generator.random() < 0.95 else self.window / 2
                length = min(max(5, int(generator.normal(mean, 5))), self.padded_lengths[-1])
            ends.append(min(ends[-1] + length, last))
        return list(itertools.pairwise(ends))

    def on_epoch_end(self) -> None:
        """Goes to the next epoch with as many windows: Keras reads their number only once."""
        count = len(self)
        super().on_epoch_end()
        while len(self) != count:
            super().on_epoch_end()

    def length(self, index: int) -> int:
        """The number of steps of a window, without padding."""
        start, end = self._batches[index]
        return end - start

    def samples(self, index: int) -> int:
        """The number of tokens of the whole batch, including those of other processes."""
        return len(self.text) * self.length(index)

    def share(self, index: int) -> float:
        """The factor of the learning rate of a window: its length divided by `window`."""
        return self.length(index) / self.window

    def __getitem__(self, index: int) -> Batch:
        windows = self._batches  # read once: Keras reads ahead in another thread
        if not 0 <= index < len(windows):
            raise IndexError(f"window {index} does not exist: the epoch has {len(windows)} windows")
        start, end = windows[index]
        rows = self._own_rows
        width = next(length for length in self.padded_lengths if length >= end - start)
        text = self.text[rows[0] : rows[-1] + 1, start : end + 1]  # (B, L + 1) without empty rows
        ids, targets = np.zeros((2, len(rows), width), "int32")
        mask = np.zeros((len(rows), width), bool)
        filled = slice(len(text)), slice(end - start)
        ids[filled], targets[filled], mask[filled] = text[:, :-1], text[:, 1:], True
        return {"ids": ids, "mask": mask, "rows": rows}, targets, mask.astype("float32")


class SentenceBatches(EpochBatches):
    """The sentences of a text in batches of similar lengths, each starting with `<eos>`.

    All batches have the same number of rows; some rows of the last may be empty.

    Args:
        ids: (tokens,) the text, with `eos` after every sentence.
        eos: integer.
        batch_size: positive integer.
        shuffle: whether sentences of one width, and batches, are shuffled in every epoch.
        seed: integer, 0 or above.
        multiple: positive integer, divides the number of rows.
        width: positive integer, divides all widths. Larger ones give fewer shapes.
        process: index and number of processes, see `Windows`.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Indexing gives a batch like `Windows`, for `TruncatedModel` with `carry=False`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training import SentenceBatches
    >>> batches = SentenceBatches(np.array([2, 3, 0, 4, 0]), eos=0, batch_size=2, width=4)
    >>> inputs, targets, weights = batches[0]
    >>> inputs["ids"].tolist(), targets.tolist()
    ([[0, 2, 3, 0], [0, 4, 0, 0]], [[2, 3, 0, 0], [4, 0, 0, 0]])
    """

    lengths_vary = True

    def __init__(
        self,
        ids: np.ndarray,
        eos: int,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        multiple: int = 1,
        width: int = 8,
        process: tuple[int, int] = (0, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size, shuffle, seed, **kwargs)
        self.sentences, self.eos = split(np.asarray(ids), eos), eos
        if not self.sentences:
            raise ValueError("the text contains no sentence. Give a text with words.")
        self.rows, self._own_rows = _rows_of_process(batch_size, multiple, process)
        lengths = np.array([len(sentence) + 1 for sentence in self.sentences])
        self._widths = -(-lengths // check_integer("width", width)) * width
        self.set_epoch(0)

    def _order(self, generator):
        order = self._permutation(generator, len(self.sentences))
        return self._split(generator, order[np.argsort(self._widths[order], kind="stable")])

    def samples(self, index: int) -> int:
        """The number of tokens of the whole batch, including those of other processes."""
        return sum(len(self.sentences[i]) + 1 for i in self._batches[index])

    def __getitem__(self, index: int) -> Batch:
        indices, rows = self._batches[index], self._own_rows
        shape = len(rows), self._widths[indices].max()
        ids, targets = np.full((2, *shape), self.eos, "int32")
        mask = np.zeros(shape, bool)
        for row, i in enumerate(indices[rows[0] : rows[-1] + 1]):
            sentence = self.sentences[i]
            ids[row, 1 : len(sentence) + 1] = targets[row, : len(sentence)] = sentence
            mask[row, : len(sentence) + 1] = True
        return {"ids": ids, "mask": mask, "rows": rows}, targets, mask.astype("float32")


class TreeBatches(EpochBatches):
    """Batches of trees, each scheduled in a grid.

    The trees are sorted by length and cut into `batch_size` groups; a batch has one tree of each.
    So batches have similar numbers of words and only a few shapes.

    Args:
        model: `TreeLSTM` that schedules them.
        schedules: list of `TreeSchedule`, the results of `model.schedule_tree`.
        batch_size: positive integer, trees in a batch; some batches have one less.
        shuffle: whether the trees of a group go to different batches in every epoch.
        seed: integer, 0 or above.
        capacity: `RowCapacity` of the grid. Default: fitted to the trees.
        noise: `NoiseContrastive`, which draws noise for every word, or `None`.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Indexing gives a batch for `TreeLearner`, which has an example: grids, targets, their weights.
    """

    @renamed_arguments(layouts="schedules", rooms="capacity")
    def __init__(
        self,
        model: TreeLSTM,
        schedules: Sequence[TreeSchedule],
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        capacity: RowCapacity | None = None,
        noise: NoiseContrastive | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size, shuffle, seed, **kwargs)
        if not len(schedules):
            raise ValueError("schedules is empty. Give at least one tree.")
        self.model, self.schedules, self.noise = model, list(schedules), noise
        self.capacity = capacity or RowCapacity.fitting(self.schedules, batch_size)
        self._lengths = np.array([len(schedule.words) for schedule in self.schedules])
        self.set_epoch(0)

    def _order(self, generator):
        order = self._permutation(generator, len(self.schedules))
        order = order[np.argsort(self._lengths[order], kind="stable")].tolist()
        count = -(-len(order) // self.batch_size)
        batches: list[list[int]] = [[] for _ in range(count)]
        for start in range(0, len(order), count):
            indices = self._permutation(generator, count)
            for index, tree in zip(indices, order[start : start + count], strict=False):
                batches[index].append(tree)
        return batches

    def __getitem__(self, index: int) -> Batch:
        schedules = [self.schedules[i] for i in self._batches[index]]
        batch = self.model.schedule_batch(schedules, self.capacity)
        if self.noise is None:
            return batch.grids, batch.targets, batch.weights
        noise = self.noise.draw(len(batch.targets), self._generator(self._epoch, index))
        return {**batch.grids, "noise": noise}, batch.targets, batch.weights
