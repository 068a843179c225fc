"""Batches of dependency trees with similar numbers of words, laid out in grids."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive
from keras_onlstm.tree_lstm.plan import Layout, Rooms
from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.keras_private import VaryingBatches

__all__ = ["TreeBatches"]


class TreeBatches(VaryingBatches):
    """Batches of trees, each laid out in a grid.

    The trees are sorted by length and cut into `batch_size` groups; a batch has one tree of each.
    So batches have similar numbers of words and only a few shapes. The order depends only on
    `seed` and epoch.

    Args:
        model: `TreeLSTM` that lays them out.
        layouts: list of `Layout`, the results of `model.lay_out`.
        batch_size: positive integer, trees in a batch; some batches have one less.
        shuffle: whether the trees of a group go to different batches in every epoch.
        seed: integer, 0 or above.
        rooms: `Rooms` of the grid. Default: fitted to the trees.
        noise: `NoiseContrastive`, which draws noise for every word, or `None`.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Raises:
        ValueError: if `layouts` is empty, or an argument is too small.

    Indexing gives a batch for `TreeLearner`: grids, targets and their weights.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training import TreeBatches
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"])
    >>> batches = TreeBatches(model, [model.lay_out(chain(["a"] * n)) for n in (1, 2, 3, 4)], 2)
    >>> [int(weights.sum()) for _, _, weights in batches]
    [4, 6]
    """

    def __init__(
        self,
        model: TreeLSTM,
        layouts: Sequence[Layout],
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        rooms: Rooms | None = None,
        noise: NoiseContrastive | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not len(layouts):
            raise ValueError("there is no tree.")
        self.model, self.layouts, self.noise = model, list(layouts), noise
        self.batch_size = integer("batch_size", batch_size)
        self.shuffle, self.seed = shuffle, integer("seed", seed, 0)
        self.rooms = Rooms.fitting(self.layouts, batch_size) if rooms is None else rooms
        self._lengths = np.array([len(layout.words) for layout in self.layouts])
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Puts trees and batches in the order of an epoch, counted from 0."""
        self._epoch = epoch
        count = len(self.layouts)
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
        planned = self.model.plan([self.layouts[i] for i in self._batches[index]], self.rooms)
        inputs = planned.grids
        if self.noise is not None:
            generator = np.random.Generator(np.random.PCG64([self.seed, self._epoch, index]))
            inputs = {**inputs, "noise": self.noise.draw(len(planned.targets), generator)}
        return inputs, planned.targets, planned.weights
