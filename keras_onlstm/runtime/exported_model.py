"""Parsing and scoring of sentences with an exported graph."""

from collections.abc import Iterable

import numpy as np

from keras_onlstm.runtime.graph import Graph
from keras_onlstm.runtime.metadata import READERS, REMEDY
from keras_onlstm.text.sentences import DistanceModel, read
from keras_onlstm.utils.types import Sentence

__all__ = ["ExportedModel"]

DISTANCES = "_distances"  # suffix of the names of such outputs


class ExportedModel(DistanceModel):
    """An exported language model or parser, which reads sentences without Keras.

    Args:
        graph: `OnnxGraph` or `TfliteGraph` of `load`, of the kind `"parser"` or `"language_model"`.

    Attributes:
        graph: the argument.
        gates: tuple of the names of its distances.
        vocabulary: list of words, or `None`.
        num_layers: integer.
        members: tuple of the number of layers of each model in the file.

    Raises:
        ValueError: if the graph is of another kind, or of an LSTM, which has no distances.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> model = runtime.ExportedModel(runtime.load("parser.onnx"))  # doctest: +SKIP
    >>> model.distances(["prices fell"])[0].shape  # doctest: +SKIP
    (3, 2)
    """

    def __init__(self, graph: Graph) -> None:
        kind = graph.metadata["graph"]
        if kind not in READERS or set(graph.inputs) != {"ids", "lengths"}:
            raise ValueError(
                f"{graph.path}: a graph of the kind {kind!r}, which reads no sentences. Export a "
                "LanguageModel with graph='parser'."
            )
        distances = [name for name in sorted(graph.outputs) if name.endswith(DISTANCES)]
        if not distances:
            raise ValueError(f"{graph.path}: has no distances: recurrent='onlstm' has.")
        self.graph, self._file = graph, graph.path
        self.gates = tuple(name.removesuffix(DISTANCES) for name in distances)
        self.vocabulary = graph.metadata.get("vocabulary")
        self.members = tuple(graph.metadata.get("members") or [graph.metadata["num_layers"]])

    def _measured(self, sentences, gates):
        def pick(ids, lengths):
            outputs = self._run(ids, lengths)
            return np.concatenate([outputs[f"{name}{DISTANCES}"] for name in gates], axis=1)

        return self._read(sentences, pick)

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]:
        """Log-probabilities of the words of sentences, equal to those of `LanguageModel.score`.

        Args:
            sentences: the same as for `distances`.
            end: whether the `<eos>` at the end is scored too.

        Returns:
            List of arrays (words + 1,), or (words,) without the end, in nats: for each word, given
            `<eos>` and the words before it, and for the `<eos>` at the end.

        Raises:
            ValueError: if the graph is not a language model, or has no vocabulary.
        """
        if "log_probabilities" not in self.graph.outputs:
            raise ValueError(
                f"{self.graph.path}: a parser, which gives no probabilities. Export the model with "
                "graph='language_model'."
            )

        def pick(ids, lengths):
            log_probabilities = self._run(ids, lengths)["log_probabilities"]  # (B, T, V)
            after = np.pad(ids[:, 1:], ((0, 0), (0, 1)), constant_values=self._encoding().eos)
            picked = np.take_along_axis(log_probabilities, after[..., None], axis=-1)
            return picked[..., 0]  # (B, T)

        return [picked[: words + end] for picked, words in self._read(sentences, pick)]

    def _read(self, sentences, function):
        return read(sentences, self._encoding(), function, self.graph.batch or 32)

    def _run(self, ids, lengths):
        """The graph's outputs, without rows that pad the batch."""
        rows, time = ids.shape
        if self.graph.batch is not None:  # pads the batch to its fixed size
            missing = ((0, self.graph.batch - rows), (0, 0))
            ids = np.pad(ids, missing, constant_values=self._encoding().eos)
            lengths = np.pad(lengths, missing[0], constant_values=1)
        outputs = self.graph.run(ids=ids, lengths=lengths)
        wanted = (len(ids), self.num_layers, time)
        for name in (f"{name}{DISTANCES}" for name in self.gates):
            if outputs[name].shape != wanted:
                raise ValueError(
                    f"{self.graph.path}: its {name} have the shape {outputs[name].shape}, and by "
                    f"its metadata {wanted}. {REMEDY}"
                )
        return {name: values[:rows] for name, values in outputs.items()}
