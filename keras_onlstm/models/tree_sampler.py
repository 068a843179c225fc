"""Samples trees from a TreeLSTM and the classifiers of a `TreeGenerator`, in batches."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree, Edge
from keras_onlstm.dependencies.tree import Step
from keras_onlstm.dependencies.tree_builder import TreeBuilder, additions
from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.tree_lstm.step import INITIAL, deep_step
from keras_onlstm.utils.keras_private import predictor
from keras_onlstm.utils.numerics import embedding_lookup, wide_dtype

_TREES = 256  # maximum number in a batch
_SCORES = 2**24  # maximum number of logits in a batch of more than one tree


class Sample(NamedTuple):
    """A generated projective tree.

    Attributes:
        is_cut: whether the length limit left out words that were to be added.
        scores: (words,) log-probabilities of the words in nats, as from `TreeLSTM.score`.
        log_probability: number, `TreeGenerator.log_probability` of `tree`.
    """

    tree: DependencyTree
    is_cut: bool
    scores: np.ndarray
    log_probability: float


def log_sigmoids(margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log-probabilities of yes and no, from margins: logit of yes minus logit of no."""
    margins = np.asarray(margins, "float64")
    return -np.logaddexp(0.0, -margins), -np.logaddexp(0.0, margins)


def _log_sum(logits):
    highest = logits.max()
    return highest + math.log(np.exp(logits - highest).sum())


def _last_hidden(states, units):
    """Hidden states (R, U) of the last layer, from (R, 2 U L)."""
    return states[:, -2 * units : -units]


class _Row:
    """A growing tree, one row of the batch, and the words and decisions sampled for it."""

    def __init__(self, generator, max_words, root, start):
        self.generator, self.builder = generator, TreeBuilder(max_words)
        self.words, self.states = [root], [start]
        self.scores: list[float] = []
        self.no_root: list[float] = []  # log-probability that the word is not <root>
        self.margins: list[np.ndarray] = []

    def add_word(self, logits, root, temperature):
        """Samples one word, never `<root>`."""
        logits = logits.astype("float64")
        no_root = logits.copy()
        no_root[root] = -np.inf
        log_sum, log_sum_no_root = _log_sum(logits), _log_sum(no_root)
        sums = np.cumsum(np.exp((no_root - no_root.max()) / temperature))
        index = np.searchsorted(sums, self.generator.random() * sums[-1], side="right")
        # If the product is rounded to the last sum, take the last word with a probability above 0.
        word = int(min(index, np.searchsorted(sums, sums[-1])))
        self.words.append(word)
        self.scores.append(logits[word] - log_sum)
        self.no_root.append(log_sum_no_root - log_sum)

    def decide(self, margins, is_sampled):
        margins = margins.astype("float64")
        noise = self.generator.logistic(size=len(margins)) if is_sampled else 0.0
        self.margins.append(margins)
        self.builder.add((margins > noise).tolist())

    def sample(self, vocabulary):
        order = np.array(self.builder.order()) - 1
        tree = self.builder.tree([vocabulary[word] for word in self.words[1:]])
        scores, margins = np.array(self.scores)[order], np.array(self.margins)[order]
        decisions = additions(tree)
        yes, no = log_sigmoids(margins)
        decision_scores = np.where(decisions.labels[1:], yes, no)[decisions.is_open[1:]]
        joint = scores.sum() - sum(self.no_root) + decision_scores.sum()
        return Sample(tree, self.builder.is_cut, scores, float(joint))


