"""Sentences read by models of Keras, in one compiled call a batch."""

import keras
import numpy as np
from keras import ops

from keras_onlstm.sentences import Encoder, check_gate, read

__all__ = ["SentenceReader"]


class _Measuring(keras.Model):
    """Distances of whole sentences, as a model that Keras compiles."""

    def __init__(self, model):
        super().__init__(name="measuring")  # TensorFlow allows no name with an underscore in front
        self.model = model

    @staticmethod
    def inputs(ids, lengths):
        return ids

    def call(self, ids):
        found = self.model._hidden(ids)
        distances = [found.forget_distances, found.input_distances]
        return ops.stack([ops.stack(d, axis=1) for d in distances], axis=1)  # (B, 2, layers, T)


class SentenceReader(keras.Model):
    """What models that read sentences have in common.

    They have a `vocabulary`, and `_hidden(ids)` gives `forget_distances` and `input_distances`,
    lists of (batch, time), one a layer.
    """

    vocabulary = None

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._encoder, self._readers = None, {}  # made when sentences are read

    def encode(self, sentence):
        """The ids of a sentence's words.

        Args:
            sentence: words apart by blanks, or a list of words.

        Returns:
            List of integers. A word that the vocabulary lacks is `<unk>`.

        Raises:
            ValueError: if the model has no vocabulary, or one without `<eos>` and `<unk>`.
        """
        if self._encoder is None:
            self._encoder = Encoder(self.vocabulary)
        return self._encoder(sentence)

    def distances(self, sentences, gate="forget"):
        """How much of the order each word of sentences makes every layer forget, or write.

        Args:
            sentences: list of sentences: words apart by blanks, or lists of words.
            gate: `"forget"` or `"input"`: the master gate that is measured; or `"both"`.

        Returns:
            List of arrays (layers, words), in [0, 1); with `"both"` (2 layers, words), those of the
            forget gates first.

        Raises:
            ValueError: if the model has no vocabulary, the gate is unknown, or the model is an
                LSTM, which knows no distances.
        """
        check_gate(gate)
        places = {"forget": [0], "input": [1], "both": [0, 1]}[gate]
        return [
            np.concatenate([found[place, :, 1 : words + 1] for place in places])
            for found, words in self._read(_Measuring, sentences)
        ]

    def _read(self, kind, sentences, closed=True):
        """What a model of `kind` makes of every sentence, and how many words that has."""
        self.encode([])  # makes the encoder
        if not self.built:
            self.build((None, None))
        if kind not in self._readers:  # their methods alone, so that Keras tracks none of them
            self._readers[kind] = kind(self).predict_on_batch

        def function(ids, lengths):
            return self._readers[kind](kind.inputs(ids, lengths))

        return read(sentences, self._encoder, function, multiple=8, closed=closed)
