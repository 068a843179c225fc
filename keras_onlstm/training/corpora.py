"""The texts and the dependency trees that a run trains on, and the vocabulary of the run."""

import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_onlstm.datasets import conll, dependency_treebank, propositional_logic, treebank
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.distribution.processes import SINGLE_PROCESS, Processes
from keras_onlstm.runs.language_model import TextConfig
from keras_onlstm.runs.tree_lstm import NLTK, TreeLSTMConfig
from keras_onlstm.text import large_corpus
from keras_onlstm.text.corpus import Corpus
from keras_onlstm.text.sentences import split, with_sentences, without_sentences
from keras_onlstm.text.vocabulary import EOS, ROOT, UNKNOWN, Encoder, frequent, read_words
from keras_onlstm.utils.files import read_text
from keras_onlstm.utils.validation import module_getattr

VOCABULARY = "vocabulary.txt"
IDS = "ids"  # directory with the ids of a large corpus
_PARTS = ("train", "validation", "test")


def read_corpus(
    config: TextConfig,
    run: str | Path,
    vocabulary: Sequence[str] | None = None,
    processes: Processes = SINGLE_PROCESS,
) -> Corpus:
    """Reads the corpus of a run as ids. Those of a large corpus are stored in the run.

    `config.data` is a folder of `train.txt`, `valid.txt` and `test.txt`, or text files, whose lines
    are split 18 : 1 : 1. The preset `debug` without `data` uses formulas of propositional logic.
    """
    level = "character" if config.characters else "word"
    with tempfile.TemporaryDirectory() as temporary:
        folder = _corpus_folder(config, Path(temporary), processes.is_first)
        cache = Path(run) / IDS
        return large_corpus.load(folder, cache, vocabulary, config.max_words, level, processes)


