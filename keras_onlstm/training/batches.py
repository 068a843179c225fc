"""Batches of sentences and of dependency trees."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.text.sentences import split
from keras_onlstm.training.bptt import own_rows
from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive
from keras_onlstm.tree_lstm.schedule import RowCapacity, TreeSchedule
from keras_onlstm.utils.deprecation import renamed_arguments
from keras_onlstm.utils.keras_private import VaryingBatches
from keras_onlstm.utils.validation import check_integer

__all__ = [
    "SentenceBatches",
    "TreeBatches",
]


class SentenceBatches(VaryingBatches):
    """The sentences of a text in batches of similar lengths, each starting with `<eos>`.

    Widths are rounded up to multiples of `width`. All batches have the same number of rows; some
    of the last may be empty. The order depends only on `seed` and epoch.

    Args:
        ids: (tokens,) the text, with `eos` after every sentence.
        eos: integer.
        batch_size: positive integer.
        shuffle: whether sentences of one width, and batches, are shuffled in every epoch.
        seed: integer, 0 or above.
        multiple: positive integer, divides the number of rows.
        width: positive integer, divides all widths. Larger ones give fewer shapes.
        process: index and number of processes, as for `Windows`.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Raises:
        ValueError: if the text has no sentence, or an argument is too small.

    Indexing gives a batch like `Windows`, for `TruncatedModel` with `carry=False`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training import SentenceBatches
    >>> batches = SentenceBatches(np.array([2, 3, 0, 4, 0]), eos=0, batch_size=2, width=4)
    >>> inputs, targets, weights = batches[0]
    >>> inputs["ids"].tolist(), targets.tolist()
    ([[0, 2, 3, 0], [0, 4, 0, 0]], [[2, 3, 0, 0], [4, 0, 0, 0]])
    >>> weights.tolist()
    [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
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
        super().__init__(**kwargs)
        self.sentences, self.eos = split(np.asarray(ids), eos), eos
        if not self.sentences:
            raise ValueError("it holds no sentence.")
        self.batch_size = check_integer("batch_size", batch_size)
        self.rows = -(-batch_size // check_integer("multiple", multiple)) * multiple
        self._own = own_rows(self.rows, process)
        self.shuffle, self.seed = shuffle, check_integer("seed", seed, 0)
        lengths = np.array([len(sentence) + 1 for sentence in self.sentences])
        self._widths = -(-lengths // check_integer("width", width)) * width
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Sets the order of an epoch, counted from 0."""
        self._epoch = epoch
        count = len(self.sentences)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        order = generator.permutation(count) if self.shuffle else np.arange(count)
        order = order[np.argsort(self._widths[order], kind="stable")]
        size = self.batch_size
        self._batches = [order[start : start + size] for start in range(0, count, size)]
        if self.shuffle:
            self._batches = [self._batches[i] for i in generator.permutation(len(self._batches))]

    def on_epoch_end(self) -> None:
        """Goes to the next epoch, as `keras.Model.fit` expects."""
        self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._batches)

    def samples(self, index: int) -> int:
        """The number of words of a batch, with `<eos>` and those of other processes."""
        return sum(len(self.sentences[member]) + 1 for member in self._batches[index])

    def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        members = self._batches[index]
        own = self._own
        shape = len(own), self._widths[members].max()
        ids, targets = np.full((2, *shape), self.eos, "int32")
        mask = np.zeros(shape, bool)
        for row, member in enumerate(members[own[0] : own[-1] + 1]):
            sentence = self.sentences[member]
            ids[row, 1 : len(sentence) + 1] = targets[row, : len(sentence)] = sentence
            mask[row, : len(sentence) + 1] = True
        inputs = {"ids": ids, "mask": mask, "rows": own}
        return inputs, targets, mask.astype("float32")


class TreeBatches(VaryingBatches):
    """Batches of trees, each laid out in a grid.

    The trees are sorted by length and cut into `batch_size` groups; a batch has one tree of each.
    So batches have similar numbers of words and only a few shapes. The order depends only on
    `seed` and epoch.

    Args:
        model: `TreeLSTM` that lays them out.
        schedules: list of `TreeSchedule`, the results of `model.schedule_tree`.
        batch_size: positive integer, trees in a batch; some batches have one less.
        shuffle: whether the trees of a group go to different batches in every epoch.
        seed: integer, 0 or above.
        capacity: `RowCapacity` of the grid. Default: fitted to the trees.
        noise: `NoiseContrastive`, which draws noise for every word, or `None`.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Raises:
        ValueError: if `schedules` is empty, or an argument is too small.

    Indexing gives a batch for `TreeLearner`: grids, targets and their weights.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training import TreeBatches
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"])
    >>> batches = TreeBatches(
    ...     model, [model.schedule_tree(chain(["a"] * n)) for n in (1, 2, 3, 4)], 2
    ... )
    >>> [int(weights.sum()) for _, _, weights in batches]
    [4, 6]
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
        super().__init__(**kwargs)
        if not len(schedules):
            raise ValueError("there is no tree.")
        self.model, self.schedules, self.noise = model, list(schedules), noise
        self.batch_size = check_integer("batch_size", batch_size)
        self.shuffle, self.seed = shuffle, check_integer("seed", seed, 0)
        self.capacity = (
            RowCapacity.fitting(self.schedules, batch_size) if capacity is None else capacity
        )
        self._lengths = np.array([len(schedule.words) for schedule in self.schedules])
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Puts trees and batches in the order of an epoch, counted from 0."""
        self._epoch = epoch
        count = len(self.schedules)
        batches = -(-count // self.batch_size)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        order = generator.permutation(count) if self.shuffle else np.arange(count)
        order = order[np.argsort(self._lengths[order], kind="stable")]
        self._batches: list[list[int]] = [[] for _ in range(batches)]
        for start in range(0, count, batches):
            stretch = order[start : start + batches].tolist()
            places = generator.permutation(batches) if self.shuffle else range(batches)
            for place, tree in zip(places, stretch, strict=False):
                self._batches[place].append(tree)

    def on_epoch_end(self) -> None:
        """Goes to the next epoch, as `keras.Model.fit` expects."""
        self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        scheduled = self.model.schedule_batch(
            [self.schedules[i] for i in self._batches[index]], self.capacity
        )
        inputs = scheduled.grids
        if self.noise is not None:
            generator = np.random.Generator(np.random.PCG64([self.seed, self._epoch, index]))
            inputs = {**inputs, "noise": self.noise.draw(len(scheduled.targets), generator)}
        return inputs, scheduled.targets, scheduled.weights