class TreeSampler:
    """Samples trees. `margins` maps hidden states (R, U) and ids (R,) to margins (R, 4)."""

    def __init__(
        self, model: TreeLSTM, margins: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> None:
        self.model, self.margins, self.root = model, margins, model.root
        self.vocabulary = list(model.vocabulary)
        self._dtype = wide_dtype(model.compute_dtype)
        self._units = int(model.softmax_kernel.shape[-1])
        self._next_word = predictor(model, 1, self._next_states)
        self._next_left = predictor(model, 1, self._after_left)

    def _next_states(self, batch):
        states = _grow(self.model.recurrent_weights(), **batch)
        return states, self.model.logits(_last_hidden(states, self._units))

    def _after_left(self, batch):
        return _read_left(self.model.recurrent_weights(), **batch)

    def __call__(
        self, count: int, seed: int, max_words: int, temperature: float, is_sampled: bool
    ) -> Iterator[Sample]:
        """Yields samples; the arguments are those of `TreeGenerator.sample`."""
        maximum = max(1, min(_TREES, _SCORES // len(self.vocabulary)))
        batches = -(-count // maximum)
        size = -(-count // batches)  # the same for all batches; surplus trees are dropped
        start = np.full(2 * self._units * len(self.model.generators[0].variables_by_layer), INITIAL)
        for first in range(0, count, size):
            rows = [
                _Row(np.random.default_rng([seed, number]), max_words, self.root, start)
                for number in range(first, first + size)
            ]
            while any(row.builder.next_step for row in rows):
                self._add_words(rows, temperature, is_sampled)
            yield from (row.sample(self.vocabulary) for row in rows[: count - first])

    def _add_words(self, rows, temperature, is_sampled):
        """Adds one word to every tree that still grows."""
        steps = [row.builder.next_step or Step(0, 0, Edge.LEFT, ()) for row in rows]
        pairs = [(row, step.source) for row, step in zip(rows, steps, strict=True)]
        batch = {
            "words": np.array([row.words[source] for row, source in pairs], "int32"),
            "edges": np.array([step.edge for step in steps], "int32"),
            "states": np.stack([row.states[source] for row, source in pairs]).astype(self._dtype),
            "left": self._left(rows, steps),
        }
        states, logits = map(np.asarray, self._next_word(batch))
        growing = [number for number, row in enumerate(rows) if row.builder.next_step]
        for number in growing:
            rows[number].add_word(logits[number], self.root, temperature)
        words = np.array([row.words[-1] for row in rows], "int32")
        margins = self.margins(_last_hidden(states, self._units), words)
        for number in growing:
            rows[number].states.append(states[number])
            rows[number].decide(margins[number], is_sampled)

    def _left(self, rows, steps):
        """Hidden states (R, U) after the left dependents, read from the farthest to the nearest."""
        if self.model.left is None:
            return np.zeros((len(rows), 1), self._dtype)  # not used
        layers = len(self.model.left.variables_by_layer)
        states = np.full((len(rows), 2 * self._units * layers), INITIAL, self._dtype)
        for back in range(max(len(step.left) for step in steps), 0, -1):
            is_word = np.array([len(step.left) >= back for step in steps])
            words = [
                row.words[step.left[-back]] if has_word else 0
                for row, step, has_word in zip(rows, steps, is_word, strict=True)
            ]
            batch = {"words": np.array(words, "int32"), "states": states, "is_word": is_word}
            states = np.asarray(self._next_left(batch))
        return _last_hidden(states, self._units)


def _next_states(x, layers, states):
    parts = ops.split(states, 2 * len(layers), axis=-1)
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    return ops.concatenate([part for pair in deep_step(x, layers, pairs) for part in pair], -1)


def _grow(weights, words, edges, states, left):
    """The states (R, 2 U L) of one new word per tree, from those of its source.

    `words` and `edges`, (R,), are the sources and the `Edge` from each; `left`, (R, U), is the
    hidden state after the source's left dependents, used if the edge is `RIGHT`. Each edge type is
    computed for all rows: four times the work but one shape, and the softmax takes as long.
    """
    vectors = embedding_lookup(weights.embeddings, words)  # (R, E)
    edges = ops.expand_dims(edges, -1)
    result = states
    for edge in Edge:
        reads_left = weights.left and edge == Edge.RIGHT
        x = ops.concatenate([vectors, left], -1) if reads_left else vectors
        new = _next_states(x, weights.generators[edge], states)
        result = ops.where(edges == int(edge), new, result)
    return result


def _read_left(weights, words, states, is_word):
    """The states of the LSTM over left dependents after one more word, where `is_word`."""
    vectors = embedding_lookup(weights.embeddings, words)
    new = _next_states(vectors, weights.left, states)
    return ops.where(ops.expand_dims(is_word, -1), new, states)