def _corpus_folder(config, temporary, is_first):
    """The folder of the parts of a corpus: `temporary` if they have to be written."""
    for path in map(Path, config.data):
        if is_first and not path.exists():  # other processes do not need a large text
            raise FileNotFoundError(f"--data {path}: no such folder or file.")
        if path.is_dir() and len(config.data) > 1:
            raise ValueError(f"--data {path}: is a folder. Give one folder, or text files.")
    if len(config.data) == 1 and not Path(config.data[0]).is_file():
        return config.data[0]
    if config.data:
        lines = "\n".join(map(read_text, config.data)).splitlines()
        parts = split_lines([line for line in lines if line.strip()])
        if not parts["test"]:
            raise ValueError(f"--data {config.data[0]}: give a file of 20 lines or more.")
    elif config.preset == "debug":
        pairs, _ = propositional_logic.generate(3000, seed=0).split()
        lines = [pair.left for pair in pairs[:1000]]
        parts = {"train": lines, "valid": lines[::10], "test": lines[1::10]}
    else:
        raise ValueError(
            "--data is missing. Give a folder of train.txt, valid.txt and test.txt, or of the Penn "
            "Treebank's ptb.train.txt and so on, or text files."
        )
    for part, lines in parts.items():
        (temporary / f"{part}.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return temporary


def split_lines(lines: list[str]) -> dict[str, list[str]]:
    """Splits lines 18 : 1 : 1 into train, valid and test, in their order."""
    train = [line for number, line in enumerate(lines) if number % 20 not in (0, 10)]
    return {"train": train, "valid": lines[::20], "test": lines[10::20]}


def vocabulary_of_run(run: str | Path) -> list[str]:
    """Reads the vocabulary of a run."""
    return read_words(Path(run) / VOCABULARY, "Restore it, or start the run anew.")


def check_same_vocabulary(run: str | Path, vocabulary: Sequence[str], data: Sequence[str]) -> None:
    """Checks that a corpus has the vocabulary with which the run began."""
    if vocabulary_of_run(run) != list(vocabulary):
        raise ValueError(
            f"{Path(run) / VOCABULARY}: is not the vocabulary of {' '.join(data)}: the files "
            "changed since the run began. Restore them, or start a run with another --output."
        )


def choose_sentences(corpus: Corpus, test_sentences: bool) -> Corpus:
    """A corpus with or without the sentences on which trees are evaluated."""
    try:
        sample = treebank.load()
    except FileNotFoundError as error:
        if test_sentences:
            raise
        print(f"No sentence is left out of the training: {error}", file=sys.stderr)
        return corpus
    encode = Encoder(corpus.vocabulary)
    # The sample writes numbers, punctuation and words with hyphens differently.
    ignored = {i for i, word in enumerate(corpus.vocabulary) if not word.isalpha() or word == "N"}
    choose = with_sentences if test_sentences else without_sentences
    train = choose(corpus.train, encode.eos, [encode(s.tokens) for s in sample], ignored)
    before, after = (len(split(ids, encode.eos)) for ids in (corpus.train, train))
    change = "with those" if test_sentences else f"{before - after:,} fewer: without those"
    print(f"{after:,} sentences, {change} of NLTK's sample, on which trees are scored", flush=True)
    return corpus._replace(train=train)


class TreeCorpus(NamedTuple):
    """The vocabulary of a corpus and the projective trees of its parts."""

    vocabulary: list[str]  # `<unk>` and `<root>` first
    train: list[DependencyTree]
    validation: list[DependencyTree]
    test: list[DependencyTree]
    skipped: dict[str, int]  # number of sentences of each part without a projective tree


def reshape_tree(tree: DependencyTree, shape: str, seed: int = 0) -> DependencyTree:
    """The words of a tree in a tree of another shape, a value of `TreeLSTMConfig.trees`."""
    if shape == "sentence":
        return chain([*tree.words, EOS])
    if shape in ("chain", "bidirectional"):
        return chain(tree.words)
    return random_tree(tree.words, seed) if shape == "random" else tree


def normalize_tree(tree: DependencyTree) -> DependencyTree:
    """A tree with its words in lower case, and `N` for every run of digits."""
    words = [normalize(word) for word in tree.words]
    return DependencyTree(words, tree.heads, tree.tags, tree.relations)


def make_vocabulary(trees: Iterable[DependencyTree], config: TreeLSTMConfig) -> list[str]:
    """The vocabulary of training trees, with `<eos>` if `config.trees` is `"sentence"`."""
    special = (UNKNOWN, ROOT, *([EOS] if config.trees == "sentence" else ()))
    return frequent((tree.words for tree in trees), config.least_count, special)


def read_trees(config: TreeLSTMConfig, vocabulary: Sequence[str] | None = None) -> TreeCorpus:
    """Reads the trees of three parts. Default vocabulary: that of the training trees.

    The preset `debug` without `data` uses random trees.
    """
    if not config.data and config.preset == "debug":
        return _random_corpus(config)
    parts: dict[str, list[DependencyTree]] = {}
    skipped: dict[str, int] = {}
    paths = config.data if len(config.data) == len(_PARTS) else [None] * len(_PARTS)
    for part, path in zip(_PARTS, paths, strict=True):
        if path is None:
            trees, invalid = dependency_treebank.load(part), 0
        else:
            reader = conll.read(path, invalid="skip")
            trees, invalid = list(reader), reader.skipped
        projective = [tree for tree in trees if tree.is_projective]
        skipped[part] = invalid + len(trees) - len(projective)
        if not projective:
            raise ValueError(f"{path or NLTK}: contains no projective tree. Give a file with some.")
        if config.normalize:
            projective = list(map(normalize_tree, projective))
        if part == "train":
            # Words of longer trees count, too.
            vocabulary = vocabulary or make_vocabulary(projective, config)
            projective = [tree for tree in projective if len(tree) <= config.longest]
        parts[part] = [reshape_tree(tree, config.trees, i) for i, tree in enumerate(projective)]
    return TreeCorpus(list(vocabulary or ()), **parts, skipped=skipped)


def _random_corpus(config):
    """Random trees whose words encode their depth and side."""
    generator = random.Random(0)
    parts = []
    for count in (120, 30, 30):
        trees = []
        for number in range(count):
            tree = random_tree(["word"] * generator.randint(1, 12), generator.randrange(10**6))
            depths = [len(path) for path in tree.paths()]
            sides = ["left" if head > i else "right" for i, head in enumerate(tree.heads, 1)]
            words = [f"{s}-{'abcd'[d % 4]}" for s, d in zip(sides, depths, strict=True)]
            trees.append(reshape_tree(DependencyTree(words, tree.heads), config.trees, number))
        parts.append(trees)
    train, validation, test = parts
    skipped = dict.fromkeys(_PARTS, 0)
    return TreeCorpus(make_vocabulary(train, config), train, validation, test, skipped)


__getattr__ = module_getattr(__name__, {"normalized": "normalize_tree", "reshaped": "reshape_tree"})
