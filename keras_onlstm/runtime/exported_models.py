"""Parsing and scoring with exported graphs, of sentences and of dependency trees."""

from collections.abc import Iterable

import numpy as np

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.runtime.graphs import Graph
from keras_onlstm.runtime.metadata import READERS, REMEDY, TREE_READER
from keras_onlstm.text.sentences import DistanceModel, in_batches
from keras_onlstm.text.vocabulary import TreeEncoder
from keras_onlstm.utils import Sentence

DISTANCES = "_distances"  # suffix of the names of such outputs


class ExportedModel(DistanceModel):
    """An exported language model or parser, which reads sentences without Keras.

    Args:
        graph: result of `load`, of the kind `"parser"` or `"language_model"`.

    Attributes:
        gates: tuple of the names of its distances.
        vocabulary: list of words, or `None`.
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
                f"{graph.path}: contains a graph of the kind {kind!r}, which cannot read "
                "sentences. Export a LanguageModel with graph='parser'."
            )
        distances = [name for name in sorted(graph.outputs) if name.endswith(DISTANCES)]
        if not distances:
            raise ValueError(
                f"{graph.path}: this model has no distances. Export one with recurrent='onlstm'."
            )
        metadata = graph.metadata
        self.graph, self._file = graph, graph.path
        self.gates = tuple(name.removesuffix(DISTANCES) for name in distances)
        self.vocabulary = metadata.get("vocabulary")
        self.layers_per_model = tuple(metadata.get("members") or [metadata["num_layers"]])

    def _measured(self, sentences, gates):
        def distances(ids, lengths):
            outputs = self._run(ids, lengths)
            return np.concatenate([outputs[f"{name}{DISTANCES}"] for name in gates], axis=1)

        return self._read(sentences, distances)

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]:
        """Log-probabilities of the words of sentences, equal to those of `LanguageModel.score`.

        Args:
            sentences: list of texts or of lists of words.
            end: whether the `<eos>` at the end is scored too.

        Returns:
            List of arrays (words + 1,), or (words,) without the end, in nats.
        """
        if "log_probabilities" not in self.graph.outputs:
            raise ValueError(
                f"{self.graph.path}: a parser does not compute probabilities. Export the "
                "graph language_model."
            )

        def scores(ids, lengths):
            log_probabilities = self._run(ids, lengths)["log_probabilities"]  # (B, T, V)
            targets = np.pad(ids[:, 1:], ((0, 0), (0, 1)), constant_values=self._encoding().eos)
            return np.take_along_axis(log_probabilities, targets[..., None], axis=-1)[..., 0]

        return [values[: words + end] for values, words in self._read(sentences, scores)]

    def _read(self, sentences, function):
        return in_batches(sentences, self._encoding(), function, self.graph.batch or 32)

    def _run(self, ids, lengths):
        """The graph's outputs. Rows that pad a fixed batch are added and removed here."""
        rows, time = ids.shape
        if self.graph.batch is not None:
            missing = ((0, self.graph.batch - rows), (0, 0))
            ids = np.pad(ids, missing, constant_values=self._encoding().eos)
            lengths = np.pad(lengths, missing[0], constant_values=1)
        outputs = self.graph.run(ids=ids, lengths=lengths)
        expected = (len(ids), self.num_layers, time)
        for name, values in outputs.items():
            if name.endswith(DISTANCES) and values.shape != expected:
                raise ValueError(
                    f"{self.graph.path}: the output {name} has shape {values.shape}, but its "
                    f"metadata imply {expected}. {REMEDY}"
                )
        return {name: values[:rows] for name, values in outputs.items()}


_INPUTS, _OUTPUT = ("ids", "heads"), "log_probabilities"
# Limits of a batch. A larger tree is a batch of its own.
_TREES = 16
_WORD_PAIRS = 2**22  # the graph compares all words of a sentence
_WORDS = 4096  # each has V logits


class ExportedTreeModel:
    """An exported TreeLSTM or LdTreeLSTM, which scores dependency trees without Keras.

    Args:
        graph: result of `load`, of the kind `"tree_language_model"`.

    Attributes:
        vocabulary: list of words.
        left_dependents: whether it is an LdTreeLSTM.

    Raises:
        ValueError: if the graph is of another kind, or has no vocabulary with `<unk>` and `<root>`.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> from keras_onlstm.dependencies import DependencyTree
    >>> graph = runtime.load("tree_language_model.onnx")  # doctest: +SKIP
    >>> tree = DependencyTree("a cat sleeps".split(), [2, 3, 0])
    >>> runtime.ExportedTreeModel(graph).score([tree])[0].shape  # doctest: +SKIP
    (3,)
    """

    def __init__(self, graph: Graph) -> None:
        kind = graph.metadata["graph"]
        if kind != TREE_READER or set(graph.inputs) != set(_INPUTS) or _OUTPUT not in graph.outputs:
            raise ValueError(
                f"{graph.path}: contains a graph of the kind {kind!r}, which cannot score "
                f"dependency trees. Export a TreeLSTM with graph={TREE_READER!r}."
            )
        self.graph = graph
        self.vocabulary = graph.metadata["vocabulary"]
        self.left_dependents = graph.metadata["left_dependents"]
        self._encoder = TreeEncoder(self.vocabulary, graph.path)

    def score(self, trees: Iterable[DependencyTree]) -> list[np.ndarray]:
        """Log-probabilities (words,) of words given their paths, in nats, as of `TreeLSTM.score`.

        Raises `ValueError` if a tree is not projective, or `<root>` is one of its words.
        """
        trees = list(trees)
        for tree in trees:
            tree.steps()  # raises if it is not projective
        rows = [(self._encoder(tree.words), tree.heads) for tree in trees]
        order = sorted(range(len(rows)), key=lambda index: len(trees[index]))
        results, start = [np.empty(0)] * len(rows), 0
        while start < len(order):
            end = start + 1
            while end < len(order) and self._fits_batch(end + 1 - start, len(trees[order[end]])):
                end += 1
            batch = order[start:end]
            for index, scores in zip(batch, self._run([rows[i] for i in batch]), strict=True):
                results[index] = scores
            start = end
        return results

    def log_probability(self, trees: Iterable[DependencyTree]) -> np.ndarray:
        """Sums of the scores of whole trees, log P(S | T): array (trees,), in nats."""
        return np.array([scores.sum() for scores in self.score(trees)])

    def _fits_batch(self, count, words):
        """Whether `count` trees of up to `words` words fit into one batch."""
        if self.graph.batch is not None:
            return count <= self.graph.batch
        return count <= _TREES and count * words**2 <= _WORD_PAIRS and count * words <= _WORDS

    def _run(self, rows):
        """The scores of one batch of trees, each given as ids and heads."""
        batch, time = self.graph.batch or len(rows), max(len(ids) for ids, _ in rows)
        ids = np.zeros((batch, time), "int32")
        heads = np.full((batch, time), -1, "int32")
        for row, (tree_ids, tree_heads) in enumerate(rows):
            ids[row, : len(tree_ids)], heads[row, : len(tree_ids)] = tree_ids, tree_heads
        scores = self.graph.run(ids=ids, heads=heads)[_OUTPUT]
        return [scores[row, : len(ids)] for row, (ids, _) in enumerate(rows)]
