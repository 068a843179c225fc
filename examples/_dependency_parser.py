"""A small dependency parser: first-order features, averaged perceptron, Eisner's algorithm.

The score of a tree is the sum of the scores of its arcs. The score of an arc is the sum of the
weights of its features: words and tags of head and dependent, tags around and between them,
direction and distance. Features are hashed; features with the same hash share a weight. The tags
are inputs of the parser; on a treebank they are the gold tags.

Sources: McDonald, Crammer, Pereira 2005, "Online Large-Margin Training of Dependency Parsers",
https://aclanthology.org/P05-1012, Table 1, for the features; Collins 2002, "Discriminative Training
Methods for Hidden Markov Models", https://aclanthology.org/W02-1001, for the averaged perceptron.
"""

import itertools
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.eisner import best_trees

# Feature templates: fields of the head and fields of the dependent. w: word, p: prefix of the word,
# t: tag, <: tag of the previous word, >: tag of the next word.
FEATURES = [
    *(("wt", ""), ("w", ""), ("t", ""), ("", "wt"), ("", "w"), ("", "t")),
    *(("pt", ""), ("p", ""), ("", "pt"), ("", "p")),
    *(("wt", "wt"), ("t", "wt"), ("w", "wt"), ("wt", "t"), ("wt", "w"), ("w", "w"), ("t", "t")),
    *(("pt", "pt"), ("t", "pt"), ("p", "pt"), ("pt", "t"), ("pt", "p"), ("p", "p")),
    *(("t>", "<t"), ("<t", "<t"), ("t>", "t>"), ("<t", "t>")),
]
PREFIX = 5  # letters
DISTANCES = (2, 3, 4, 5, 6, 11)  # lower ends of the distance bins
BITS = 22  # hash size; there are 2**BITS weights
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)

# Axes: F features, n + 1 heads (ROOT first), n dependents.


