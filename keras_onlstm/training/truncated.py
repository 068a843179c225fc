"""Truncated back-propagation: a model that reads window after window and keeps its states."""

from typing import Any

import keras
from keras import ops

from keras_onlstm.models.regularization import (
    activation_regularization,
    temporal_activation_regularization,
)
from keras_onlstm.training.devices import share_of
from keras_onlstm.training.sentences import SentenceBatches
from keras_onlstm.training.windows import Windows
from keras_onlstm.utils.cross_entropy import token_losses
from keras_onlstm.utils.keras_private import assign
from keras_onlstm.utils.types import Identifier, Tensor

__all__ = ["ResetStates", "TruncatedModel", "evaluate_windows"]


class _Penalty(keras.losses.Loss):
    """A penalty that a model computed, as a loss that is shared among replicas as others are."""

    def call(self, y_true, y_pred):
        return y_pred


class _TokenLoss(keras.losses.Loss):
    """`keras.losses.SparseCategoricalCrossentropy` of logits, in less time."""

    def call(self, y_true, y_pred):
        return token_losses(y_true, y_pred)


_penalty = _Penalty(name="penalty")


class TruncatedModel(keras.Model):
    """A language model whose states go on from one call to the next.

    Trains and evaluates a language model on `Windows`: gradients stop where a window begins,
    states do not. The states are variables, so a checkpoint of the model's variables holds them.
    Without `carry` it does so on `SentenceBatches`.

    `train_on_batch` and `test_on_batch` take what `Windows` yields. The loss is the mean over the
    tokens that count, in nats, plus the two penalties while training.

    Args:
        model: `LanguageModel`, or another that offers what `models.sentence_reader` says.
        batch_size: positive integer, of the whole batch if several devices share it.
        activation_regularization: strength of the penalty on large outputs of the last layer.
        temporal_activation_regularization: strength of that on their change from step to step.
        carry: whether states go on; without, every batch begins with the initial ones, as sentences
            do, and nothing is kept.
        **kwargs: of `keras.Model`.

    Call arguments:
        inputs: dictionary of `ids` (batch, time), `mask` (batch, time), and `rows` (batch,), which
            of the sequences these are.
        training: whether dropout and penalties apply.

    Returns:
        Logits (batch, time, V), and the penalties (1,), which are 0 unless in training.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> from keras_onlstm.training import TruncatedModel, Windows
    >>> model = LanguageModel(9, embedding_dim=8, units=8, num_layers=1, chunk_size=4)
    >>> reader = TruncatedModel(model, batch_size=2, activation_regularization=2.0)
    >>> reader.compile("sgd")
    >>> windows = Windows(np.arange(50) % 9, batch_size=2, window=10, jitter=False)
    >>> for inputs, targets, weights in windows:
    ...     numbers = reader.train_on_batch(inputs, targets, weights, return_dict=True)
    >>> sorted(numbers)
    ['loss', 'penalty']
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
        # A replica knows its own rows only: the sum over replicas is the whole. The model itself
        # casts what it does not want as wide.
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
        """Goes back to the model's initial states, as before the first window of a text."""
        if not self.carry:
            return
        states = keras.tree.flatten(self.model.initial_states(self.batch_size))
        for variable, state in zip(keras.tree.flatten(self.kept), states, strict=True):
            variable.assign(ops.convert_to_numpy(state))

    def call(self, inputs: dict[str, Tensor], training: bool = False) -> tuple[Tensor, Tensor]:
        rows, mask = inputs["rows"], ops.cast(inputs["mask"], "bool")
        states = None
        if self.carry:
            states = keras.tree.map_structure(
                lambda state: ops.take(state, rows, axis=0), self.kept
            )
        outputs = self.model(
            inputs["ids"], states=states, mask=mask, training=training, details=True
        )
        if self.carry:
            self._keep(outputs.states, rows)
        penalty = ops.zeros((), "float32")
        if training and any(self.strengths):
            penalty = ops.cast(
                activation_regularization(outputs.output, self.strengths[0], mask)
                + temporal_activation_regularization(outputs.raw_output, self.strengths[1], mask),
                "float32",
            )
        # Not by add_loss: replicas of a model would share one list of losses.
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
        """As `keras.Model.compile`, with the loss of a language model.

        Args:
            optimizer: of `keras.Model.compile`.
            **kwargs: of `keras.Model.compile`, without `loss`.
        """
        loss = _TokenLoss(reduction="mean_with_sample_weight")
        super().compile(optimizer, loss=loss, **kwargs)
        # Once a loss is built Keras does not try the model out on a batch of other numbers, which
        # need not be rows, or be arrays at all where several devices share it.
        empty = ops.zeros((1, 1, self.model.vocabulary_size)), ops.zeros((1,))
        self.compute_loss(y=ops.zeros((1, 1), "int32"), y_pred=empty)
        self.penalty.reset_state()


class ResetStates(keras.callbacks.Callback):
    """Lets a `TruncatedModel` begin every epoch with its initial states.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> from keras_onlstm.training import ResetStates, TruncatedModel, Windows
    >>> reader = TruncatedModel(LanguageModel(9, 8, 8, num_layers=1, chunk_size=4), batch_size=2)
    >>> reader.compile("sgd")
    >>> windows = Windows(np.arange(50) % 9, batch_size=2, window=10, jitter=False)
    >>> history = reader.fit(windows, shuffle=False, callbacks=[ResetStates()], verbose=0)
    >>> len(history.history["loss"])
    1
    """

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.model.reset_states()


def evaluate_windows(model: TruncatedModel, windows: Windows | SentenceBatches) -> float:
    """The mean loss over a whole text, read window after window from the start.

    Args:
        model: compiled `TruncatedModel`, with the batch size of `windows`.
        windows: `Windows` without jitter, or `SentenceBatches`.

    Returns:
        Mean of the negative log-probabilities of the tokens, in nats: the perplexity's logarithm.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> from keras_onlstm.training import TruncatedModel, Windows, evaluate_windows
    >>> model = LanguageModel(9, embedding_dim=8, units=8, num_layers=1, chunk_size=4)
    >>> reader = TruncatedModel(model, batch_size=1)
    >>> reader.compile()
    >>> text = np.arange(30) % 9
    >>> loss = evaluate_windows(reader, Windows(text, 1, window=10, jitter=False))
    >>> bool(np.exp(loss) < 20)  # not much has been learnt: about as many as there are words
    True
    """
    model.reset_states()
    total = tokens = 0.0
    for index in range(len(windows)):
        inputs, targets, weights = windows[index]
        count = float(windows.samples(index))  # those of other hosts included
        loss = model.test_on_batch(inputs, targets, weights, return_dict=True)["loss"]
        total, tokens = total + float(loss) * count, tokens + count
    return total / tokens
