"""Regularization of recurrent language models against overfitting (Merity et al. 2018).

Source: Merity, Keskar and Socher 2018, "Regularizing and Optimizing LSTM Language Models",
https://arxiv.org/abs/1708.02182. Weight dropout is an argument of the layers,
`recurrent_weight_dropout`.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_onlstm.recurrence.lstm import lstm
from keras_onlstm.utils import Tensor, Tensors
from keras_onlstm.utils.backends_tensorflow_jax import tensorflow_has_gpu

__all__ = [
    "WeightDroppedLSTM",
    "activation_regularization",
    "locked_dropout",
    "temporal_activation_regularization",
    "word_dropout",
]


def locked_dropout(rate: float, seed: int | None = None, **kwargs: Any) -> keras.layers.Dropout:
    """`keras.layers.Dropout` of (batch, time, features) that drops the same features at every step.

    Args:
        rate: share to drop, in [0, 1).
        seed: integer seed.
        **kwargs: of `keras.layers.Dropout`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models.regularization import locked_dropout
    >>> dropped = np.asarray(locked_dropout(0.5, seed=1)(np.ones((1, 3, 8)), training=True))
    >>> bool((dropped == dropped[:, :1]).all())
    True
    """
    return keras.layers.Dropout(rate, noise_shape=(None, 1, None), seed=seed, **kwargs)


def word_dropout(embeddings: Tensor, rate: float, seed: int | keras.random.SeedGenerator) -> Tensor:
    """Drops whole words from an embedding matrix, everywhere in a batch, and scales the others up.

    Args:
        embeddings: (vocabulary, embedding_dim).
        rate: share of words to drop, in [0, 1).
        seed: `keras.random.SeedGenerator` or integer.
    """
    if rate == 0:
        return embeddings
    factors = keras.random.dropout(ops.ones((embeddings.shape[0], 1)), rate, seed=seed)
    return embeddings * ops.cast(factors, embeddings.dtype)


def _mean(values, mask):
    """Mean of values (B, T, U) at unmasked steps; `mask` is (B, T) or `None`."""
    mask = ops.ones_like(values[..., 0]) if mask is None else ops.cast(mask, values.dtype)
    total = ops.sum(values * ops.expand_dims(mask, -1))
    return total / ops.maximum(ops.sum(mask) * values.shape[-1], 1.0)


def activation_regularization(
    outputs: Tensor, strength: float, mask: Tensor | None = None
) -> Tensor:
    """`strength` times the mean of the squared outputs.

    Args:
        outputs: (batch, time, units), after dropout.
        strength: number; 2 in the published recipe.
        mask: boolean (batch, time), `False` at masked steps, or `None`.
    """
    return strength * _mean(outputs * outputs, mask)


def temporal_activation_regularization(
    outputs: Tensor, strength: float, mask: Tensor | None = None
) -> Tensor:
    """`strength` times the mean of the squared difference of neighbouring outputs.

    Args:
        outputs: (batch, time, units), before dropout.
        strength: number; 1 in the published recipe.
        mask: boolean (batch, time), `False` at masked steps, or `None`.

    Returns:
        Scalar tensor, 0 if there is only one step.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models.regularization import temporal_activation_regularization
    >>> float(temporal_activation_regularization(np.array([[[1.0], [3.0]]], "float32"), 0.5))
    2.0
    """
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

    Args:
        units: positive integer.
        recurrent_weight_dropout: share of the entries of the recurrent kernel to drop in training,
            with one mask per batch. The other entries are scaled up.
        seed: integer seed.
        **kwargs: of `keras.layers.LSTM`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models.regularization import WeightDroppedLSTM
    >>> layer = WeightDroppedLSTM(8, recurrent_weight_dropout=0.5)
    >>> tuple(layer(np.ones((2, 3, 4), "float32"), training=True).shape)
    (2, 8)
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
        rate = self.recurrent_weight_dropout
        return {**super().get_config(), "recurrent_weight_dropout": rate}
