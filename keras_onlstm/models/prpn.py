"""PRPN: predicts the next word, and computes a syntactic distance before every word."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_onlstm.models import initializers
from keras_onlstm.models.sentence_reader import SentenceReader, check_vocabulary_size
from keras_onlstm.prpn.parsing_network import ParsingNetwork
from keras_onlstm.prpn.predict_network import PredictNetwork
from keras_onlstm.prpn.reading_network import ReadingNetwork
from keras_onlstm.prpn.step import banded_gates
from keras_onlstm.text.vocabulary import EOS
from keras_onlstm.utils import Sentence, Shape, Tensor
from keras_onlstm.utils.numerics import embedding_lookup, fold_in, matmul
from keras_onlstm.utils.validation import (
    INITIALIZATIONS,
    check_choice,
    check_integer,
    renamed_arguments,
)


class PRPNOutput(NamedTuple):
    """The output of `PRPN` with `details=True`.

    Attributes:
        logits: (batch, time, V), of the next token.
        states: after the last step, structured as in `PRPN.initial_states`.
        raw_output: (batch, time, U), of the reading network.
        output: (batch, time, E), of the predict network.
        distances: dictionary with "syntactic": (batch, 1, time), in (0, 1).
    """

    logits: Tensor | None
    states: Any
    raw_output: Tensor
    output: Tensor
    distances: dict[str, Tensor]


class Attention(NamedTuple):
    """The attention of `PRPN` in a sentence of T tokens, `<eos>` and the words.

    Entry (t, s) of a map relates token t to the earlier token s. It is 0 for s >= t. The maps are
    "gates", "next gates", "reading 1" and so on, one per layer, and "predict". Gates are in [0, 1];
    rows of attention weights have sums of at most 1.
    """

    tokens: list[str]
    distances: np.ndarray  # (T,), before each token, in (0, 1)
    maps: dict[str, np.ndarray]  # (T, T) each


@keras.saving.register_keras_serializable(package="keras_onlstm")
class PRPN(SentenceReader):
    """The parsing-reading-predict network, a language model that learns to parse.

    A parsing network computes a syntactic distance before every word. A reading network (LSTMs with
    attention to past states) and a predict network (attention to past outputs) look back only up to
    a larger distance. The defaults are the published word model.

    Source: Shen et al. 2018, "Neural Language Modeling by Jointly Learning Syntax and Lexicon",
    https://openreview.net/forum?id=rkgOLb-0W. Where the published code differs, the model follows
    it.

    Args:
        vocabulary_size: positive integer, V.
        embedding_dim: positive integer, E: size of word vectors.
        units: positive even integer, U: size of the parsing network and of the reading layers.
        num_layers: positive integer, layers of the reading network.
        slots: positive integer, S: number of past steps in memory.
        lookback: integer, 0 or above, L: number of preceding words that a distance depends on.
        resolution: positive number. A distance that is larger by this closes a hard gate.
        hard: whether gates are linear, clipped to [0, 1], or else sigmoids.
        residual_blocks: integer, 0 or above, of the predict network.
        tie_weights: whether the softmax shares the embedding matrix.
        output_dropout: dropout rate of word vectors and outputs.
        inner_dropout: dropout rate inside the networks.
        recurrent_dropout: dropout rate of the reading layers' hidden states, one mask per window.
        parsing_network: whether its gates limit attention. If not, attention covers all slots, and
            distances are computed but not trained.
        reading_attention: whether the reading network has attention; without it, it is an LSTM.
        predict_attention: whether the predict network has attention.
        initialization: `"scaled"`: word vectors are initialized within 0.1, so that they differ
            from the first step on (see `keras_onlstm.models.initializers`); `"published"`: within
            0.01. All other weights are within 1 / sqrt(fan in). In both cases, call
            `initialize_output_bias` before training.
        vocabulary: list of V words, saved with the model, or `None`.
        seed: integer seed of initialization and dropout.
        **kwargs: `name`, `dtype` of `keras.Model`.

    Call arguments:
        ids: integers (batch, time), below V.
        states: structured as in `initial_states`. Default: those before a text.
        mask: boolean (batch, time), `False` for padding, which must be at the end. Padding does not
            change the states and is left out of batch normalization.
        training: whether to apply dropout and to normalize with batch statistics.
        details: whether to return more than the logits.

    Returns:
        Logits (batch, time, V) of the next token; with `details` a `PRPNOutput`.

    Raises:
        ValueError: if a size is invalid, `initialization` is unknown, or `vocabulary` does not
            have V words.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import PRPN
    >>> model = PRPN(20, embedding_dim=8, units=6, slots=4, lookback=2)
    >>> results = model(np.array([[3, 4, 5]]), details=True)
    >>> tuple(results.logits.shape), tuple(results.distances["syntactic"].shape)
    ((1, 3, 20), (1, 1, 3))
    """

    @renamed_arguments(start="initialization")
    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 800,
        units: int = 1200,
        num_layers: int = 2,
        slots: int = 15,
        lookback: int = 5,
        resolution: float = 0.1,
        hard: bool = True,
        residual_blocks: int = 0,
        tie_weights: bool = True,
        output_dropout: float = 0.7,
        inner_dropout: float = 0.5,
        recurrent_dropout: float = 0.5,
        parsing_network: bool = True,
        reading_attention: bool = True,
        predict_attention: bool = True,
        initialization: str = "scaled",
        vocabulary: Sequence[str] | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)  # keeps the dtype of distances
        check_choice("initialization", initialization, INITIALIZATIONS.values)
        self._config: dict[str, Any] = {
            "vocabulary_size": check_integer("vocabulary_size", vocabulary_size),
            "embedding_dim": check_integer("embedding_dim", embedding_dim),
            "units": units, "num_layers": num_layers, "slots": slots, "lookback": lookback,
            "resolution": resolution, "hard": hard, "residual_blocks": residual_blocks,
            "tie_weights": tie_weights, "output_dropout": output_dropout,
            "inner_dropout": inner_dropout, "recurrent_dropout": recurrent_dropout,
            "parsing_network": parsing_network, "reading_attention": reading_attention,
            "predict_attention": predict_attention, "initialization": initialization,
            "vocabulary": None if vocabulary is None else list(vocabulary), "seed": seed,
        }  # fmt: skip
        check_vocabulary_size(vocabulary, vocabulary_size)
        self.vocabulary = self._config["vocabulary"]
        self.layers_per_model, self.gates = (1,), ("syntactic",)
        policy = self.dtype_policy
        seeds = [fold_in(seed, f"{name}_network") for name in ("parsing", "reading", "predict")]
        self.parsing = ParsingNetwork(
            units, slots, lookback, resolution, hard, inner_dropout, seed=seeds[0], dtype=policy
        )
        self.reading_network = ReadingNetwork(
            units, num_layers, slots, reading_attention, output_dropout, inner_dropout,
            recurrent_dropout, seed=seeds[1], dtype=policy,
        )  # fmt: skip
        self.predict_network = PredictNetwork(
            embedding_dim, residual_blocks, predict_attention, inner_dropout, output_dropout,
            seed=seeds[2], dtype=policy,
        )  # fmt: skip

    def build(self, input_shape: Shape | None = None) -> None:
        config = self._config
        shape = (config["vocabulary_size"], config["embedding_dim"])

        def matrix(name: str) -> keras.Variable:
            seed = fold_in(config["seed"], name)
            initializer = initializers.prpn_embedding(config["initialization"], seed)
            return self.add_weight(shape, initializer, name=name)

        self.embeddings = matrix("embeddings")
        self.parsing.build((None, None, shape[1]))
        self.reading_network.build((None, None, shape[1]))
        self.predict_network.build((None, None, config["units"]))
        self.softmax_kernel = None if config["tie_weights"] else matrix("softmax_kernel")
        self.softmax_bias = self.add_weight(shape[:1], "zeros", name="softmax_bias")
        self.built = True

    def hidden(
        self, ids: Tensor, states: Any = None, mask: Tensor | None = None, training: bool = False
    ) -> PRPNOutput:
        """The `PRPNOutput` without logits."""
        x = self._embed(ids)
        if states is None:
            states = self.initial_states(ops.shape(ids)[0])
        words, history, reading = states
        options = {"training": training, "word_mask": mask}
        parsed = self._parse(x, words, history, **options)
        h, last = self.reading_network(x, parsed.gates, reading, **options)
        output = self.predict_network(h, parsed.next_gates, reading[-1][0], **options)
        states = [parsed.words, parsed.history, last]
        return PRPNOutput(None, states, h, output, self._distances(parsed))

    def _parse(self, x, words, history, **options):
        parsed = self.parsing(x, words, history, **options)
        if self._config["parsing_network"]:
            return parsed
        return parsed._replace(
            gates=ops.ones_like(parsed.gates), next_gates=ops.ones_like(parsed.next_gates)
        )

    def attention(self, sentence: Sentence) -> Attention:
        """Attention of the reading and the predict network in a sentence: `<eos>` and its words.

        >>> from keras_onlstm.models import PRPN
        >>> words = ["<eos>", "<unk>", "the", "cat"]
        >>> model = PRPN(4, embedding_dim=8, units=6, slots=4, lookback=2, vocabulary=words)
        >>> attention = model.attention("the cat")
        >>> attention.tokens, attention.maps["predict"].shape
        (['<eos>', 'the', 'cat'], (3, 3))
        """
        encoder = self._encoding()
        ids = [encoder.eos, *encoder(sentence)]
        words = sentence.split() if isinstance(sentence, str) else list(sentence)
        if not self.built:
            self.build((None, None))
        x = self._embed(np.array([ids], "int32"))
        preceding, history, reading = self.initial_states(1)
        parsed = self._parse(x, preceding, history)
        h, _ = self.reading_network(x, parsed.gates, reading)
        weights = self.reading_network.attention(x, parsed.gates, reading)
        bands = {"gates": banded_gates(parsed.gates)[0]}
        bands["next gates"] = banded_gates(parsed.next_gates)[0]
        bands |= {f"reading {number}": band for number, band in enumerate(weights, 1)}
        if self._config["predict_attention"]:
            memory = reading[-1][0]
            bands["predict"] = self.predict_network.attention(h, parsed.next_gates, memory)
        slots = self._config["slots"]
        maps = {  # without the memory before the sentence
            name: np.pad(ops.convert_to_numpy(band)[0, :, slots:], ((0, 0), (0, 1)))
            for name, band in bands.items()
        }
        distances = np.array(ops.convert_to_numpy(parsed.distances)[0])
        return Attention([EOS, *words], distances, maps)

    def measure(self, ids: Tensor) -> dict[str, Tensor]:
        """Distances in texts, ids (B, T), without predicting words: "syntactic" (B, 1, T)."""
        return self._distances(self.parsing(self._embed(ids)))

    def _embed(self, ids):
        embeddings = ops.convert_to_tensor(self.embeddings, dtype=self.compute_dtype)
        return embedding_lookup(embeddings, ids)  # (B, T, E)

    @staticmethod
    def _distances(parsed):
        return {"syntactic": ops.expand_dims(parsed.distances, 1)}

    def logits(self, output: Tensor) -> Tensor:
        """Logits (..., V) from outputs (..., E)."""
        kernel = self.embeddings if self.softmax_kernel is None else self.softmax_kernel
        kernel = ops.convert_to_tensor(kernel, dtype=self.compute_dtype)
        bias = ops.convert_to_tensor(self.softmax_bias, dtype=self.compute_dtype)
        return matmul(output, ops.transpose(kernel)) + bias

    @property
    def vocabulary_size(self) -> int:
        return self._config["vocabulary_size"]

    @property
    def output_bias(self) -> keras.Variable:
        """The bias of the softmax, (V,), of a built model."""
        return self.softmax_bias

    def initial_states(self, batch_size: int | Tensor) -> list[Any]:
        """States before a text: word vectors, distances, and a list of [h, c] per layer."""
        words, history = self.parsing.start(batch_size, self._config["embedding_dim"])
        return [words, history, self.reading_network.start(batch_size)]

    @property
    def state_names(self) -> list[Any]:
        layers = range(self._config["num_layers"])
        return ["words", "history", [[f"h_{index}", f"c_{index}"] for index in layers]]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}
