"""Batches of pairs of sequences of similar lengths, with little padding."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.keras_private import VaryingBatches

__all__ = ["PairBatches"]


class PairBatches(VaryingBatches):
    """Pairs of id sequences with their classes, in batches of similar lengths.

    Lengths are rounded up to `1 + k * multiple`. Pairs are sorted by the rounded lengths of both
    sides and cut into batches, each padded to its longest sequences. The order depends only on
    `seed` and epoch.

    Args:
        left: list of lists of integer ids, none of them 0.
        right: list of the same length.
        classes: list of integers, of the same length.
        batch_size: positive integer, in pairs.
        multiple: positive integer, the step of the rounded lengths. 1 pads least; larger ones give
            fewer shapes, for backends that compile for every shape.
        shuffle: whether pairs of equal lengths, and batches, are shuffled in every epoch.
        seed: integer, 0 or above.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Raises:
        ValueError: if the lists are empty or differ in length, an id is 0, or another argument is
            too small.

    Example:

    >>> from keras_onlstm.training import PairBatches
    >>> batches = PairBatches([[1], [1, 2], [3]], [[4], [5], [6]], [0, 1, 0], batch_size=2)
    >>> (left, right), classes = batches[0]
    >>> left.tolist(), right.tolist(), classes.tolist()
    ([[1], [3]], [[4], [6]], [0, 0])
    """

    lengths_vary = True

    def __init__(
        self,
        left: Sequence[Sequence[int]],
        right: Sequence[Sequence[int]],
        classes: Sequence[int],
        batch_size: int,
        multiple: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not len(left) == len(right) == len(classes) > 0:
            raise ValueError(
                "left, right and classes are lists of one length, at least 1, not of "
                f"{len(left)}, {len(right)} and {len(classes)}."
            )
        for index, pair in enumerate(zip(left, right, strict=True)):
            if any(0 in sequence for sequence in pair):
                raise ValueError(f"pair {index} has an id 0, which stands for padding.")
        self.left = left
        self.right = right
        self.classes = np.asarray(classes, dtype="int32")
        self.batch_size = integer("batch_size", batch_size)
        self.multiple = integer("multiple", multiple)
        self.shuffle = shuffle
        self.seed = integer("seed", seed, 0)
        lengths = np.array([[len(a), len(b)] for a, b in zip(left, right, strict=True)])
        self._widths = 1 + -(-(np.maximum(lengths, 1) - 1) // multiple) * multiple  # (pairs, 2)
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Puts pairs and batches in the order of an epoch.

        Args:
            epoch: integer, 0 or above.
        """
        self._epoch = epoch
        count = len(self.classes)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        order = generator.permutation(count) if self.shuffle else np.arange(count)
        left, right = self._widths[order].T
        # The right lengths alternately rise and fall, so that a batch with pairs of two left
        # lengths needs little padding.
        snake = np.where((left // self.multiple) % 2 == 0, right, -right)
        order = order[np.lexsort((snake, left))]
        self._batches = [
            order[start : start + self.batch_size] for start in range(0, count, self.batch_size)
        ]
        if self.shuffle:
            self._batches = [self._batches[i] for i in generator.permutation(len(self._batches))]

    def on_epoch_end(self) -> None:
        """Goes to the next epoch, as `keras.Model.fit` expects."""
        self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        rows = self._batches[index]
        left_width, right_width = self._widths[rows].max(axis=0)
        left = self._padded(self.left, rows, left_width)
        right = self._padded(self.right, rows, right_width)
        return (left, right), self.classes[rows]

    def padding_share(self) -> float:
        """The share of all token positions of an epoch that is padding."""
        positions = sum(len(rows) * self._widths[rows].max(axis=0).sum() for rows in self._batches)
        tokens = sum(map(len, self.left)) + sum(map(len, self.right))
        return 1 - tokens / positions

    @staticmethod
    def _padded(sequences, rows, width):
        ids = np.zeros((len(rows), width), dtype="int32")
        for place, row in enumerate(rows):
            ids[place, : len(sequences[row])] = sequences[row]
        return ids
