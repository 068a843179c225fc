"""The dependency trees that a TreeLSTM is trained on. No Keras."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_onlstm.datasets import conll, dependency_treebank
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.text.vocabulary import EOS, ROOT, UNKNOWN, frequent
from keras_onlstm.training.settings import Setting
from keras_onlstm.utils.reading import Choice, Integer, Number

__all__ = [
    "NLTK",
    "SEQUENTIAL",
    "SHAPES",
    "TREE_SETTINGS",
    "TREE_VALUES",
    "TreeCorpus",
    "normalized",
    "read_trees",
    "reshaped",
    "vocabulary_of",
]

NLTK = "nltk"  # the name of NLTK's dependency treebank
SEQUENTIAL = ("chain", "sentence", "bidirectional")  # read as sequences
SHAPES = ("dependencies", *SEQUENTIAL, "random")
_PARTS = ("train", "validation", "test")


class TreeCorpus(NamedTuple):
    """Dependency trees to train on, and what is known of them.

    Attributes:
        vocabulary: list of words, `<unk>` and `<root>` first.
        train: list of `DependencyTree`, all projective.
        validation: likewise.
        test: likewise.
        skipped: dictionary from the parts to how many sentences were left out, as they are not
            projective or no tree.
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
        shape: `"dependencies"`: as it is; `"chain"`, by which a model is a sequential LSTM;
            `"sentence"`, a chain that ends with `<eos>`; `"bidirectional"`, a chain that is read
            from both ends; `"random"`, drawn for this number.
        seed: integer, of what is drawn.

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
    """A tree with its words in lower case, and `N` for every run of digits.

    Args:
        tree: `DependencyTree`.

    Returns:
        `DependencyTree`.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.training.tree_corpora import normalized
    >>> normalized(DependencyTree(["It", "fell", "12%"], [2, 0, 2])).words
    ('it', 'fell', 'N%')
    """
    words = [normalize(word) for word in tree.words]
    return DependencyTree(words, tree.heads, tree.tags, tree.relations)


def vocabulary_of(trees: Iterable[DependencyTree], values: Mapping, shape: str) -> list[str]:
    """The vocabulary of the trees of a run.

    Args:
        trees: iterable of `DependencyTree`, those to train on.
        values: dictionary of `least_count`, as in `TREE_SETTINGS`.
        shape: as of `reshaped`.

    Returns:
        List of words, `<unk>` and `<root>` first, then `<eos>` for sentences that have an end.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.training.tree_corpora import vocabulary_of
    >>> vocabulary_of([chain("a cat and a dog".split())], {"least_count": 2}, "sentence")
    ['<unk>', '<root>', '<eos>', 'a']
    """
    special = (UNKNOWN, ROOT, *([EOS] if shape == "sentence" else ()))
    return frequent((tree.words for tree in trees), values["least_count"], special)


def _projective(trees):
    kept, skipped = [], 0
    for tree in trees:
        if tree.is_projective:
            kept.append(tree)
        else:
            skipped += 1
    return kept, skipped


def read_trees(
    data: str | Sequence[str | Path],
    values: Mapping,
    shape: str = "dependencies",
    vocabulary: Sequence[str] | None = None,
) -> TreeCorpus:
    """Reads the trees of three parts, and makes the vocabulary of the first.

    Args:
        data: `"nltk"`, or the paths of three CoNLL files: training, validation, test.
        values: dictionary of `normalize`, `least_count` and `longest`, as in `TREE_SETTINGS`.
        shape: as of `reshaped`.
        vocabulary: list of words, or `None`: those of the training trees.

    Returns:
        `TreeCorpus`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, or has no tree.
    """
    parts, skipped = {}, {}
    paths = [None] * len(_PARTS) if data == NLTK else list(data)
    if len(paths) != len(_PARTS) or (isinstance(data, str) and data != NLTK):
        raise ValueError(
            f"--data takes {NLTK}, or three CoNLL files: for training, validation and test."
        )
    for part, path in zip(_PARTS, paths, strict=True):
        if path is None:
            trees, left_out = dependency_treebank.load(part), 0
        else:
            reader = conll.read(path, invalid="skip")
            trees, left_out = list(reader), reader.skipped
        kept, crossing = _projective(trees)
        if not kept:
            raise ValueError(f"{path or data}: no projective tree. Give a file with some.")
        if values["normalize"]:
            kept = list(map(normalized, kept))
        if part == "train":
            # The frequencies are those of all that is read.
            vocabulary = vocabulary or vocabulary_of(kept, values, shape)
            kept = [tree for tree in kept if len(tree) <= values["longest"]]
        parts[part] = [reshaped(tree, shape, number) for number, tree in enumerate(kept)]
        skipped[part] = left_out + crossing
    return TreeCorpus(list(vocabulary or ()), **parts, skipped=skipped)


_RATE = Number(0.0, 1.0)
TREE_SETTINGS = {
    "embedding_dim": Setting(Integer(1), "size of word vectors"),
    "units": Setting(Integer(1), "size of the layers"),
    "num_layers": Setting(Integer(1, 100), "layers of each of the four LSTMs"),
    "left_layers": Setting(Integer(1, 100), "layers of the one that reads left dependents"),
    "input_dropout": Setting(_RATE, "share of the word vectors' numbers dropped"),
    "output_dropout": Setting(_RATE, "the same before the softmax"),
    "normalize": Setting(bool, "words in lower case, digits as N"),
    "least_count": Setting(Integer(1), "words of the training trees that are rarer are unknown"),
    "longest": Setting(Integer(1), "sentences of more words are not trained on"),
    "epochs": Setting(Integer(1), "epochs; plateau may end earlier"),
    "batch_size": Setting(Integer(1), "trees in a batch"),
    "optimizer": Setting(Choice(("sgd", "adam")), "sgd: on the sum over a sentence, not on the "
                         "mean over words (the published recipe)"),
    "learning_rate": Setting(Number(0.0), "learning rate; with cosine the highest"),
    "schedule": Setting(Choice(("constant", "cosine", "plateau")), "of the learning rate; cosine: "
                        "linear warmup, then down along a cosine; plateau: half of it, and back to "
                        "the best weights, when validation stops falling (the published recipe)"),
    "warmup": Setting(_RATE, "cosine: share of all steps in which the rate rises"),
    "clipnorm": Setting(Number(0.0), "largest norm of all gradients together"),
    "noise": Setting(Integer(0), "words of noise for every word, by noise-contrastive estimation; "
                     "0: the softmax"),
    "ln_z": Setting(Number(), "logarithm of its constant Z at the start"),
    "learn": Setting(Choice(("ln_z", "z", "nothing")), "what of it is learnt; z: as published"),
}  # fmt: skip
TREE_VALUES = {  # where a preset does not say
    "num_layers": 1, "left_layers": 1, "input_dropout": 0.0, "normalize": True, "least_count": 2,
    "longest": 150, "optimizer": "adam", "schedule": "cosine", "clipnorm": 5.0, "warmup": 0.05,
    "noise": 0, "ln_z": 9.0, "learn": "ln_z",
}  # fmt: skip
