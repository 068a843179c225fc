"""Truncated backpropagation through time: a stateful model, its loss and its evaluation."""

from collections.abc import Iterable
from typing import Any

import keras
from keras import backend, ops

from keras_onlstm.distribution.devices import replica_weight
from keras_onlstm.models.regularization import (
    activation_regularization,
    temporal_activation_regularization,
)
from keras_onlstm.utils import Identifier, Tensor
from keras_onlstm.utils.backends_tensorflow_jax import (
    compiled,
    raise_on_gradient,
    tensorflow_has_gpu,
)
from keras_onlstm.utils.keras_private import assign
from keras_onlstm.utils.numerics import wide_dtype

# With fewer words TensorFlow's operation takes less time than compiling another one.
_MANY_WORDS = 1000
_FIRST_ONLY = "For second derivatives use keras.ops.sparse_categorical_crossentropy."


def token_losses(targets: Tensor, logits: Tensor) -> Tensor:
    """The negative log-probabilities (...) of tokens (...), in nats, from logits (..., V).

    Equal to `keras.ops.sparse_categorical_crossentropy`. With many words, on TensorFlow without a
    GPU, it is compiled with XLA, which takes a third of the time.
    """
    targets, logits = ops.convert_to_tensor(targets), ops.convert_to_tensor(logits)
    words = logits.shape[-1]
    if backend.backend() != "tensorflow" or words < _MANY_WORDS or tensorflow_has_gpu():
        logits = ops.cast(logits, wide_dtype(logits.dtype))
        return ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    flat_targets = ops.reshape(ops.cast(targets, "int32"), (-1,))  # (N,)

    @ops.custom_gradient
    def losses(logits):
        result, log_sum = compiled(_losses)(logits, flat_targets)

        def gradient(upstream):
            slopes = compiled(_losses_grad)(logits, flat_targets, log_sum, upstream)
            return raise_on_gradient([slopes], _FIRST_ONLY)[0]

        return result, gradient

    return ops.reshape(losses(ops.reshape(logits, (-1, words))), ops.shape(targets))


