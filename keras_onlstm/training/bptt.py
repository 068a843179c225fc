"""Truncated backpropagation through time: windows of a text, and a stateful model."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_onlstm.distribution.devices import share_of
from keras_onlstm.models.regularization import (
    activation_regularization,
    temporal_activation_regularization,
)
from keras_onlstm.training.cross_entropy import token_losses
from keras_onlstm.utils import Identifier, Tensor
from keras_onlstm.utils.keras_private import VaryingBatches, assign
from keras_onlstm.utils.validation import check_integer

__all__ = ["ResetStates", "TruncatedModel", "Windows", "contiguous", "evaluate_windows", "own_rows"]


def contiguous(ids: np.ndarray, batch_size: int) -> np.ndarray:
    """Cuts a text (tokens,) into `batch_size` rows (B, tokens // B), and drops the rest.

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


def own_rows(rows: int, process: tuple[int, int]) -> np.ndarray:
    """The indices of the rows of a batch that one of several processes reads."""
    index, count = process
    each = rows // count
    return np.arange(index * each, (index + 1) * each, dtype="int32")


class Windows(VaryingBatches):
    """The windows of an epoch in the order of the text, so that states carry over.

    A window's length is drawn around `window` with probability 0.95 and around half of it
    otherwise, with a standard deviation of 5, at least 5 (Merity et al. 2018). Windows are padded
    to one of four lengths, because some backends compile for each shape. The lengths depend only on
    `seed` and epoch.

    Args:
        ids: (tokens,) the text.
        batch_size: positive integer, B.
        window: integer, 10 or above.
        jitter: whether lengths vary. If not, all but the last are `window`.
        seed: integer, 0 or above.
        multiple: positive integer, such as the number of devices: empty rows are added until it
            divides the number of rows.
        process: index of this process and number of processes, which divides `multiple`. Each
            process reads its own rows.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Raises:
        ValueError: if the text is too short, or an argument too small.

    Indexing gives a batch for `TruncatedModel`: a dictionary of `ids` (B, L), a boolean `mask`
    (B, L), `False` for padding, and `rows` (B,), the indices of the sequences; targets (B, L); and
    their weights (B, L), 0 for padding. `keras.Model.fit` also takes it, with `shuffle=False`.

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
        process: tuple[int, int] = (0, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.text = contiguous(ids, check_integer("batch_size", batch_size))
        self.rows = -(-batch_size // check_integer("multiple", multiple)) * multiple
        self._own = own_rows(self.rows, process)
        self.window = window = check_integer("window", window, 10)
        self.jitter = jitter
        self.seed = check_integer("seed", seed, 0)
        # Up to 2.6 deviations above half a window, and 0.4, 2 and 5 above a whole one.
        spread = [math.ceil(window / 2) + 13, window + 2, window + 10, window + 25]
        self.padded_lengths = sorted(set(spread)) if jitter else [window]
        self.axis_1_varies = self.lengths_vary = jitter
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draws the windows of an epoch, counted from 0."""
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
        """Goes to the next epoch with as many windows: Keras reads their number only once."""
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
        """The number of tokens of the whole batch, including those of other processes."""
        return len(self.text) * self.length(index)

    def share(self, index: int) -> float:
        """The factor of the learning rate of a window: its length divided by `window`."""
        return self.length(index) / self.window

    def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        ends = self._ends  # once: Keras reads ahead in another thread
        if not 0 <= index < len(ends) - 1:
            raise IndexError(f"there are {len(self)} windows, from 0 on, and no window {index}.")
        start, stop = ends[index : index + 2]
        size = next(length for length in self.padded_lengths if length >= stop - start)
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


class _Penalty(keras.losses.Loss):
    """Passes the model's penalty through a loss, so that Keras scales it for replicas."""

    def call(self, y_true, y_pred):
        return y_pred


class _TokenLoss(keras.losses.Loss):
    """A faster `keras.losses.SparseCategoricalCrossentropy` for logits."""

    def call(self, y_true, y_pred):
        return token_losses(y_true, y_pred)


_penalty = _Penalty(name="penalty")


class TruncatedModel(keras.Model):
    """A language model that keeps its states from one window to the next.

    Gradients stop at the start of a window, states carry over. The states are variables, so a
    checkpoint of the model's variables includes them. The loss is the weighted mean over the
    tokens, in nats, plus the two penalties in training.

    Args:
        model: `LanguageModel`, `PRPN`, or another `models.sentence_reader.SentenceReader`.
        batch_size: positive integer, of the whole batch if several devices share it.
        activation_regularization: strength of the penalty on large outputs of the last layer.
        temporal_activation_regularization: strength of that on their changes over time.
        carry: whether states carry over. If not, each batch begins with the initial states, as
            for `SentenceBatches`.
        **kwargs: arguments of `keras.Model`.

    Call arguments:
        inputs: dictionary of `ids`, `mask` and `rows`, see `Windows`.
        training: whether dropout and penalties apply.

    Returns:
        Logits (batch, time, V), and the sum of the penalties (1,), 0 except in training.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> from keras_onlstm.training import TruncatedModel, Windows, evaluate_windows
    >>> model = LanguageModel(9, embedding_dim=8, units=8, num_layers=1, chunk_size=4)
    >>> reader = TruncatedModel(model, batch_size=2, activation_regularization=2.0)
    >>> reader.compile("sgd")
    >>> windows = Windows(np.arange(50) % 9, batch_size=2, window=10, jitter=False)
    >>> for inputs, targets, weights in windows:
    ...     numbers = reader.train_on_batch(inputs, targets, weights, return_dict=True)
    >>> sorted(numbers), bool(np.exp(evaluate_windows(reader, windows)) < 20)
    (['loss', 'penalty'], True)
    """

    def __init__(
        self,
        model: keras.Model,
        batch_size: int,
        activation_regularization: float = 0.0,
        temporal_activation_regularization: float = 0.0,
        carry: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"dtype": model.dtype_policy, **kwargs})
        self.model = model
        self.batch_size = batch_size
        self.strengths = activation_regularization, temporal_activation_regularization
        if not model.built:
            model.build()
        self.carry = carry
        # Each replica writes its own rows and zeros elsewhere; the sum is the whole batch.
        self.kept = carry and keras.tree.map_structure(
            lambda name, state: self.add_weight(
                shape=state.shape,
                initializer="zeros",
                trainable=False,
                aggregation="sum",
                autocast=False,
                dtype=keras.backend.result_type(state.dtype, self.variable_dtype),
                name=name,
            ),
            model.state_names,
            model.initial_states(batch_size),
        )
        self.reset_states()
        self.penalty = keras.metrics.Mean(name="penalty")
        self.built = True

    def reset_states(self) -> None:
        """Sets the states to the model's initial states."""
        if not self.carry:
            return
        states = keras.tree.flatten(self.model.initial_states(self.batch_size))
        for variable, state in zip(keras.tree.flatten(self.kept), states, strict=True):
            variable.assign(ops.convert_to_numpy(state))

    def call(self, inputs: dict[str, Tensor], training: bool = False) -> tuple[Tensor, Tensor]:
        rows, mask = inputs["rows"], ops.cast(inputs["mask"], "bool")
        states = None
        if self.carry:
            states = keras.tree.map_structure(lambda kept: ops.take(kept, rows, 0), self.kept)
        options = {"states": states, "mask": mask, "training": training, "details": True}
        outputs = self.model(inputs["ids"], **options)
        if self.carry:
            self._keep(outputs.states, rows)
        penalty = ops.zeros((), "float32")
        if training and any(self.strengths):
            penalty = ops.cast(
                activation_regularization(outputs.output, self.strengths[0], mask)
                + temporal_activation_regularization(outputs.raw_output, self.strengths[1], mask),
                "float32",
            )
        # Not add_loss: replicas of a model would share one list of losses.
        return outputs.logits, ops.expand_dims(penalty, 0)

    def _keep(self, states, rows):
        places = ops.expand_dims(rows, -1)  # (B, 1)
        kept, last = keras.tree.flatten(self.kept), keras.tree.flatten(states)
        for variable, state in zip(kept, last, strict=True):
            state = ops.cast(ops.stop_gradient(state), variable.dtype)
            assign(variable, ops.scatter(places, state, variable.shape))

    def compute_loss(
        self,
        x: Any = None,
        y: Tensor = None,
        y_pred: Any = None,
        sample_weight: Tensor = None,
        training: bool = True,
    ) -> Tensor:
        logits, penalty = y_pred
        share = share_of(sample_weight)
        penalty = penalty * share
        self.penalty.update_state(penalty)
        loss = super().compute_loss(x, y, logits, sample_weight, training=training)
        return loss * share + _penalty(ops.zeros_like(penalty), penalty)

    def compile(self, optimizer: Identifier = "sgd", **kwargs: Any) -> None:
        """`keras.Model.compile` with the loss of a language model."""
        loss = _TokenLoss(reduction="mean_with_sample_weight")
        super().compile(optimizer, loss=loss, **kwargs)
        # Builds the loss, so that Keras does not call the model on a random batch.
        empty = ops.zeros((1, 1, self.model.vocabulary_size)), ops.zeros((1,))
        self.compute_loss(y=ops.zeros((1, 1), "int32"), y_pred=empty)
        self.penalty.reset_state()


class ResetStates(keras.callbacks.Callback):
    """Resets the states of a `TruncatedModel` at the start of every epoch."""

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.model.reset_states()


def evaluate_windows(model: TruncatedModel, windows: Any) -> float:
    """The mean loss over a whole text, read window after window from the start.

    Args:
        model: compiled `TruncatedModel`, with the batch size of `windows`.
        windows: `Windows` without jitter, or `SentenceBatches`.

    Returns:
        Mean of the negative log-probabilities of the tokens, in nats.
    """
    model.reset_states()
    total = tokens = 0.0
    for index in range(len(windows)):
        inputs, targets, weights = windows[index]
        count = float(windows.samples(index))  # including those of other processes
        loss = model.test_on_batch(inputs, targets, weights, return_dict=True)["loss"]
        total, tokens = total + float(loss) * count, tokens + count
    return total / tokens
