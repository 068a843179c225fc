"""Sentences read by an exported graph, as `models.LanguageModel` reads them."""

import numpy as np

from keras_onlstm.runtime.metadata import READERS
from keras_onlstm.sentences import Encoder, check_gate, read

__all__ = ["ExportedModel"]


class ExportedModel:
    """An exported language model or parser, which measures distances without Keras.

    Args:
        graph: `OnnxGraph` or `TfliteGraph` of `load`, of the kind `"parser"` or `"language_model"`.

    Attributes:
        graph: as it was given.
        vocabulary: list of words, or `None`.
        num_layers: integer.

    Raises:
        ValueError: if the graph is of another kind, or that of an LSTM, which knows no distances.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> model = runtime.ExportedModel(runtime.load("parser.onnx"))  # doctest: +SKIP
    >>> model.distances(["prices fell"])[0].shape  # doctest: +SKIP
    (3, 2)
    """

    def __init__(self, graph):
        kind = graph.metadata["graph"]
        if kind not in READERS or set(graph.inputs) != {"ids", "lengths"}:
            raise ValueError(
                f"{graph.path}: a graph of the kind {kind!r}, which reads no sentences. Export a "
                "LanguageModel with graph='parser'."
            )
        if not {"forget_distances", "input_distances"} <= set(graph.outputs):
            raise ValueError(f"{graph.path}: has no distances: recurrent='onlstm' has.")
        self.graph = graph
        self.vocabulary = graph.metadata.get("vocabulary")
        self.num_layers = graph.metadata["num_layers"]
        self._encoder = None

    def encode(self, sentence):
        """The ids of a sentence's words, as those of `LanguageModel.encode`."""
        if self._encoder is None:
            self._encoder = Encoder(self.vocabulary)
        return self._encoder(sentence)

    def distances(self, sentences, gate="forget"):
        """How much of the order each word of sentences makes every layer forget, or write.

        Args:
            sentences: list of sentences: words apart by blanks, or lists of words.
            gate: `"forget"` or `"input"`: the master gate that is measured.

        Returns:
            List of arrays (layers, words), in [0, 1).

        Raises:
            ValueError: if the graph has no vocabulary or the gate is unknown.
        """
        check_gate(gate)
        self.encode([])  # makes the encoder
        name = f"{gate}_distances"

        def measure(ids, lengths):
            rows = len(ids)
            if self.graph.batch is not None:  # the rest is filled up, and thrown away
                missing = ((0, self.graph.batch - rows), (0, 0))
                ids = np.pad(ids, missing, constant_values=self._encoder.eos)
                lengths = np.pad(lengths, missing[0], constant_values=1)
            return self.graph.run(ids=ids, lengths=lengths)[name][:rows]  # (B, layers, T)

        found = read(sentences, self._encoder, measure, self.graph.batch or 32)
        return [distances[:, 1 : words + 1] for distances, words in found]
