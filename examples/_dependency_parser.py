"""A small dependency parser: first-order features, averaged perceptron, Eisner's algorithm.

The score of a tree is the sum of the scores of its arcs. The score of an arc is the sum of the
weights of its features: words and tags of head and dependent, tags around and between them,
direction and distance. Features are hashed; features with the same hash share a weight.

Tags are inputs: the gold tags, in the trees of a treebank.

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

# Feature templates: fields of the head and fields of the dependent. w is the word, p its prefix,
# t the tag, < the tag before, > the tag after.
FEATURES = [
    *(("wt", ""), ("w", ""), ("t", ""), ("", "wt"), ("", "w"), ("", "t")),
    *(("pt", ""), ("p", ""), ("", "pt"), ("", "p")),
    *(("wt", "wt"), ("t", "wt"), ("w", "wt"), ("wt", "t"), ("wt", "w"), ("w", "w"), ("t", "t")),
    *(("pt", "pt"), ("t", "pt"), ("p", "pt"), ("pt", "t"), ("pt", "p"), ("p", "p")),
    *(("t>", "<t"), ("<t", "<t"), ("t>", "t>"), ("<t", "t>")),
]
PREFIX = 5  # letters of p
DISTANCES = (2, 3, 4, 5, 6, 11)  # lower ends of the distance bins
BITS = 22  # of a hash; there are 2**BITS weights
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)

# Axes: F features, including those with direction and distance and those of tags between; n + 1
# heads, ROOT first; n dependents.


class DependencyParser:
    """A parser, untrained at first: all weights are 0.

    Args:
        bits: integer, from 1 to 30: there are 2**bits weights.
    """

    def __init__(self, bits: int = BITS) -> None:
        self.weights = np.zeros(2**bits + 1, "float32")  # the last one is always 0
        self._shift = np.uint64(64 - bits)

    def features(self, words: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        """The indices of the weights of the features of every arc: array (F, n + 1, n)."""
        fields, count = _fields(words, tags), len(words)
        heads = np.stack([_mixed(fields, head) for head, _ in FEATURES])
        dependents = np.stack([_mixed(fields, dependent) for _, dependent in FEATURES])
        numbers = np.arange(len(FEATURES), dtype="uint64")[:, None, None]
        arcs = _mix(heads[:, :, None] + numbers) + dependents[:, None, 1:]  # (features, n + 1, n)
        at = np.arange(count + 1)[:, None], np.arange(1, count + 1)  # head, dependent
        right = at[1] > at[0]
        distance = np.searchsorted(DISTANCES, abs(at[1] - at[0]), "right")
        arcs = np.concatenate([arcs, arcs + _mix(2 * distance + right + 1)])
        # For every tag: whether it occurs between head and dependent.
        known, numbers = np.unique(fields["t"][1:], return_inverse=True)
        before = np.zeros((len(known), count + 2), "int32")  # occurrences before each index
        np.cumsum(numbers == np.arange(len(known))[:, None], axis=1, out=before[:, 2:])
        first, last = np.minimum(*at) + 1, np.maximum(*at)
        between = before[:, np.maximum(first, last)] > before[:, first]  # (tags, n + 1, n)
        sides = fields["t"][:, None] + _mix(fields["t"][None, 1:] + right)
        places = self._places(arcs)
        middle = self._places(_mix(known)[:, None, None] + _mix(sides))
        return np.concatenate([places, np.where(between, middle, len(self.weights) - 1)])

    def _places(self, hashes):
        return (_mix(hashes) >> self._shift).astype("int64")

    def arcs(self, words: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        """The score of every arc: array (n + 1, n)."""
        return self.weights[self.features(words, tags)].sum(0, dtype="float64")

    def parse(
        self, words: Sequence[str], tags: Sequence[str], count: int = 1
    ) -> list[tuple[DependencyTree, float]]:
        """The `count` trees with the highest scores, or fewer, best first, and their scores."""
        found = best_trees(self.arcs(words, tags), count)
        return [(DependencyTree(words, heads, tags), score) for heads, score in found]


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
        epochs: number of epochs. Weights change when another tree than the gold tree scores best.
        seed: integer, seed of the order of the trees.
        bits: integer, from 1 to 30: there are 2**bits weights.
        progress: function that is called with 1 after each tree.

    Returns:
        `DependencyParser` with the mean of the weights over all steps.
    """
    parser = DependencyParser(bits)
    weights, late = parser.weights, np.zeros(len(parser.weights))
    generator, step = np.random.default_rng(seed), 0
    for _ in range(epochs):
        for place in generator.permutation(len(trees)):
            tree = trees[place]
            features = parser.features(tree.words, tree.tags)
            ((found, _),) = best_trees(weights[features].sum(0, dtype="float64"))
            for dependent, (gold, head) in enumerate(zip(tree.heads, found, strict=True)):
                if gold != head:
                    for changed, sign in ((gold, 1), (head, -1)):
                        np.add.at(weights, features[:, changed, dependent], sign)
                        np.add.at(late, features[:, changed, dependent], sign * step)
            weights[-1] = late[-1] = 0
            step += 1
            if progress is not None:
                progress(1)
    # The mean contains an update of step s, counted from 0, with the weight 1 - s / steps.
    parser.weights -= (late / max(step, 1)).astype("float32")
    return parser


def jackknife(
    trees: Sequence[DependencyTree],
    parts: int,
    count: int,
    fit: Callable[[Sequence[DependencyTree]], DependencyParser],
) -> list[list[tuple[DependencyTree, float]]]:
    """Parses every sentence with a parser that was trained on other sentences.

    Args:
        trees: list of `DependencyTree` with tags.
        parts: integer, 2 or above, number of contiguous parts of the sentences.
        count: largest number of trees for a sentence.
        fit: function that trains a parser on trees.

    Returns:
        List of the results of `DependencyParser.parse` for every sentence.
    """
    ends = [len(trees) * part // parts for part in range(parts + 1)]
    found = []
    for first, last in itertools.pairwise(ends):
        parser = fit([*trees[:first], *trees[last:]])
        found += [parser.parse(tree.words, tree.tags, count) for tree in trees[first:last]]
    return found


def _fields(words, tags):
    """The fields of ROOT and of every word by name, as numbers (n + 1,)."""
    tag = ["<before>", "<root>", *tags, "<after>"]
    return {
        "w": _numbers(["<root>", *words]),
        "p": _numbers(["<root>", *(word[:PREFIX] for word in words)]),
        "t": _numbers(tag[1:-1]),
        "<": _numbers(tag[:-2]),
        ">": _numbers(tag[2:]),
    }


def _numbers(texts):
    """Hashes of texts that are the same in every process."""
    return np.array([zlib.crc32(text.encode()) for text in texts], "uint64")


def _mixed(fields, names):
    """Hashes of several fields together, (n + 1,)."""
    number = np.zeros_like(fields["t"])
    for name in names:
        number = _mix(number + fields[name] + np.uint64(ord(name) << 32))
    return number


def _mix(numbers):
    """64-bit hashes of numbers."""
    numbers = np.asarray(numbers).astype("uint64") * _FIRST
    numbers ^= numbers >> np.uint64(32)
    numbers *= _SECOND
    return numbers
