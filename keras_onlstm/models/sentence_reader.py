"""What every model that reads sentences offers, and what follows from it: measuring and scoring.

`Parser`, `training`, `exporting` and `minimal_pairs` know this contract alone, not the classes.
"""

import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_onlstm.models import starts
from keras_onlstm.text.sentences import DistanceModel, contexts, read
from keras_onlstm.utils.keras_models import DenseInputs, predictor
from keras_onlstm.utils.types import Sentence, Tensor

__all__ = ["SentenceReader", "check_vocabulary_size"]


def check_vocabulary_size(vocabulary: Sequence[str] | None, size: int) -> None:
    """Refuses a vocabulary that has another size than the model, or not only words."""
    if vocabulary is None:
        return
    if len(vocabulary) != size:
        raise ValueError(f"vocabulary has {len(vocabulary)} words, and vocabulary_size is {size}.")
    for place, word in enumerate(vocabulary):
        if not isinstance(word, str):
            raise ValueError(f"vocabulary[{place}] is a word, not {reprlib.repr(word)}.")


class SentenceReader(DistanceModel, DenseInputs, keras.Model):
    """A model that reads sentences. A language model, unless it says that it predicts nothing.

    A subclass has:

    - `vocabulary`, a list of words or `None`, and `vocabulary_size`;
    - `hidden(ids, states=None, mask=None, training=False)`, of ids (batch, time), which returns a
      named tuple with at least `distances`, a dictionary from the names in `gates` to
      (batch, rows, time), and of a language model `output` (batch, time, D), `raw_output`, the same
      before dropout, and `states`, as `initial_states` has them, after the last step;
    - `gates`, the names of its distances, none if it measures none, and where these need less than
      all that `hidden` computes, a `measure` of its own;
    - `members`, a tuple: of each of the models that it is made of, how many rows of distances;
    - of a language model `logits(output)`, (..., D) -> (..., V), `initial_states(batch_size)`, any
      nest of tensors (batch, ...), and `state_names`, the same nest of names;
    - `call(ids, ..., details=False)`, where it predicts no words;
    - of one that is trained `output_bias`, the variable (V,) in its logits, and `title`, what a
      table calls it;
    - `graphs`, the names of the graphs that it can be exported as.
    """

    graphs: tuple[str, ...] = ("parser", "language_model", "step")
    vocabulary_size: Any
    output_bias: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self._readers: dict[str, Callable[..., Any]] = {}  # made when sentences are read

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
        """Refuses, before a layer is changed: most weights belong to the model itself."""
        raise ValueError(
            f"a {type(self).__name__} is not quantized by Keras. keras-onlstm compact and "
            "keras_onlstm.models.eight_bit.save_eight_bit write it in 8 bits, "
            "keras_onlstm.exporting with quantize='dynamic'."
        )

    @property
    def title(self) -> str:
        """What a table calls the model."""
        return type(self).__name__

    def start_at_frequencies(self, counts: npt.ArrayLike) -> None:
        """Sets the bias of the softmax to the logarithms of the words' frequencies.

        Before training: what the bias says, the word vectors need not learn.

        Args:
            counts: (V,) numbers, how often each word occurs in the training text.

        Raises:
            ValueError: if there is not one number from 0 on for each word.

        Example:

        >>> import numpy as np
        >>> from keras_onlstm.models import LanguageModel
        >>> model = LanguageModel(20, embedding_dim=8, units=16, chunk_size=4)
        >>> model.start_at_frequencies(np.bincount([3, 4, 3, 5], minlength=20))
        """
        bias = starts.log_frequencies(counts)
        if len(bias) != self.vocabulary_size:
            raise ValueError(f"{len(bias)} counts for a vocabulary of {self.vocabulary_size}.")
        if not self.built:
            self.build((None, None))
        self.output_bias.assign(bias)

    def measure(self, ids: Tensor) -> dict[str, Tensor]:
        """The distances in whole texts, ids (B, T): (B, rows, T) by the names in `gates`."""
        return self.hidden(ids).distances

    def _measured(self, sentences, gates):
        def stacked(ids):
            distances = self.measure(ids)
            return ops.stack([distances[name] for name in self.gates], axis=1)

        places = [self.gates.index(name) for name in gates]
        return (
            (np.concatenate(distances[places]), words)  # of (gates, rows, T)
            for distances, words in self._read("distances", stacked, sentences)
        )

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]:
        """Log-probabilities of the words of sentences, each read on its own from zero states.

        Args:
            sentences: list of sentences: words apart by blanks, or lists of words.
            end: whether the `<eos>` at the end is scored too.

        Returns:
            List of arrays (words + 1,), or (words,) without the end, in nats: of each word after
            `<eos>` and the words before it, and of the `<eos>` at the end.

        Raises:
            ValueError: if the model has no vocabulary, or predicts no words.
        """
        self._check_predicts()
        found = self._read("scores", self._scores, sentences, contexts, end)
        return [scores[: words + end] for scores, words in found]

    def _scores(self, batch):
        """Log-probabilities (B, T) of the words of whole sentences."""
        ids = batch["ids"]
        output = self.hidden(ids[:, :-1]).output  # (B, T, D)
        rows = ops.reshape(output, (-1, output.shape[-1]))
        logits = self.logits(ops.take(rows, batch["firsts"], axis=0))  # (N, V)
        log_probabilities = ops.log_softmax(ops.cast(logits, "float32"))
        places = batch["contexts"] * logits.shape[-1] + ids[:, 1:]  # (B, T), below N V
        return ops.take(ops.reshape(log_probabilities, (-1,)), places)

    def generate(
        self,
        words: Sentence,
        length: int = 50,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int = 0,
        progress: Callable[[int], object] | None = None,
    ) -> list[str]:
        """Goes on after words, one by one, each drawn from what the model predicts.

        Args:
            words: words apart by blanks, or a list of words; may be empty. They follow `<eos>`.
            length: integer, at most so many words.
            temperature: number above 0 that divides the logits: lower is bolder.
            top_k: integer, to draw among so many likeliest words alone, or `None`.
            seed: of the draws.
            progress: function that is called after each word, with 1.

        Returns:
            List of the words that were drawn, none of them `<unk>`, up to the `<eos>`, if there is
            one.

        Raises:
            ValueError: if the model has no vocabulary, or predicts no words.

        Example:

        >>> from keras_onlstm.models import LanguageModel
        >>> vocabulary = ["<eos>", "<unk>", "the", "cat"]
        >>> model = LanguageModel(4, 8, 16, chunk_size=4, vocabulary=vocabulary)
        >>> len(model.generate("the cat", length=5)) <= 5
        True
        """
        self._check_predicts()
        generator, vocabulary = np.random.default_rng(seed), self._encoding().vocabulary
        drawn: list[str] = []
        eos, unknown = self.encode(["<eos>", "<unk>"])
        ids, states = [eos, *self.encode(words)], None
        while len(drawn) < length:
            results = self(np.array([ids], "int32"), states=states, details=True)
            logits = np.asarray(ops.convert_to_numpy(results.logits)[0, -1], "float64")
            logits[unknown] = -np.inf  # a hole is no word
            if top_k is not None and top_k < len(logits):
                logits[logits < np.sort(logits)[-top_k]] = -np.inf
            scaled = np.exp((logits - logits.max()) / temperature)
            ids = [int(generator.choice(len(logits), p=scaled / scaled.sum()))]
            states = results.states
            if ids[0] == eos:
                break
            drawn.append(vocabulary[ids[0]])
            if progress is not None:
                progress(1)
        return drawn

    def _check_predicts(self):
        if "language_model" not in self.graphs:
            raise ValueError(f"{type(self).__name__} predicts no words: each of its models does.")

    def _read(self, name, function, sentences, inputs=lambda ids, lengths: ids, closed=False):
        """What a compiled function makes of every sentence, and how many words that has."""
        encoder = self._encoding()
        if not self.built:
            self.build((None, None))
        if name not in self._readers:
            self._readers[name] = predictor(self, 2, function)

        def predict(ids, lengths):
            return self._readers[name](inputs(ids, lengths))

        return read(sentences, encoder, predict, multiple=8, closed=closed)
