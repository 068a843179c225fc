"""Dependency trees to train a TreeLSTM on. Does not import Keras."""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_onlstm.datasets import conll, dependency_treebank
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.runs.tree_lstm import NLTK, TreeLSTMConfig
from keras_onlstm.text.vocabulary import EOS, ROOT, UNKNOWN, frequent

__all__ = [
    "TreeCorpus",
    "normalized",
    "read_trees",
    "reshaped",
    "vocabulary_of",
]

_PARTS = ("train", "validation", "test")


class TreeCorpus(NamedTuple):
    """Dependency trees of the three parts, and the vocabulary.

    Attributes:
        vocabulary: list of words, `<unk>` and `<root>` first.
        train: list of `DependencyTree`, all projective.
        validation: list of `DependencyTree`, all projective.
        test: list of `DependencyTree`, all projective.
        skipped: number of sentences of each part without a projective tree.
    """

    vocabulary: list[str]
    train: list[DependencyTree]
    validation: list[DependencyTree]
    test: list[DependencyTree]
    skipped: dict[str, int]


def reshaped(tree: DependencyTree, shape: str, seed: int = 0) -> DependencyTree:
    """The words of a tree in a tree of another shape.

    Args:
        tree: `DependencyTree`.
        shape: a value of `TreeLSTMConfig.trees`.
        seed: integer, seed of a random tree.

    Returns:
        `DependencyTree`.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.training.tree_corpora import reshaped
    >>> reshaped(DependencyTree("a cat sleeps".split(), [2, 3, 0]), "chain").heads
    (0, 1, 2)
    """
    if shape == "sentence":
        return chain([*tree.words, EOS])
    if shape in ("chain", "bidirectional"):
        return chain(tree.words)
    return random_tree(tree.words, seed) if shape == "random" else tree


def normalized(tree: DependencyTree) -> DependencyTree:
    """A tree with its words in lower case, and `N` for every run of digits."""
    words = [normalize(word) for word in tree.words]
    return DependencyTree(words, tree.heads, tree.tags, tree.relations)


def vocabulary_of(trees: Iterable[DependencyTree], config: TreeLSTMConfig) -> list[str]:
    """The vocabulary of training trees, with `<eos>` if `config.trees` is `"sentence"`."""
    special = (UNKNOWN, ROOT, *([EOS] if config.trees == "sentence" else ()))
    return frequent((tree.words for tree in trees), config.least_count, special)


def _projective(trees):
    kept, skipped = [], 0
    for tree in trees:
        if tree.is_projective:
            kept.append(tree)
        else:
            skipped += 1
    return kept, skipped


def read_trees(config: TreeLSTMConfig, vocabulary: Sequence[str] | None = None) -> TreeCorpus:
    """Reads the trees of three parts, and the vocabulary of the first.

    Args:
        config: `TreeLSTMConfig`. The preset `debug` without `data` uses random trees.
        vocabulary: list of words, or `None`: that of the training trees.

    Returns:
        `TreeCorpus`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged or has no projective tree.
    """
    if not config.data and config.preset == "debug":
        return _toy_trees(config)
    parts: dict[str, list[DependencyTree]] = {}
    skipped: dict[str, int] = {}
    paths = config.data if len(config.data) == len(_PARTS) else [None] * len(_PARTS)
    for part, path in zip(_PARTS, paths, strict=True):
        if path is None:
            trees, left_out = dependency_treebank.load(part), 0
        else:
            reader = conll.read(path, invalid="skip")
            trees, left_out = list(reader), reader.skipped
        kept, crossing = _projective(trees)
        if not kept:
            raise ValueError(f"{path or NLTK}: no projective tree. Give a file with some.")
        if config.normalize:
            kept = list(map(normalized, kept))
        if part == "train":
            # Words of longer trees count, too.
            vocabulary = vocabulary or vocabulary_of(kept, config)
            kept = [tree for tree in kept if len(tree) <= config.longest]
        parts[part] = [reshaped(tree, config.trees, number) for number, tree in enumerate(kept)]
        skipped[part] = left_out + crossing
    train, validation, test = parts.values()
    return TreeCorpus(list(vocabulary or ()), train, validation, test, skipped)


def _toy_trees(config):
    """Random trees whose words encode their depth and side."""
    generator = random.Random(0)
    parts: list[list[DependencyTree]] = []
    for count in (120, 30, 30):
        trees = []
        for number in range(count):
            tree = random_tree(["word"] * generator.randint(1, 12), generator.randrange(10**6))
            depths = [len(path) for path in tree.paths()]
            sides = ["left" if head > i else "right" for i, head in enumerate(tree.heads, 1)]
            words = [f"{s}-{'abcd'[d % 4]}" for s, d in zip(sides, depths, strict=True)]
            trees.append(reshaped(DependencyTree(words, tree.heads), config.trees, number))
        parts.append(trees)
    train, validation, test = parts
    vocabulary = vocabulary_of(train, config)
    return TreeCorpus(vocabulary, train, validation, test, dict.fromkeys(_PARTS, 0))
