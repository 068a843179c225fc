"""Regularization of recurrent language models (Merity et al. 2018, arXiv:1708.02182).

Weight dropout is an argument of the layers, `recurrent_weight_dropout`.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_onlstm.recurrence.lstm import lstm
from keras_onlstm.utils import Tensor, Tensors
from keras_onlstm.utils.backends_tensorflow_jax import tensorflow_has_gpu


def locked_dropout(rate: float, seed: int | None = None, **kwargs: Any) -> keras.layers.Dropout:
    """`keras.layers.Dropout` of (B, T, features) that drops the same features at every step."""
    return keras.layers.Dropout(rate, noise_shape=(None, 1, None), seed=seed, **kwargs)


def word_dropout(embeddings: Tensor, rate: float, seed: int | keras.random.SeedGenerator) -> Tensor:
    """Drops rows of an embedding matrix (vocabulary, embedding_dim) and scales the others up."""
    if rate == 0:
        return embeddings
    factors = keras.random.dropout(ops.ones((embeddings.shape[0], 1)), rate, seed=seed)
    return embeddings * ops.cast(factors, embeddings.dtype)


def _mean(values, mask):
    """Mean of values (B, T, U) at unmasked steps; `mask` is (B, T) or `None`."""
    mask = ops.ones_like(values[..., 0]) if mask is None else ops.cast(mask, values.dtype)
    total = ops.sum(ops.multiply(values, ops.expand_dims(mask, -1)))
    return total / ops.maximum(ops.sum(mask) * values.shape[-1], 1.0)


def activation_regularization(
    outputs: Tensor, strength: float, mask: Tensor | None = None
) -> Tensor:
    """`strength` times the mean of the squared outputs (B, T, U) at unmasked steps."""
    return strength * _mean(outputs * outputs, mask)


def temporal_activation_regularization(
    outputs: Tensor, strength: float, mask: Tensor | None = None
) -> Tensor:
    """`strength` times the mean of the squared differences of neighbouring outputs (B, T, U)."""
    if outputs.shape[1] == 1:
        return ops.zeros((), outputs.dtype)
    change = outputs[:, 1:] - outputs[:, :-1]
    mask = None if mask is None else ops.logical_and(mask[:, 1:], mask[:, :-1])
    return strength * _mean(change * change, mask)


def _is_on_gpu(x):
    if keras.backend.backend() == "tensorflow":
        return tensorflow_has_gpu()
    if keras.backend.backend() == "jax":
        return not keras.distribution.list_devices()[0].startswith("cpu")
    return x.device.type != "cpu"


@keras.saving.register_keras_serializable(package="keras_onlstm")
class WeightDroppedLSTM(keras.layers.LSTM):
    """`keras.layers.LSTM` with the weight dropout of AWD-LSTM, for comparison with `ONLSTM`.

    In training on a CPU, its loop has hand-written gradients like that of `ONLSTM`, so that only
    the equations differ.

    `recurrent_weight_dropout` is the share of the entries of the recurrent kernel that are dropped
    in training, with one mask per batch.
    """

    def __init__(
        self,
        units: int,
        recurrent_weight_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, seed=seed, **kwargs)
        self.supports_masking = True  # Keras 3.16 drops masks otherwise
        self.recurrent_weight_dropout = recurrent_weight_dropout
        self.seed_generator = keras.random.SeedGenerator(seed)

    def inner_loop(
        self,
        sequences: Tensor,
        initial_state: Sequence[Tensor],
        mask: Tensor | None,
        training: bool = False,
    ) -> tuple[Tensor, Tensor, Tensors]:
        if not training:
            return super().inner_loop(sequences, initial_state, mask, training)
        cell, kernel = self.cell, self.cell.recurrent_kernel
        dropped = ops.convert_to_tensor(kernel, dtype=self.compute_dtype)
        if self.recurrent_weight_dropout:
            rate, seed = self.recurrent_weight_dropout, self.seed_generator
            dropped = keras.random.dropout(dropped, rate, seed=seed)
        if self._is_standard() and not _is_on_gpu(sequences):
            weights = cell.kernel, dropped, cell.bias
            outputs, c = lstm(sequences, initial_state, *weights, mask)
            return outputs[:, -1], outputs, (outputs[:, -1], c)
        try:
            # A plain assignment makes Keras look for variables in the tensor.
            object.__setattr__(cell, "recurrent_kernel", dropped)
            return super().inner_loop(sequences, initial_state, mask, training)
        finally:
            object.__setattr__(cell, "recurrent_kernel", kernel)

    def _is_standard(self):
        """Whether `recurrence.lstm` computes the same."""
        return (
            self.activation is keras.activations.tanh
            and self.recurrent_activation is keras.activations.sigmoid
            and self.use_bias
            and not (self.dropout or self.recurrent_dropout or self.go_backwards)
            and not self.zero_output_for_mask
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "recurrent_weight_dropout": self.recurrent_weight_dropout}
