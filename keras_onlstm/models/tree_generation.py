"""Generates trees with a trained model, and tables that compare them with its training trees."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.statistics import statistics_rows
from keras_onlstm.models.tree_generator import TreeGenerator
from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.models.tree_sampler import Sample

__all__ = ["GeneratedTrees", "generate_trees"]

ACCURACY_HEADER = ("%", "all nodes", "majority", "where it is open", "majority")


class GeneratedTrees(NamedTuple):
    """Generated trees and statistics of them; the rows of tables are lists of strings.

    Attributes:
        generator: `TreeGenerator`, trained.
        samples: list of `Sample`.
        accuracies: list of rows: the name of a decision, then the percentages of `Accuracy` on the
            validation trees.
        accuracy_header: tuple, the header of `accuracies`.
        statistics: list of rows that compare training trees and generated trees.
        statistics_header: tuple, the header of `statistics`.
        captions: list of strings for `keras_onlstm.dependencies.page`: number of words,
            log-probability, and whether the sample was cut.
    """

    generator: TreeGenerator
    samples: list[Sample]
    accuracies: list[list[str]]
    accuracy_header: tuple[str, ...]
    statistics: list[list[str]]
    statistics_header: tuple[str, ...]
    captions: list[str]


def generate_trees(
    model: TreeLSTM,
    train: Sequence[DependencyTree],
    validation: Sequence[DependencyTree],
    n: int,
    seed: int = 0,
    max_words: int = 30,
    temperature: float = 1.0,
    additions: str = "likelier",
    progress: Callable[[int], object] | None = None,
) -> GeneratedTrees:
    """Trains the classifiers of a `TreeGenerator`, and generates trees.

    Args:
        model: `TreeLSTM`, trained.
        train: list of `DependencyTree` that the classifiers are trained on.
        validation: list of `DependencyTree` for choosing the best epochs and for the accuracies.
        n: positive integer, how many trees to generate.
        seed: integer, 0 or above, for training and sampling.
        max_words: see `TreeGenerator.sample`.
        temperature: see `TreeGenerator.sample`.
        additions: see `TreeGenerator.sample`.
        progress: see `TreeGenerator.train`.

    Returns:
        `GeneratedTrees`.

    Raises:
        ValueError: see `TreeGenerator.train` and `TreeGenerator.sample`.

    Example:

    >>> from keras_onlstm.dependencies import random_tree
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.models.tree_generation import generate_trees
    >>> words = ["<unk>", "<root>", "a", "cat", "sleeps"]
    >>> model = TreeLSTM(5, embedding_dim=4, units=8, vocabulary=words, seed=0)
    >>> trees = [random_tree(["a", "cat", "sleeps"], seed) for seed in range(9)]
    >>> found = generate_trees(model, trees, trees, n=2, max_words=8)
    >>> found.statistics_header, [row[0] for row in found.accuracies][:2]
    (('', 'trained on', 'generated'), ['ADD-LEFT', 'ADD-RIGHT'])
    """
    generator = TreeGenerator.train(model, train, seed, validation=validation, progress=progress)
    samples = generator.sample(n, seed, max_words, temperature, additions)
    corpora = {"trained on": train, "generated": [sample.tree for sample in samples]}
    return GeneratedTrees(
        generator,
        samples,
        [
            [name, *(f"{100 * share:.1f}" for share in accuracy)]
            for name, accuracy in generator.accuracies(validation).items()
        ],
        ACCURACY_HEADER,
        statistics_rows(corpora),
        ("", *corpora),
        [_caption(sample) for sample in samples],
    )


def _caption(sample):
    words = len(sample.tree)
    cut = ", cut at the limit" if sample.is_cut else ""
    count = f"{words} word{'s' * (words != 1)}"
    return f"{count}, log P(S, T) {sample.log_probability:.1f}{cut}"