class DependencyParser:
    """A parser with 2**bits weights, which are initially 0.

    Args:
        bits: integer, from 1 to 30.
    """

    def __init__(self, bits: int = BITS) -> None:
        self.weights = np.zeros(2**bits + 1, "float32")  # the last one is always 0
        self._shift = np.uint64(64 - bits)

    def features(self, words: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        """Weight indices of the features of every arc: array (F, n + 1, n)."""
        fields, count = _fields(words, tags), len(words)
        heads = np.stack([_hash_fields(fields, head) for head, _ in FEATURES])
        dependents = np.stack([_hash_fields(fields, dependent) for _, dependent in FEATURES])
        templates = np.arange(len(FEATURES), dtype="uint64")[:, None, None]
        arcs = (
            _hash(heads[:, :, None] + templates) + dependents[:, None, 1:]
        )  # (features, n + 1, n)
        head, dependent = np.arange(count + 1)[:, None], np.arange(1, count + 1)
        is_right = dependent > head  # (n + 1, n)
        distance = np.searchsorted(DISTANCES, abs(dependent - head), "right")
        arcs = np.concatenate([arcs, arcs + _hash(2 * distance + is_right + 1)])
        # For every tag: whether it occurs between head and dependent, from cumulative counts.
        tag_hashes, tag_ids = np.unique(fields["t"][1:], return_inverse=True)
        before = np.zeros((len(tag_hashes), count + 2), "int32")  # occurrences before each index
        np.cumsum(tag_ids == np.arange(len(tag_hashes))[:, None], axis=1, out=before[:, 2:])
        start, end = np.minimum(head, dependent) + 1, np.maximum(head, dependent)
        is_between = before[:, np.maximum(start, end)] > before[:, start]  # (tags, n + 1, n)
        ends = fields["t"][:, None] + _hash(fields["t"][None, 1:] + is_right)
        between = self._indices(_hash(tag_hashes)[:, None, None] + _hash(ends))
        between = np.where(is_between, between, len(self.weights) - 1)  # the weight that is 0
        return np.concatenate([self._indices(arcs), between])

    def _indices(self, hashes):
        return (_hash(hashes) >> self._shift).astype("int64")

    def arcs(self, words: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        """The score of every arc: array (n + 1, n)."""
        return self.weights[self.features(words, tags)].sum(0, dtype="float64")

    def parse(
        self, words: Sequence[str], tags: Sequence[str], count: int = 1
    ) -> list[tuple[DependencyTree, float]]:
        """Up to `count` trees with the highest scores, best first, and their scores."""
        best = best_trees(self.arcs(words, tags), count)
        return [(DependencyTree(words, heads, tags), score) for heads, score in best]


def train(
    trees: Sequence[DependencyTree],
    epochs: int,
    seed: int = 0,
    bits: int = BITS,
    progress: Callable[[int], object] | None = None,
) -> DependencyParser:
    """Trains a parser.

    Args:
        trees: list of projective `DependencyTree` with tags.
        epochs: number of epochs. A step changes weights only if the best tree is not the gold tree.
        seed: integer, seed of the order of the trees.
        bits: integer, from 1 to 30: there are 2**bits weights.
        progress: function that is called with 1 after each tree.

    Returns:
        `DependencyParser` whose weights are the means over all steps.
    """
    parser = DependencyParser(bits)
    # An update in step s is part of the weights of the steps s, ..., steps - 1 only. So the mean is
    # the sum of all updates minus the sum of s * update, which is `delayed`, divided by steps.
    weights, delayed = parser.weights, np.zeros(len(parser.weights))
    generator, step = np.random.default_rng(seed), 0
    for _ in range(epochs):
        for index in generator.permutation(len(trees)):
            tree = trees[index]
            features = parser.features(tree.words, tree.tags)
            ((predicted, _),) = best_trees(weights[features].sum(0, dtype="float64"))
            for dependent, (gold, head) in enumerate(zip(tree.heads, predicted, strict=True)):
                if gold != head:
                    for arc_head, sign in ((gold, 1), (head, -1)):
                        np.add.at(weights, features[:, arc_head, dependent], sign)
                        np.add.at(delayed, features[:, arc_head, dependent], sign * step)
            weights[-1] = delayed[-1] = 0
            step += 1
            if progress is not None:
                progress(1)
    parser.weights -= (delayed / max(step, 1)).astype("float32")
    return parser


def jackknife(
    trees: Sequence[DependencyTree],
    parts: int,
    count: int,
    fit: Callable[[Sequence[DependencyTree]], DependencyParser],
) -> list[list[tuple[DependencyTree, float]]]:
    """Parses every sentence with a parser trained on the other parts of the data.

    Args:
        trees: list of `DependencyTree` with tags.
        parts: integer, 2 or above, number of contiguous parts of the sentences.
        count: maximum number of trees of a sentence.
        fit: function that trains a parser on trees.

    Returns:
        List with the result of `DependencyParser.parse` for every sentence.
    """
    ends = [len(trees) * part // parts for part in range(parts + 1)]
    results = []
    for first, last in itertools.pairwise(ends):
        parser = fit([*trees[:first], *trees[last:]])
        results += [parser.parse(tree.words, tree.tags, count) for tree in trees[first:last]]
    return results


def _fields(words, tags):
    """Hashed fields of ROOT and of every word, by name: arrays (n + 1,)."""
    padded = ["<before>", "<root>", *tags, "<after>"]
    return {
        "w": _hash_texts(["<root>", *words]),
        "p": _hash_texts(["<root>", *(word[:PREFIX] for word in words)]),
        "t": _hash_texts(padded[1:-1]),
        "<": _hash_texts(padded[:-2]),
        ">": _hash_texts(padded[2:]),
    }


def _hash_texts(texts):
    """Hashes texts identically in every process, unlike `hash`."""
    return np.array([zlib.crc32(text.encode()) for text in texts], "uint64")


def _hash_fields(fields, names):
    """Combines several fields into one hash: (n + 1,)."""
    hashes = np.zeros_like(fields["t"])
    for name in names:
        hashes = _hash(hashes + fields[name] + np.uint64(ord(name) << 32))
    return hashes


def _hash(numbers):
    """64-bit hashes of numbers."""
    numbers = np.asarray(numbers).astype("uint64") * _MULTIPLIER_1
    numbers ^= numbers >> np.uint64(32)
    numbers *= _MULTIPLIER_2
    return numbers
