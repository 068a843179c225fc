"""Windows for truncated back-propagation: contiguous batches, cut at jittered lengths."""

import math
from typing import Any

import numpy as np

from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.keras_private import VaryingBatches

__all__ = ["Windows", "contiguous", "own_rows"]


def contiguous(ids: np.ndarray, batch_size: int) -> np.ndarray:
    """Cuts a text in `batch_size` pieces of one length that lie side by side.

    Args:
        ids: (tokens,).
        batch_size: positive integer, B.

    Returns:
        (B, tokens // B); what is over at the end is left out.

    Raises:
        ValueError: if there are not at least two tokens a piece.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training import contiguous
    >>> contiguous(np.arange(7), 2).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    columns = len(ids) // batch_size
    if columns < 2:
        raise ValueError(
            f"{len(ids)} tokens are too few for a batch of {batch_size}: each of its sequences "
            "needs two. Use a smaller batch or a longer text."
        )
    return np.asarray(ids[: columns * batch_size]).reshape(batch_size, columns)


def own_rows(rows: int, host: tuple[int, int]) -> np.ndarray:
    """The numbers of the rows of a batch that one of several hosts reads."""
    index, count = host
    each = rows // count
    return np.arange(index * each, (index + 1) * each, dtype="int32")


class Windows(VaryingBatches):
    """The windows of an epoch, one after the other, so that states carry over.

    A window's length is drawn around `window` with probability 0.95 and around half of it
    otherwise, with a normal deviation of 5, at least 5 (Merity et al. 2018). Windows are padded to
    one of four lengths, so that a backend that compiles for each shape does so four times.

    The lengths depend on `seed` and `epoch` alone.

    Args:
        ids: (tokens,) the text.
        batch_size: positive integer, B.
        window: integer, 10 or above.
        jitter: whether lengths vary. Without, all but the last are `window`.
        seed: integer, 0 or above.
        multiple: positive integer; empty sequences follow the B ones until it divides their number,
            as many devices want it that share a batch.
        host: which of several hosts this is, from 0 on, and how many there are, whose number
            divides `multiple`. Each is given the sequences of its own share.
        **kwargs: of `keras.utils.PyDataset`.

    Raises:
        ValueError: if the text is too short, or an argument too small.

    Indexing with the number of a window gives what `TruncatedModel` trains on. Inputs are a
    dictionary of `ids` (B, L), a boolean `mask` (B, L) that is `False` for padding, and `rows`
    (B,), which of the sequences these are. Targets (B, L) and their weights (B, L), 0 for padding,
    follow.

    `keras.Model.fit` takes it as well, with `shuffle=False`, for Keras shuffles batches otherwise.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training import Windows
    >>> windows = Windows(np.arange(50), batch_size=2, window=10, jitter=False)
    >>> inputs, targets, weights = windows[0]
    >>> inputs["ids"].tolist()
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [25, 26, 27, 28, 29, 30, 31, 32, 33, 34]]
    >>> targets[:, -1].tolist(), [windows.length(index) for index in range(len(windows))]
    ([10, 35], [10, 10, 4])
    """

    def __init__(
        self,
        ids: np.ndarray,
        batch_size: int,
        window: int = 70,
        jitter: bool = True,
        seed: int = 0,
        multiple: int = 1,
        host: tuple[int, int] = (0, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.text = contiguous(ids, integer("batch_size", batch_size))
        self.rows = -(-batch_size // integer("multiple", multiple)) * multiple
        self._own = own_rows(self.rows, host)
        self.window = window = integer("window", window, 10)
        self.jitter = jitter
        self.seed = integer("seed", seed, 0)
        # Half a window with its deviation, then one, two and five deviations above a whole one.
        spread = [math.ceil(window / 2) + 13, window + 2, window + 10, window + 25]
        self.padded_lengths = sorted(set(spread)) if jitter else [window]
        self.axis_1_varies = self.lengths_vary = jitter
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draws the windows of an epoch, from 0 on."""
        self._epoch = epoch
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        last = self.text.shape[1] - 1  # the last token is only a target
        ends = [0]
        while ends[-1] < last:
            length = self.window
            if self.jitter:
                middle = self.window if generator.random() < 0.95 else self.window / 2
                drawn = int(generator.normal(middle, 5))
                length = min(max(5, drawn), self.padded_lengths[-1])
            ends.append(min(ends[-1] + length, last))
        self._ends = ends

    def on_epoch_end(self) -> None:
        """Goes on to the next epoch, as `keras.Model.fit` expects it.

        To the next one that has as many windows: Keras asks only once for their number. Without
        jitter all epochs have.
        """
        count = len(self)
        self.set_epoch(self._epoch + 1)
        while len(self) != count:
            self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def length(self, index: int) -> int:
        """The number of steps of a window, without padding."""
        return self._ends[index + 1] - self._ends[index]

    def samples(self, index: int) -> int:
        """The number of tokens of a whole batch, those of other hosts included."""
        return len(self.text) * self.length(index)

    def share(self, index: int) -> float:
        """What the learning rate of a window is multiplied with: its length by the usual one."""
        return self.length(index) / self.window

    def _size(self, ends, index):
        """The number of steps of a window with its padding."""
        return next(n for n in self.padded_lengths if n >= ends[index + 1] - ends[index])

    def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        ends = self._ends  # once: Keras reads ahead in another thread
        if not 0 <= index < len(ends) - 1:
            raise IndexError(f"there are {len(self)} windows, from 0 on, and no window {index}.")
        start, stop = ends[index : index + 2]
        size = self._size(ends, index)
        own = self._own
        text = self.text[own[0] : own[-1] + 1, start : stop + 1]
        ids, targets = np.zeros((2, len(own), size), "int32")
        mask = np.zeros((len(own), size), bool)
        filled = slice(len(text)), slice(stop - start)
        ids[filled] = text[:, :-1]
        targets[filled] = text[:, 1:]
        mask[filled] = True
        inputs = {"ids": ids, "mask": mask, "rows": own}
        return inputs, targets, mask.astype("float32")
