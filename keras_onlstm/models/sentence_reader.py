"""SentenceReader: base class of models that compute distances in sentences and score them.

`Parser`, the training loop, `exporting` and `minimal_pairs` use only this interface.
"""

import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_onlstm.models import initializers
from keras_onlstm.text.sentences import DistanceModel, contexts, in_batches
from keras_onlstm.utils import Sentence, Tensor
from keras_onlstm.utils.keras_private import DenseInputs, predictor
from keras_onlstm.utils.validation import renamed_attribute


def check_vocabulary_size(vocabulary: Sequence[str] | None, size: int) -> None:
    """Raises ValueError unless `vocabulary` is `None` or has `size` strings."""
    if vocabulary is None:
        return
    if len(vocabulary) != size:
        raise ValueError(f"vocabulary has {len(vocabulary)} words, and vocabulary_size is {size}.")
    for index, word in enumerate(vocabulary):
        if not isinstance(word, str):
            raise ValueError(f"vocabulary[{index}] must be a string, got {reprlib.repr(word)}.")


class SentenceReader(DistanceModel, DenseInputs, keras.Model):
    """Base class of language models, and of models that only compute distances.

    A subclass has:

    - `vocabulary`, a list of words or `None`, and `vocabulary_size`;
    - `hidden(ids, states=None, mask=None, training=False)`, for ids (batch, time). It returns a
      named tuple with at least `distances`, a dictionary from the names in `gates` to (batch, rows,
      time). A language model also returns `output` (batch, time, D), `raw_output`, the same before
      dropout, and `states` after the last step, structured as in `initial_states`;
    - `gates`, the names of its distances, may be empty; and, if distances need only a part of
      `hidden`, its own `measure`;
    - `layers_per_model`, a tuple: the number of distance rows of each model that it contains;
    - for language models `logits(output)`, (..., D) -> (..., V), `initial_states(batch_size)`, any
      nested structure of tensors (batch, ...), and `state_names`, the same structure of names;
    - for models that only compute distances `call(ids, details=False)`; their `hidden` may take
      only `ids`;
    - for training `output_bias`, the variable (V,) in its logits, and `title`, its name in tables;
    - `graphs`, the names of the graphs that it can be exported as.
    """

    graphs: tuple[str, ...] = ("parser", "language_model", "step")
    vocabulary_size: Any
    output_bias: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self._readers: dict[str, Callable[..., Any]] = {}  # compiled at first use

    def call(
        self,
        ids: Tensor,
        states: Any = None,
        mask: Tensor | None = None,
        training: bool = False,
        details: bool = False,
    ) -> Any:
        results = self.hidden(ids, states, mask, training)
        logits = self.logits(results.output)
        return results._replace(logits=logits) if details else logits

    def quantize(self, mode: str | None = None, config: Any = None, **kwargs: Any) -> None:
        """Raises ValueError before a layer is changed: most weights belong to the model itself."""
        raise ValueError(
            f"{type(self).__name__} is not quantized by Keras. Write it in 8 bits with "
            "keras-onlstm compact, keras_onlstm.models.ensemble.save_eight_bit, or "
            "keras_onlstm.exporting with quantize='dynamic'."
        )

    @property
    def title(self) -> str:
        """The name of the model in tables."""
        return type(self).__name__

    def initialize_output_bias(self, counts: npt.ArrayLike) -> None:
        """Sets the bias of the softmax to the log-frequencies of the words, before training.

        `counts`, (V,), are the numbers of occurrences of each word in the training text.
        """
        bias = initializers.log_frequencies(counts)
        if len(bias) != self.vocabulary_size:
            raise ValueError(f"counts must have {self.vocabulary_size} numbers, got {len(bias)}.")
        if not self.built:
            self.build((None, None))
        self.output_bias.assign(bias)

    start_at_frequencies = renamed_attribute("start_at_frequencies", "initialize_output_bias")

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        if "start" in config:  # as earlier versions named it
            config = dict(config)
            config["initialization"] = config.pop("start")
        return super().from_config(config, custom_objects)

    def measure(self, ids: Tensor) -> dict[str, Tensor]:
        """Distances in texts, ids (B, T): dictionary from names in `gates` to (B, rows, T)."""
        return self.hidden(ids).distances

    def _measured(self, sentences, gates):
        def stacked(ids):
            distances = self.measure(ids)
            return ops.stack([distances[name] for name in self.gates], axis=1)

        indices = [self.gates.index(name) for name in gates]
        return (
            (np.concatenate(distances[indices]), words)  # `distances` is (gates, rows, T)
            for distances, words in self._read("distances", stacked, sentences)
        )

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]:
        """Log-probabilities of the words of sentences, each read on its own from zero states.

        Returns a list of arrays (words + 1,) in nats: each word, and the `<eos>` at the end, given
        `<eos>` and the words before it. Without `end` they are (words,).
        """
        self._check_predicts()
        results = self._read("scores", self._scores, sentences, contexts, end)
        return [scores[: words + end] for scores, words in results]

    def _scores(self, batch):
        """Log-probabilities (B, T) of the words of whole sentences."""
        ids = batch["ids"]
        output = self.hidden(ids[:, :-1]).output  # (B, T, D)
        rows = ops.reshape(output, (-1, output.shape[-1]))
        logits = self.logits(ops.take(rows, batch["firsts"], axis=0))  # (N, V)
        log_probabilities = ops.log_softmax(ops.cast(logits, "float32"))
        indices = batch["contexts"] * logits.shape[-1] + ids[:, 1:]  # (B, T), below N V
        return ops.take(ops.reshape(log_probabilities, (-1,)), indices)

    def generate(
        self,
        words: Sentence,
        length: int = 50,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int = 0,
        progress: Callable[[int], object] | None = None,
    ) -> list[str]:
        """Samples a continuation of words, up to `length` words or the first `<eos>`.

        The logits are divided by `temperature`: lower is safer, higher more varied. `top_k` limits
        the choice to the likeliest words; `<unk>` is never sampled. `progress` is called with 1
        after each word.
        """
        self._check_predicts()
        generator, vocabulary = np.random.default_rng(seed), self._encoding().vocabulary
        sampled: list[str] = []
        eos, unknown = self.encode(["<eos>", "<unk>"])
        ids, states = [eos, *self.encode(words)], None
        while len(sampled) < length:
            results = self(np.array([ids], "int32"), states=states, details=True)
            logits = np.asarray(ops.convert_to_numpy(results.logits)[0, -1], "float64")
            logits[unknown] = -np.inf  # never sample <unk>
            if top_k is not None and top_k < len(logits):
                logits[logits < np.sort(logits)[-top_k]] = -np.inf
            scaled = np.exp((logits - logits.max()) / temperature)
            ids = [int(generator.choice(len(logits), p=scaled / scaled.sum()))]
            states = results.states
            if ids[0] == eos:
                break
            sampled.append(vocabulary[ids[0]])
            if progress is not None:
                progress(1)
        return sampled

    def _check_predicts(self):
        if "language_model" not in self.graphs:
            name = type(self).__name__
            raise ValueError(f"{name} does not predict words. Use one of its models.")

    def _read(self, name, function, sentences, inputs=lambda ids, lengths: ids, closed=False):
        """Applies a compiled function to sentences: list of results and numbers of words."""
        encoder = self._encoding()
        if not self.built:
            self.build((None, None))
        if name not in self._readers:
            self._readers[name] = predictor(self, 2, function)

        def predict(ids, lengths):
            return self._readers[name](inputs(ids, lengths))

        return in_batches(sentences, encoder, predict, multiple=8, closed=closed)
