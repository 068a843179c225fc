"""The logical inference model: which of seven relations holds between two sentences."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_onlstm.onlstm.layer import ONLSTM
from keras_onlstm.utils import Tensor
from keras_onlstm.utils.keras_private import DenseInputs
from keras_onlstm.utils.numerics import embedding_lookup
from keras_onlstm.utils.validation import check_choice


class _Embedding(keras.layers.Embedding):
    """`keras.layers.Embedding` with a dense gradient (see `embedding_lookup`)."""

    def call(self, inputs):
        # To load a model, Keras calls it with numbers that are not integers.
        return embedding_lookup(self.embeddings, ops.cast(inputs, "int32"))


@keras.saving.register_keras_serializable(package="keras_onlstm")
class PairClassifier(DenseInputs, keras.Model):
    """Encodes two sentences with one recurrent layer and classifies the pair.

    With `h1` and `h2` the layer's last outputs, the features `(h1, h2, h1 * h2, |h1 - h2|)` pass a
    hidden layer of ELUs. Dropout applies to the word vectors, the features and the hidden layer.
    Word vectors are initialized with a standard normal distribution.

    Source: the logical inference experiment of Shen et al. 2019, Sec. 5.4, after Bowman et al.
    2015, "Tree-structured composition in neural networks without tree-structured architectures".

    Args:
        vocabulary_size: positive integer, number of token ids, padding (id 0) included.
        classes: positive integer, number of relations.
        embedding_dim: positive integer.
        units: positive integer, of the recurrent and the hidden layer.
        chunk_size: positive integer, of the ON-LSTM.
        recurrent: `"onlstm"`, or `"lstm"` for comparison.
        dropout: rate in [0, 1).
        seed: integer seed of dropout and initialization.
        **kwargs: of `keras.Model`.

    Call arguments:
        inputs: `(left, right)`, integer token ids (batch, time), padded with 0 on the right. Their
            lengths may differ.
        training: whether to apply dropout.

    Returns:
        Logits (batch, classes).

    Raises:
        ValueError: if `recurrent` is unknown or a size is invalid.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import PairClassifier
    >>> model = PairClassifier(vocabulary_size=12, classes=7, units=20)
    >>> tuple(model((np.array([[3, 4, 5]]), np.array([[3, 0]]))).shape)
    (1, 7)
    """

    graphs = ("classifier",)
    dense_instead = "x.to_tensor()"  # id 0 is padding

    def __init__(
        self,
        vocabulary_size: int,
        classes: int,
        embedding_dim: int = 128,
        units: int = 400,
        chunk_size: int = 10,
        recurrent: str = "onlstm",
        dropout: float = 0.2,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("recurrent", recurrent, ("onlstm", "lstm"))
        self._config: dict[str, Any] = {
            "vocabulary_size": vocabulary_size, "classes": classes, "embedding_dim": embedding_dim,
            "units": units, "chunk_size": chunk_size, "recurrent": recurrent, "dropout": dropout,
            "seed": seed,
        }  # fmt: skip
        self.embedding = _Embedding(
            vocabulary_size,
            embedding_dim,
            # With Keras's default, uniform within 0.05, the inputs hardly move the gates at first:
            # after 80 s of training, validation accuracy was 0.60 instead of 0.85.
            embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0, seed=seed),
            mask_zero=True,
            name="embedding",
        )
        self.dropout = keras.layers.Dropout(dropout, seed=seed, name="dropout")
        if recurrent == "onlstm":
            self.recurrent = ONLSTM(units, chunk_size=chunk_size, seed=seed, name="recurrent")
        else:
            self.recurrent = keras.layers.LSTM(units, seed=seed, name="recurrent")
            self.recurrent.supports_masking = True  # else Keras 3.16 warns about the mask
        self.hidden = keras.layers.Dense(units, activation="elu", name="hidden")
        self.relation = keras.layers.Dense(classes, name="relation")

    def encode(self, ids: Tensor, training: bool = False) -> Tensor:
        """Encodes sentences: ids (batch, time) -> the last output (batch, units)."""
        x = self.dropout(self.embedding(ids), training=training)
        return self.recurrent(x, mask=self.embedding.compute_mask(ids), training=training)

    def call(self, inputs: Sequence[Tensor], training: bool = False) -> Tensor:
        left, right = (self.encode(ids, training=training) for ids in inputs)
        features = ops.concatenate([left, right, left * right, ops.abs(left - right)], axis=-1)
        features = self.dropout(features, training=training)
        return self.relation(self.dropout(self.hidden(features), training=training))

    def quantize(self, mode: str | None = None, config: Any = None, **kwargs: Any) -> None:
        """Raises ValueError before a layer is changed: a saved file would not record it."""
        raise ValueError(
            "PairClassifier is not quantized by Keras. Write it in 8 bits with "
            "keras_onlstm.exporting: to_onnx(..., quantize='dynamic')."
        )

    @property
    def vocabulary_size(self) -> int:
        return self._config["vocabulary_size"]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}
