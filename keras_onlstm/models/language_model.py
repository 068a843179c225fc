"""LanguageModel: predicts the next word, and computes a distance at every word."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_onlstm.compact import MAX_LAYERS, layer_sizes
from keras_onlstm.models import initializers
from keras_onlstm.models.regularization import WeightDroppedLSTM, locked_dropout, word_dropout
from keras_onlstm.models.sentence_reader import SentenceReader, check_vocabulary_size
from keras_onlstm.onlstm.layer import ONLSTM
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.numerics import embedding_lookup, matmul
from keras_onlstm.utils.validation import (
    INITIALIZATIONS,
    check_choice,
    check_integer,
    renamed_arguments,
)


class LanguageModelOutput(NamedTuple):
    """The output of `LanguageModel` with `details=True`.

    Attributes:
        logits: (batch, time, V), of the next token.
        states: list of [h, c] of every layer, each (batch, size of the layer), after the last step.
        raw_output: (batch, time, size of the last layer), output of that layer.
        output: the same after dropout.
        distances: dictionary with "forget" and "input", the master gates: each (batch, layers,
            time), in [0, 1). Empty for an LSTM.
    """

    logits: Tensor | None
    states: list[list[Tensor]]
    raw_output: Tensor
    output: Tensor
    distances: dict[str, Tensor]


@keras.saving.register_keras_serializable(package="keras_onlstm")
class LanguageModel(SentenceReader):
    """Word language model of ON-LSTM layers, with the regularization of AWD-LSTM.

    Embedding, layers of `ONLSTM` and softmax. The defaults are the published model with 25.2
    million parameters: dropout of whole words in the embedding matrix, locked dropout of word
    vectors, between layers and of the output, weight dropout of the recurrent kernels, and one
    matrix for embedding and softmax.

    Source: Shen et al. 2019, "Ordered Neurons", section 5.1, https://arxiv.org/abs/1810.09536.

    Args:
        vocabulary_size: positive integer, V.
        embedding_dim: positive integer, E: size of word vectors, and of the last layer if weights
            are tied.
        units: positive integer, U: size of the other layers.
        num_layers: positive integer, at most 100.
        chunk_size: positive integer that divides the sizes of all layers.
        recurrent: `"onlstm"`, or `"lstm"` for comparison.
        tie_weights: whether the softmax shares the embedding matrix.
        word_dropout: share of words dropped from the embedding matrix.
        input_dropout: locked dropout rate of word vectors: the same features at every step.
        hidden_dropout: locked dropout rate between layers.
        output_dropout: locked dropout rate after the last layer.
        recurrent_weight_dropout: share of the entries of the recurrent kernels dropped.
        initialization: `"scaled"`: input kernels are scaled so that the gates move, for all sizes
            (see `keras_onlstm.models.initializers`); `"published"`: uniform within 1 / sqrt(fan
            in), with which hundreds of steps learn very little. In both cases, call
            `initialize_output_bias` before training.
        vocabulary: list of V words, saved with the model, or `None`.
        seed: integer seed of initialization and dropout.
        **kwargs: `name`, `dtype` of `keras.Model`.

    Call arguments:
        ids: integers (batch, time), below V.
        states: list of [h, c] of every layer, each (batch, size of the layer). Default: zeros.
        mask: boolean (batch, time), `False` where a token is skipped: the states do not change.
        training: whether to apply dropout.
        details: whether to return more than the logits.

    Returns:
        Logits (batch, time, V) of the next token; with `details` a `LanguageModelOutput`.

    Raises:
        ValueError: if `recurrent` or `initialization` is unknown, a size is invalid, or
            `vocabulary` does not have V words.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> model = LanguageModel(20, embedding_dim=8, units=16, chunk_size=4)
    >>> tuple(model(np.array([[3, 4, 5]])).shape)
    (1, 3, 20)
    """

    @renamed_arguments(start="initialization")
    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 400,
        units: int = 1150,
        num_layers: int = 3,
        chunk_size: int = 10,
        recurrent: str = "onlstm",
        tie_weights: bool = True,
        word_dropout: float = 0.1,
        input_dropout: float = 0.5,
        hidden_dropout: float = 0.3,
        output_dropout: float = 0.45,
        recurrent_weight_dropout: float = 0.45,
        initialization: str = "scaled",
        vocabulary: Sequence[str] | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("recurrent", recurrent, ("onlstm", "lstm"))
        check_choice("initialization", initialization, INITIALIZATIONS.values)
        check_integer("vocabulary_size", vocabulary_size)
        check_integer("embedding_dim", embedding_dim)
        check_integer("units", units)
        check_integer("num_layers", num_layers, 1, MAX_LAYERS)
        check_vocabulary_size(vocabulary, vocabulary_size)
        self._config: dict[str, Any] = {
            "vocabulary_size": vocabulary_size, "embedding_dim": embedding_dim, "units": units,
            "num_layers": num_layers, "chunk_size": chunk_size, "recurrent": recurrent,
            "tie_weights": tie_weights, "word_dropout": word_dropout,
            "input_dropout": input_dropout, "hidden_dropout": hidden_dropout,
            "output_dropout": output_dropout,
            "recurrent_weight_dropout": recurrent_weight_dropout,
            "initialization": initialization,
            "vocabulary": None if vocabulary is None else list(vocabulary), "seed": seed,
        }  # fmt: skip
        self.vocabulary = self._config["vocabulary"]
        self.recurrent_layers = [
            self._recurrent_layer(index, *sizes)
            for index, sizes in enumerate(layer_sizes(self._config))
        ]
        rates = [input_dropout] + [hidden_dropout] * (num_layers - 1) + [output_dropout]
        self.gates = ("forget", "input") if recurrent == "onlstm" else ()
        self.layers_per_model = (num_layers,)
        policy = self.dtype_policy
        self.dropouts = [
            locked_dropout(rate, seed=self._seed(100 + index), dtype=policy)
            for index, rate in enumerate(rates)
        ]
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.softmax = None
        if not tie_weights:
            self.softmax = keras.layers.Dense(vocabulary_size, dtype=policy, name="softmax")

    def _seed(self, offset):
        return None if self._config["seed"] is None else self._config["seed"] + offset

    def _recurrent_layer(self, index, input_dim, units):
        config = self._config
        seeds = [self._seed(10 * index + offset) for offset in range(4)]
        kernel, recurrent_kernel = initializers.kernels(
            config["initialization"], config["recurrent"], input_dim, units, config["chunk_size"],
            reads_words=index == 0, seeds=seeds[:2],
        )  # fmt: skip
        options = {
            "kernel_initializer": kernel, "recurrent_initializer": recurrent_kernel,
            "bias_initializer": initializers.fan_in(units, seeds[2]),
            "recurrent_weight_dropout": config["recurrent_weight_dropout"],
            "return_sequences": True, "return_state": True, "dtype": self.dtype_policy,
            "seed": seeds[3], "name": f"recurrent_{index}",
        }  # fmt: skip
        if config["recurrent"] == "lstm":
            return WeightDroppedLSTM(units, unit_forget_bias=False, **options)
        return ONLSTM(units, config["chunk_size"], return_distances=True, **options)

    def build(self, input_shape: Shape | None = None) -> None:
        config = self._config
        words, size = config["vocabulary_size"], config["embedding_dim"]
        initializer = initializers.embedding(self._seed(50))
        self.embeddings = self.add_weight((words, size), initializer, name="embeddings")
        for layer in self.recurrent_layers:
            layer.build((None, None, size))
            size = layer.cell.units
        if self.softmax is None:
            self.softmax_bias = self.add_weight((words,), "zeros", name="softmax_bias")
        else:
            self.softmax.build((None, None, size))
        self.built = True

    def hidden(
        self, ids: Tensor, states: Any = None, mask: Tensor | None = None, training: bool = False
    ) -> LanguageModelOutput:
        """The `LanguageModelOutput` without logits, which cost the most."""
        words = ops.convert_to_tensor(self.embeddings, dtype=self.compute_dtype)
        if training:
            words = word_dropout(words, self._config["word_dropout"], self.seed_generator)
        raw = None
        last_states: list[list[Tensor]] = []
        distances: list[list[Tensor]] = []  # layers of gates
        x = self.dropouts[0](embedding_lookup(words, ids), training=training)  # (B, T, E)
        for index, layer in enumerate(self.recurrent_layers):
            initial_state = None if states is None else states[index]
            raw, h, c, *layer_distances = layer(
                x, initial_state=initial_state, mask=mask, training=training
            )
            last_states.append([h, c])
            distances.append(layer_distances)
            x = self.dropouts[index + 1](raw, training=training)
        by_gate = zip(self.gates, zip(*distances, strict=True), strict=True)
        stacked = {gate: ops.stack(layers, axis=1) for gate, layers in by_gate}  # (B, layers, T)
        return LanguageModelOutput(None, last_states, raw, x, stacked)

    def logits(self, output: Tensor) -> Tensor:
        """Logits (..., V) from outputs (..., size of the last layer)."""
        if self.softmax is not None:
            return self.softmax(output)
        embeddings = ops.convert_to_tensor(self.embeddings, dtype=self.compute_dtype)
        bias = ops.convert_to_tensor(self.softmax_bias, dtype=self.compute_dtype)
        return matmul(output, ops.transpose(embeddings)) + bias

    @property
    def vocabulary_size(self) -> int:
        return self._config["vocabulary_size"]

    @property
    def title(self) -> str:
        return {"onlstm": "ON-LSTM", "lstm": "LSTM"}[self._config["recurrent"]]

    @property
    def output_bias(self) -> keras.Variable:
        """The bias of the softmax, (V,), of a built model."""
        return self.softmax_bias if self.softmax is None else self.softmax.bias

    @property
    def tie_weights(self) -> bool:
        """Whether the softmax shares the embedding matrix."""
        return self.softmax is None

    def initial_states(self, batch_size: int | Tensor) -> list[list[Tensor]]:
        """Zero states: a list of [h, c] of every layer, each (batch_size, size of the layer)."""
        return [layer.cell.get_initial_state(batch_size) for layer in self.recurrent_layers]

    @property
    def state_names(self) -> list[list[str]]:
        return [[f"h_{index}", f"c_{index}"] for index in range(len(self.recurrent_layers))]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}