def _losses(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Losses (N,), and the logarithms of the sums of exponentials (N, 1)."""
    wide = ops.cast(logits, wide_dtype(logits.dtype))  # (N, V)
    log_sum = ops.logsumexp(wide, -1, keepdims=True)
    target_logits = ops.take_along_axis(wide, ops.expand_dims(targets, -1), -1)  # (N, 1)
    return ops.squeeze(log_sum - target_logits, -1), log_sum


def _losses_grad(logits: Tensor, targets: Tensor, log_sum: Tensor, upstream: Tensor) -> Tensor:
    """The gradient with respect to the logits, (N, V): softmax minus one-hot targets."""
    wide = ops.cast(logits, log_sum.dtype)
    is_target = ops.expand_dims(targets, -1) == ops.arange(wide.shape[-1], dtype=targets.dtype)
    slope = ops.exp(wide - log_sum) - ops.cast(is_target, log_sum.dtype)
    return ops.cast(slope * ops.expand_dims(upstream, -1), logits.dtype)


class _PenaltyLoss(keras.losses.Loss):
    """Passes the model's penalty through a loss, so that Keras scales it for replicas."""

    def call(self, y_true, y_pred):
        return y_pred


class _TokenLoss(keras.losses.Loss):
    """A faster `keras.losses.SparseCategoricalCrossentropy` for logits."""

    def call(self, y_true, y_pred):
        return token_losses(y_true, y_pred)


_penalty_loss = _PenaltyLoss(name="penalty")


class TruncatedModel(keras.Model):
    """A language model that keeps its states from one window to the next.

    Gradients stop at the start of a window, states carry over, in variables. The loss is the
    weighted mean over the tokens, in nats, plus the two penalties in training.

    Args:
        model: `LanguageModel`, `PRPN`, or another `models.sentence_reader.SentenceReader`.
        batch_size: positive integer, of the whole batch if several devices share it.
        activation_regularization: strength of the penalty on large outputs of the last layer.
        temporal_activation_regularization: strength of that on their changes over time.
        carry: whether states carry over. `SentenceBatches` need `False`.
        **kwargs: arguments of `keras.Model`.

    Call arguments:
        inputs: dictionary of `ids`, `mask` and `rows`, see `Windows`.
        training: whether dropout and penalties apply.

    Returns:
        Logits (B, T, V), and the sum of the penalties (1,), 0 except in training.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> from keras_onlstm.training import TruncatedModel, Windows, evaluate_windows
    >>> model = LanguageModel(9, embedding_dim=8, units=8, num_layers=1, chunk_size=4)
    >>> truncated = TruncatedModel(model, batch_size=2, activation_regularization=2.0)
    >>> truncated.compile("sgd")
    >>> windows = Windows(np.arange(50) % 9, batch_size=2, window=10, variable_bptt=False)
    >>> metrics = truncated.train_on_batch(*windows[0], return_dict=True)
    >>> sorted(metrics), bool(np.exp(evaluate_windows(truncated, windows)) < 20)
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
        self.model, self.batch_size, self.carry = model, batch_size, carry
        self.strengths = activation_regularization, temporal_activation_regularization
        if not model.built:
            model.build()
        # Each replica writes its own rows and zeros elsewhere; the sum is the whole batch.
        options = {"initializer": "zeros", "trainable": False, "autocast": False,
                   "aggregation": "sum"}  # fmt: skip

        def make_state(name, state):
            dtype = backend.result_type(state.dtype, self.variable_dtype)
            return self.add_weight(shape=state.shape, dtype=dtype, name=name, **options)

        self.states = carry and keras.tree.map_structure(
            make_state, model.state_names, model.initial_states(batch_size)
        )
        self.reset_states()
        self.penalty = keras.metrics.Mean(name="penalty")
        self.built = True

    def reset_states(self) -> None:
        """Sets the states to the model's initial states."""
        if self.carry:
            states = keras.tree.flatten(self.model.initial_states(self.batch_size))
            for variable, state in zip(keras.tree.flatten(self.states), states, strict=True):
                variable.assign(ops.convert_to_numpy(state))

    def call(self, inputs: dict[str, Tensor], training: bool = False) -> tuple[Tensor, Tensor]:
        rows, mask, states = inputs["rows"], ops.cast(inputs["mask"], "bool"), None
        if self.carry:
            states = keras.tree.map_structure(lambda state: ops.take(state, rows, 0), self.states)
        options = {"states": states, "mask": mask, "training": training, "details": True}
        outputs = self.model(inputs["ids"], **options)
        if self.carry:
            self._store(outputs.states, rows)
        penalty = ops.zeros((), "float32")
        if training and any(self.strengths):
            large, changing = self.strengths
            penalty = activation_regularization(outputs.output, large, mask)
            penalty += temporal_activation_regularization(outputs.raw_output, changing, mask)
            penalty = ops.cast(penalty, "float32")
        # Not add_loss: replicas of a model would share one list of losses.
        return outputs.logits, ops.expand_dims(penalty, 0)

    def _store(self, states, rows):
        variables, states = keras.tree.flatten(self.states), keras.tree.flatten(states)
        for variable, state in zip(variables, states, strict=True):
            state = ops.cast(ops.stop_gradient(state), variable.dtype)
            assign(variable, ops.scatter(ops.expand_dims(rows, -1), state, variable.shape))

    def compute_loss(
        self,
        x: Any = None,
        y: Tensor = None,
        y_pred: Any = None,
        sample_weight: Tensor = None,
        training: bool = True,
    ) -> Tensor:
        logits, penalty = y_pred
        weight = replica_weight(sample_weight)
        penalty = penalty * weight
        self.penalty.update_state(penalty)
        loss = super().compute_loss(x, y, logits, sample_weight, training=training)
        return loss * weight + _penalty_loss(ops.zeros_like(penalty), penalty)

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
    """The mean negative log-probability of the tokens of a text, in nats.

    Args:
        model: compiled `TruncatedModel`, with the batch size of `windows`.
        windows: `Windows` with `variable_bptt=False`, or `SentenceBatches`.
    """
    model.reset_states()
    return mean_loss(model, ((windows[i], windows.samples(i)) for i in range(len(windows))))


def mean_loss(model: keras.Model, batches: Iterable[tuple[Any, float]]) -> float:
    """The mean of the losses of batches, weighted by the number of samples given with each."""
    total = samples = 0.0
    for batch, count in batches:
        loss = model.test_on_batch(*batch, return_dict=True)["loss"]
        total, samples = total + float(loss) * count, samples + count
    return total / samples
