"""Parsing and scoring with exported graphs, of sentences and of dependency trees."""

from collections.abc import Iterable, Sequence

import numpy as np

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.runtime.graphs import Graph
from keras_onlstm.runtime.metadata import READERS, REMEDY, TREE_READER
from keras_onlstm.text.sentences import DistanceModel, read
from keras_onlstm.text.vocabulary import TreeEncoder
from keras_onlstm.utils import Sentence

__all__ = [
    "ExportedModel",
    "ExportedTreeModel",
]

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
        layers_per_model: tuple of the number of layers of each model in the file.

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
        self.layers_per_model = tuple(
            graph.metadata.get("members") or [graph.metadata["num_layers"]]
        )

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


_INPUTS, _OUTPUT = ("ids", "heads"), "log_probabilities"
_TREES = 16  # in a batch
_PAIRS = 2**22  # of words in a batch: the graph compares all words of a sentence
_WORDS = 4096  # in a batch, each with V logits; a larger tree is a batch by itself


class ExportedTreeModel:
    """An exported TreeLSTM or LdTreeLSTM, which scores dependency trees without Keras.

    Args:
        graph: `OnnxGraph` or `TfliteGraph` of `load`, of the kind `"tree_language_model"`.

    Attributes:
        graph: the argument.
        vocabulary: list of words.
        left_dependents: whether it is an LdTreeLSTM.

    Raises:
        ValueError: if the graph is of another kind, or has no vocabulary with `<unk>` and `<root>`.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> from keras_onlstm.dependencies import DependencyTree
    >>> graph = runtime.load("tree_language_model.onnx")  # doctest: +SKIP
    >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
    >>> runtime.ExportedTreeModel(graph).score([tree])[0].shape  # doctest: +SKIP
    (4,)
    """

    def __init__(self, graph: Graph) -> None:
        kind = graph.metadata["graph"]
        if kind != TREE_READER or set(graph.inputs) != set(_INPUTS) or _OUTPUT not in graph.outputs:
            raise ValueError(
                f"{graph.path}: a graph of the kind {kind!r}, which scores no dependency trees. "
                f"Export a TreeLSTM with graph={TREE_READER!r}."
            )
        self.graph = graph
        self.vocabulary = graph.metadata["vocabulary"]
        self.left_dependents = graph.metadata["left_dependents"]
        self._encoder = TreeEncoder(self.vocabulary, graph.path)

    def score(self, trees: Iterable[DependencyTree]) -> list[np.ndarray]:
        """Log-probabilities of words given their paths, equal to `TreeLSTM.score`.

        Args:
            trees: list of `DependencyTree`, projective.

        Returns:
            List of arrays (words,), in the order of the sentences, in nats.

        Raises:
            ValueError: if a tree is not projective, or `<root>` is one of its words.
        """
        trees = list(trees)
        for tree in trees:
            tree.steps()  # raises if it is not projective
        rows = [(self._encoder(tree.words), tree.heads) for tree in trees]
        order = sorted(range(len(rows)), key=lambda place: len(trees[place]))
        found: list[np.ndarray] = [np.empty(0)] * len(rows)
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and self._together(end + 1 - start, len(trees[order[end]])):
                end += 1
            group = order[start:end]
            for place, scores in zip(group, self._run([rows[p] for p in group]), strict=True):
                found[place] = scores
            start = end
        return found

    def log_probability(self, trees: Iterable[DependencyTree]) -> np.ndarray:
        """Log-probabilities of the words of whole trees, log P(S | T).

        Args:
            trees: list of `DependencyTree`, projective.

        Returns:
            Array (trees,), in nats.

        Raises:
            ValueError: if a tree is not projective, or `<root>` is one of its words.
        """
        return np.array([scores.sum() for scores in self.score(trees)])

    def _together(self, count, words):
        """Whether `count` trees of up to `words` words fit a batch."""
        if self.graph.batch is not None:
            return count <= self.graph.batch
        return count <= _TREES and count * words**2 <= _PAIRS and count * words <= _WORDS

    def _run(self, rows: Sequence[tuple[list[int], Sequence[int]]]) -> list[np.ndarray]:
        """The scores of one batch of trees, each given as ids and heads."""
        batch, time = self.graph.batch or len(rows), max(len(ids) for ids, _ in rows)
        ids = np.zeros((batch, time), "int32")
        heads = np.full((batch, time), -1, "int32")
        for row, given in enumerate(rows):
            count = len(given[0])
            ids[row, :count], heads[row, :count] = given
        scores = self.graph.run(ids=ids, heads=heads)[_OUTPUT]
        return [scores[row, : len(ids)] for row, (ids, _) in enumerate(rows)]
