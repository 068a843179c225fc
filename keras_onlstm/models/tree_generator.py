"""TreeGenerator: a TreeLSTM with classifiers that decide the shape of generated trees."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import keras
import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.statistics import statistics_rows
from keras_onlstm.dependencies.tree_builder import ADDITIONS, additions
from keras_onlstm.models.addition_classifiers import (
    AdditionClassifiers,
    Nodes,
    fit_classifiers,
    in_batches,
)
from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.models.tree_sampler import Sample, TreeSampler, log_sigmoids
from keras_onlstm.tree_lstm.step import INITIAL
from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.keras_private import predictor
from keras_onlstm.utils.numerics import embedding_lookup, fold_in, wide_dtype
from keras_onlstm.utils.validation import check_choice, check_integer

_ROWS = 256  # nodes that are classified at once


class Accuracy(NamedTuple):
    """The accuracy of a classifier, from 0 to 1; NaN without nodes."""

    all: float  # at all nodes, ROOTs included, as published
    majority: float  # of the majority class, at all nodes
    open: float  # at the nodes where the decision is open (`Additions.is_open`)
    open_majority: float  # of the majority class, at these nodes


@keras.saving.register_keras_serializable(package="keras_onlstm")
class TreeGenerator(keras.Model):
    """Generates dependency trees: P(sentence, tree), where a `TreeLSTM` has P(sentence | tree).

    Four classifiers decide at each word whether it gets a dependent on the left or right, and
    whether its head gets another one after it. Their inputs are the word's hidden state and its row
    of the softmax kernel. `train` makes a generator from a trained model, which does not change.

    Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 3.4,
    https://aclanthology.org/N16-1035.

    Args:
        model: `TreeLSTM` with a vocabulary.
        units: positive integer, of the two layers of every classifier.
        dropout: dropout rate of their outputs.
        seed: integer seed of initialization and dropout.
        **kwargs: `name`, `dtype` of `keras.Model`.

    Call arguments:
        nodes: dictionary of `hidden` (N, U), the hidden states of words, and `words` (N,), their
            ids.
        training: whether to apply dropout.

    Returns:
        Margins (N, 4), logit of yes minus logit of no, in the order of `Edge`.

    Raises:
        ValueError: if a size is invalid, or the model has no vocabulary with `<unk>` and `<root>`.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.models import TreeGenerator, TreeLSTM
    >>> words = ["<unk>", "<root>", "a", "cat", "sleeps"]
    >>> model = TreeLSTM(5, embedding_dim=4, units=8, vocabulary=words, seed=0)
    >>> trees = [DependencyTree("a cat sleeps".split(), [2, 3, 0])] * 20
    >>> generator = TreeGenerator.train(model, trees, epochs=20)
    >>> generator.accuracies(trees)["ADD-NX-LEFT"]
    Accuracy(all=1.0, majority=1.0, open=1.0, open_majority=1.0)
    >>> [len(sample.tree) <= 10 for sample in generator.sample(2, max_words=10)]
    [True, True]
    """

    graphs = ()

    def __init__(
        self,
        model: TreeLSTM,
        units: int = 300,
        dropout: float = 0.5,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **{"dtype": model.dtype_policy, **kwargs})
        self.model = model
        self.vocabulary = model.vocabulary
        self._root = model.root  # also checks the vocabulary
        units = check_integer("units", units)
        self._config: dict[str, Any] = {"units": units, "dropout": dropout, "seed": seed}
        self.classifiers = AdditionClassifiers(
            2 * model.get_config()["units"], units, dropout, fold_in(seed, "classifiers"),
            dtype=wide_dtype(model.compute_dtype), name="classifiers",
        )  # fmt: skip
        self._functions: dict[str, Callable[..., Any]] = {}

    def build(self, input_shape: Shape | None = None) -> None:
        for part in (self.model, self.classifiers):
            if not part.built:
                part.build()
        self.built = True

    def call(self, nodes: dict[str, Tensor], training: bool = False) -> Tensor:
        hidden = nodes["hidden"]
        kernel = ops.convert_to_tensor(self.model.softmax_kernel, dtype=hidden.dtype)
        rows = embedding_lookup(kernel, nodes["words"])
        return self.classifiers(ops.concatenate([hidden, rows], -1), training=training)

    @classmethod
    def train(
        cls,
        model: TreeLSTM,
        trees: Iterable[DependencyTree],
        seed: int = 0,
        epochs: int = 10,
        validation: Iterable[DependencyTree] | None = None,
        units: int = 300,
        dropout: float = 0.5,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        progress: Callable[[int], object] | None = None,
    ) -> Self:
        """Trains the classifiers of a new generator on the nodes of trees, with AdaGrad.

        The defaults are the published ones.

        Args:
            model: `TreeLSTM` with a vocabulary, trained.
            trees: list of `DependencyTree`, projective.
            seed: integer, 0 or above, of all random numbers.
            epochs: positive integer.
            validation: list of `DependencyTree`: each classifier keeps the weights of the epoch
                with the best accuracy at all their nodes. `None`: of the last epoch.
            units: positive integer, of the two layers of every classifier.
            dropout: dropout rate of their outputs.
            learning_rate: number above 0.
            batch_size: positive integer, nodes in a batch.
            progress: function called with 1 after each batch.

        Raises:
            ValueError: if an argument is invalid, `trees` is empty, or a tree is not projective.
        """
        epochs = check_integer("epochs", epochs)
        batch_size = check_integer("batch_size", batch_size)
        generator = cls(model, units, dropout, check_integer("seed", seed, 0))
        generator.build()
        table = ops.convert_to_numpy(model.softmax_kernel)
        nodes = generator.nodes(trees)
        others = None if validation is None else generator.nodes(validation)
        options = (seed, epochs, learning_rate, batch_size, progress)
        fit_classifiers(generator.classifiers, table, nodes, others, *options)
        return generator

    def nodes(self, trees: Iterable[DependencyTree]) -> Nodes:
        """The nodes of projective trees and the decisions there, tree by tree, ROOT first."""
        trees = list(trees)
        if not trees:
            raise ValueError("trees must contain at least one tree.")
        parts = []
        for tree, states in zip(trees, self.model.states(trees), strict=True):
            hidden = np.pad(states, ((1, 0), (0, 0)), constant_values=INITIAL)
            words = np.append(self._root, self.model.schedule_tree(tree).words).astype("int32")
            decisions = additions(tree)
            parts.append((hidden, words, decisions.labels, decisions.is_open))
        return Nodes(*map(np.concatenate, zip(*parts, strict=True)))

    def accuracies(self, trees: Iterable[DependencyTree]) -> dict[str, Accuracy]:
        """The accuracies of the classifiers at the nodes of projective trees.

        The keys are `"ADD-LEFT"`, `"ADD-RIGHT"`, `"ADD-NX-LEFT"` and `"ADD-NX-RIGHT"`.
        """
        nodes = self.nodes(trees)
        is_correct = (self._margins(nodes) > 0.0) == nodes.decisions
        accuracies = {}
        for index, name in enumerate(ADDITIONS):
            columns = is_correct[:, index], nodes.decisions[:, index]
            open_columns = (column[nodes.is_open[:, index]] for column in columns)
            accuracies[name] = Accuracy(*_shares(*columns), *_shares(*open_columns))
        return accuracies

    def log_probability(self, trees: Iterable[DependencyTree]) -> np.ndarray:
        """Log-probabilities of sentences and their trees, log P(S, T).

        The sum over the words, among all words but `<root>`, and over all open decisions: three at
        each word, two at the one that depends on ROOT. With `<unk>` as a word, the
        probabilities of all trees with one word under ROOT add up to 1, unless some grow forever.

        Args:
            trees: list of `DependencyTree`, projective, at least one.

        Returns:
            Array (trees,), in nats.
        """
        trees = list(trees)
        nodes = self.nodes(trees)
        yes, no = log_sigmoids(self._margins(nodes))
        decisions = (np.where(nodes.decisions, yes, no) * nodes.is_open).sum(1)
        firsts = np.cumsum([0, *(len(tree) + 1 for tree in trees)])[:-1]
        is_word = np.ones(len(nodes.words), bool)
        is_word[firsts] = False
        words = np.zeros(len(is_word))
        words[is_word] = self._rows("words", nodes.hidden[is_word], nodes.words[is_word])
        return np.add.reduceat(words + decisions, firsts)

    def sample(
        self,
        n: int,
        seed: int = 0,
        max_words: int = 30,
        temperature: float = 1.0,
        additions: str = "likelier",
    ) -> list[Sample]:
        """Samples trees, grown from ROOT breadth first, in the order of `DependencyTree.steps`.

        Words are never `<root>`. Decisions are the likelier ones, as published, or they are sampled
        too; then trees have the frequencies of `log_probability`. A tree is marked as cut if more
        than `max_words` were to be added. Each depends only on `seed` and its index.

        Args:
            n: positive integer, number of trees.
            seed: integer, 0 or above.
            max_words: positive integer, maximum number of words in a tree.
            temperature: number above 0 that divides the logits of words. Lower is safer, higher
                more varied. Samples record the probabilities at temperature 1.
            additions: `"likelier"`, or `"drawn"` to sample decisions.

        Returns:
            List of n `keras_onlstm.models.tree_sampler.Sample`.

        Raises:
            ValueError: if an argument is invalid.
        """
        check_choice("additions", additions, ("likelier", "drawn"))
        if not 0.0 < temperature < float("inf"):
            raise ValueError(f"temperature must be a number above 0, got {temperature!r}.")
        count, seed = check_integer("n", n), check_integer("seed", seed, 0)
        max_words = check_integer("max_words", max_words)
        if "sampler" not in self._functions:
            self._functions["sampler"] = TreeSampler(self._built().model, self._classify)
        sampler = self._functions["sampler"]
        return list(sampler(count, seed, max_words, temperature, additions == "drawn"))

    def _built(self):
        if not self.built:
            self.build()
        return self

    def _log_probabilities(self, batch):
        """Log-probabilities of words among all words but `<root>`."""
        logits = self.model.logits(batch["hidden"])
        is_root = np.arange(len(self.model.vocabulary)) == self.model.root
        logits = ops.where(is_root, ops.full_like(logits, -np.inf), logits)
        return self.model.target_log_probabilities(logits, batch["words"])

    def _classify(self, hidden, words):
        return self._rows("margins", hidden, words)

    def _margins(self, nodes):
        return self._classify(nodes.hidden, nodes.words)

    def _rows(self, name, hidden, words):
        """Applies a compiled function to the words of nodes."""
        if name not in self._functions:
            wrapped = self._log_probabilities if name == "words" else None
            self._functions[name] = predictor(self._built(), 1, wrapped)

        def function(hidden: np.ndarray, words: np.ndarray) -> np.ndarray:
            return self._functions[name]({"hidden": hidden, "words": words})

        return in_batches(function, _ROWS, hidden, words)

    def get_config(self) -> dict[str, Any]:
        model = keras.saving.serialize_keras_object(self.model)
        return {**super().get_config(), **self._config, "model": model}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        model = keras.saving.deserialize_keras_object(config["model"])
        return cls(**{**config, "model": model})


def _shares(is_correct, decisions):
    """The shares of correct decisions and of the majority class."""
    if not len(decisions):
        return float("nan"), float("nan")
    return float(is_correct.mean()), float(max(decisions.mean(), 1.0 - decisions.mean()))


class GeneratedTrees(NamedTuple):
    """Generated trees and tables about them, whose rows are lists of strings."""

    generator: TreeGenerator
    samples: list[Sample]
    accuracies: list[list[str]]  # of each decision on the validation trees
    accuracy_header: tuple[str, ...]
    statistics: list[list[str]]  # of training trees and generated trees
    statistics_header: tuple[str, ...]
    captions: list[str]  # of the samples, for `keras_onlstm.dependencies.page`


def generate_trees(
    model: TreeLSTM,
    train: Sequence[DependencyTree],
    validation: Sequence[DependencyTree],
    n: int,
    seed: int = 0,
    max_words: int = 30,
) -> GeneratedTrees:
    """Trains the classifiers of a `TreeGenerator`, samples n trees, and makes tables."""
    generator = TreeGenerator.train(model, train, seed, validation=validation)
    samples = generator.sample(n, seed, max_words)
    corpora = {"trained on": train, "generated": [sample.tree for sample in samples]}
    accuracies = [
        [name, *(f"{100 * share:.1f}" for share in accuracy)]
        for name, accuracy in generator.accuracies(validation).items()
    ]
    return GeneratedTrees(
        generator,
        samples,
        accuracies,
        ("%", "all nodes", "majority", "where it is open", "majority"),
        statistics_rows(corpora),
        ("", *corpora),
        list(map(_caption, samples)),
    )


def _caption(sample):
    words = len(sample.tree)
    cut = ", cut at the limit" if sample.is_cut else ""
    return f"{words} word{'s' * (words != 1)}, log P(S, T) {sample.log_probability:.1f}{cut}"
