"""TreeLSTM and LdTreeLSTM: language models that generate a sentence along its dependency tree."""

import functools
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.models.sentence_reader import check_vocabulary_size
from keras_onlstm.text.vocabulary import TreeEncoder
from keras_onlstm.tree_lstm.recurrence import hidden
from keras_onlstm.tree_lstm.schedule import (
    BatchSchedule,
    RowCapacity,
    TreeSchedule,
    schedule_batch,
    schedule_tree,
)
from keras_onlstm.tree_lstm.step import GeneratorLSTM, Weights, uniform_initializer
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.keras_private import predictor
from keras_onlstm.utils.numerics import fold_in, matmul, max_keepdims, wide_dtype
from keras_onlstm.utils.validation import check_integer, renamed_attribute

_GENERATORS = ("gen_l", "gen_r", "gen_nx_l", "gen_nx_r")  # in the order of `Edge`
_TREES = 64  # maximum number in a batch that is scored
_SCORES = 2**26  # maximum number of logits in a batch of more than one tree


@keras.saving.register_keras_serializable(package="keras_onlstm")
class TreeLSTM(keras.Model):
    """Top-down TreeLSTM: predicts each word of a sentence from its path in the dependency tree.

    Four LSTMs lead from a word to its nearest dependent on the left or right, and from a dependent
    to the next one. With `left_dependents` it is LdTreeLSTM: a fifth one reads the left dependents
    of a word before its right ones are generated. It computes P(words | tree), not P(sentence): the
    shape of the tree is given.

    Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", equations 1 to
    7, https://aclanthology.org/N16-1035. Where the published code differs, the model follows it.

    Args:
        vocabulary_size: positive integer, V.
        embedding_dim: positive integer, E: size of word vectors; published: half of `units`.
        units: positive integer, U.
        num_layers: positive integer, L: layers of each of the four LSTMs.
        left_dependents: whether the left dependents of a word are read before its right ones.
        left_layers: positive integer, layers of the LSTM that reads them.
        dropout: dropout rate of the last layer's outputs, before the softmax.
        vocabulary: list of V words with `<unk>` and `<root>`, saved with the model, or `None`.
        seed: integer seed of initialization and dropout.
        input_dropout: dropout rate of word vectors.
        output_bias: whether the softmax has a bias. The published models trained by
            noise-contrastive estimation do not have one.
        sequential: whether to use only the LSTM to the nearest right dependent. Then all trees must
            be chains, and the model is a sequential LSTM, the baseline.
        **kwargs: `name`, `dtype` of `keras.Model`.

    Call arguments:
        grids: dictionary of integer arrays, `BatchSchedule.grids` of `schedule_batch(trees)`.
        training: whether to apply dropout.

    Returns:
        Logits (N, V) of the scheduled words.

    Raises:
        ValueError: if a size is invalid, or `vocabulary` does not have V words.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.models import TreeLSTM
    >>> words = ["<unk>", "<root>", "a", "cat", "sleeps"]
    >>> model = TreeLSTM(5, embedding_dim=4, units=8, left_dependents=True, vocabulary=words)
    >>> tree = DependencyTree("a cat sleeps here".split(), [2, 3, 0, 3])
    >>> [scores.shape for scores in model.score([tree])]
    [(4,)]
    """

    graphs: tuple[str, ...] = ("tree_language_model",)
    _lstms: tuple[str, ...] = _GENERATORS
    _sides = 1  # rows of a grid from which a word is predicted

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int,
        units: int,
        num_layers: int = 1,
        left_dependents: bool = False,
        left_layers: int = 1,
        dropout: float = 0.0,
        vocabulary: Sequence[str] | None = None,
        seed: int | None = None,
        input_dropout: float = 0.0,
        output_bias: bool = True,
        sequential: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        if sequential and left_dependents:
            raise ValueError("left_dependents and sequential cannot be combined.")
        self._config: dict[str, Any] = {
            "vocabulary_size": check_integer("vocabulary_size", vocabulary_size),
            "embedding_dim": check_integer("embedding_dim", embedding_dim),
            "units": check_integer("units", units),
            "num_layers": check_integer("num_layers", num_layers),
            "left_dependents": bool(left_dependents),
            "left_layers": check_integer("left_layers", left_layers), "dropout": dropout,
            "vocabulary": None if vocabulary is None else list(vocabulary), "seed": seed,
            "input_dropout": input_dropout, "output_bias": bool(output_bias),
            "sequential": bool(sequential),
        }  # fmt: skip
        check_vocabulary_size(vocabulary, vocabulary_size)
        self.vocabulary = self._config["vocabulary"]
        policy = self.dtype_policy

        def lstm(name: str, size: int, layers: int) -> GeneratorLSTM:
            return GeneratorLSTM(size, units, layers, fold_in(seed, name), name=name, dtype=policy)

        left_units = {"gen_r": units} if left_dependents else {}
        self.generators = [
            lstm(name, embedding_dim + left_units.get(name, 0), num_layers)
            for name in (("gen_r",) if sequential else self._lstms)
        ]
        self.left = lstm("ld", embedding_dim, left_layers) if left_dependents else None
        wide = wide_dtype(policy.compute_dtype)  # as in the LSTMs
        seeds = [fold_in(seed, name) for name in ("input_dropout", "output_dropout")]
        self.input_dropout = keras.layers.Dropout(input_dropout, seed=seeds[0], dtype=wide)
        self.output_dropout = keras.layers.Dropout(dropout, seed=seeds[1], dtype=policy)
        self._encoder: TreeEncoder | None = None
        self._readers: dict[str, Callable[..., Any]] = {}

    def build(self, input_shape: Shape | None = None) -> None:
        config = self._config

        def weight(name: str, *shape: int) -> keras.Variable:
            initializer = uniform_initializer(config["seed"], name)
            return self.add_weight(shape, initializer, name=name)

        size = config["vocabulary_size"]
        self.embeddings = weight("embeddings", size, config["embedding_dim"])
        self.softmax_kernel = weight("softmax_kernel", size, self._sides * config["units"])
        self.softmax_bias = weight("softmax_bias", size) if config["output_bias"] else None
        for layer in filter(None, (*self.generators, self.left)):
            layer.build()
        self.built = True

    @property
    def title(self) -> str:
        """The name of the model in tables."""
        if self._config["sequential"]:
            return "LSTM"
        return "LdTreeLSTM" if self._config["left_dependents"] else "TreeLSTM"

    @property
    def root(self) -> int:
        """The id of ROOT."""
        return self._encoding().root

    def recurrent_weights(self) -> Weights:
        """The weights below the softmax, as tensors."""
        if not self.built:
            self.build()
        dtype = wide_dtype(self.compute_dtype)
        generators = {layer.name: layer.values(dtype) for layer in self.generators}
        return Weights(
            ops.convert_to_tensor(self.embeddings, dtype=dtype),
            tuple(generators.get(name, ()) for name in _GENERATORS),
            self.left.values(dtype) if self.left else (),
        )

    def hidden(self, grids: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """The hidden states from which scheduled words are predicted, (N, U)."""
        drop = functools.partial(self.input_dropout, training=training)
        return hidden(self.recurrent_weights(), grids, drop, training)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (N, V) from hidden states (N, U)."""
        kernel = ops.convert_to_tensor(self.softmax_kernel, dtype=hidden.dtype)
        logits = matmul(hidden, ops.transpose(kernel))
        if self.softmax_bias is None:
            return logits
        return logits + ops.convert_to_tensor(self.softmax_bias, dtype=hidden.dtype)

    def features(self, grids: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """The inputs of the softmax, (N, U): hidden states, with dropout in training."""
        h = ops.cast(self.hidden(grids, training), self.compute_dtype)
        return self.output_dropout(h, training=training)

    def call(self, grids: Mapping[str, Tensor], training: bool = False) -> Tensor:
        return self.logits(self.features(grids, training))

    @staticmethod
    def target_log_probabilities(logits: Tensor, targets: Tensor) -> Tensor:
        """The log-probabilities (N,) of `targets` (N,) given logits (N, V), in nats."""
        logits = logits - max_keepdims(logits, -1)
        target_logits = ops.take_along_axis(logits, ops.expand_dims(targets, -1), axis=-1)[:, 0]
        return target_logits - ops.log(ops.sum(ops.exp(logits), -1))

    def log_probabilities(self, grids: Mapping[str, Tensor], targets: Tensor) -> Tensor:
        """The log-probabilities of scheduled words, (N,), in nats."""
        return self.target_log_probabilities(self.logits(self.hidden(grids)), targets)

    def schedule_tree(self, tree: DependencyTree) -> TreeSchedule:
        """Computes the step and the row of every word of a projective tree, for `schedule_batch`.

        Raises `ValueError` for another tree or one with `<root>`; sequential models need a chain.
        """
        encoder = self._encoding()
        if self._config["sequential"]:
            self._check_chain(tree)
        return schedule_tree(tree, encoder(tree.words), encoder.root)

    lay_out = renamed_attribute("lay_out", "schedule_tree")

    @staticmethod
    def _check_chain(tree):
        if tree.heads != tuple(range(len(tree))):
            raise ValueError(
                f"{reprlib.repr(list(tree.words))}: a sequential model reads only chains. Convert "
                "the tree with keras_onlstm.dependencies.chain(words)."
            )

    def targets(self, schedule: TreeSchedule) -> np.ndarray:
        """The ids of the words of a tree, in the order of the sentence."""
        return schedule.words[:: self._sides]

    def schedule_batch(
        self, schedules: Sequence[TreeSchedule], capacity: RowCapacity | None = None
    ) -> BatchSchedule:
        """Arranges trees in a grid of steps, the model's input."""
        capacity = RowCapacity() if capacity is None else capacity
        if self._config.get("sequential"):
            capacity = RowCapacity(0, sum(capacity[:4]), 0, 0, 0)
        return schedule_batch(schedules, capacity, bool(self.left))

    plan = renamed_attribute("plan", "schedule_batch")

    def score(self, trees: Iterable[DependencyTree]) -> list[np.ndarray]:
        """Log-probabilities of the words of projective trees, each given its path, in nats.

        Returns a list of arrays (words,), in the order of the sentences.
        """
        return list(self._read("scores", self._scores, trees))

    def log_probability(self, trees: Iterable[DependencyTree]) -> np.ndarray:
        """Log-probabilities (trees,) of the words of whole trees, log P(S | T), in nats."""
        return np.array([scores.sum() for scores in self.score(trees)])

    def states(self, trees: Iterable[DependencyTree]) -> list[np.ndarray]:
        """The hidden states (words, U) from which the words of each tree are predicted."""
        return list(self._read("hidden", lambda batch: self.hidden(batch["grids"]), trees))

    def _scores(self, batch):
        return self.log_probabilities(batch["grids"], batch["targets"])

    def _read(
        self, name: str, function: Callable[[Any], Any], trees: Iterable[DependencyTree]
    ) -> Iterator[np.ndarray]:
        """Yields the results of a compiled function for the words of every tree."""
        if not self.built:
            self.build()
        if name not in self._readers:
            self._readers[name] = predictor(self, 1, function)
        for schedules in self._batches(trees):
            scheduled = self.schedule_batch(schedules)
            batch = {"grids": scheduled.grids, "targets": scheduled.targets}
            rows = np.asarray(self._readers[name](batch))[: scheduled.words]
            lengths = [len(self.targets(schedule)) for schedule in schedules]
            yield from np.split(rows, np.cumsum(lengths)[:-1])

    def _batches(self, trees):
        schedules: list[TreeSchedule] = []
        words = 0
        for tree in trees:
            schedule = self.schedule_tree(tree)
            words += len(tree)
            scores = words * self._config["vocabulary_size"]
            if schedules and (len(schedules) == _TREES or scores > _SCORES):
                yield schedules
                schedules, words = [], len(tree)
            schedules.append(schedule)
        if schedules:
            yield schedules

    def _encoding(self):
        if self._encoder is None:
            self._encoder = TreeEncoder(self.vocabulary)
        return self._encoder

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._config}
