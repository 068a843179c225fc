"""A small dependency parser: first-order features, averaged perceptron, Eisner's algorithm.

The score of a tree is the sum over its arcs, that of an arc the sum of the weights of its features:
words and tags of the head and of the dependent, tags around them and between, direction and
distance. A feature finds its weight by a hash; two that find the same one share it.

Tags are taken as they are given: the gold ones, in the trees of a treebank.

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

# What a feature looks at: fields of the head, and fields of the dependent. w is the word, p its
# first letters, t the tag, < the tag before, > the tag after.
FEATURES = [
    *(("wt", ""), ("w", ""), ("t", ""), ("", "wt"), ("", "w"), ("", "t")),
    *(("pt", ""), ("p", ""), ("", "pt"), ("", "p")),
    *(("wt", "wt"), ("t", "wt"), ("w", "wt"), ("wt", "t"), ("wt", "w"), ("w", "w"), ("t", "t")),
    *(("pt", "pt"), ("t", "pt"), ("p", "pt"), ("pt", "t"), ("pt", "p"), ("p", "p")),
    *(("t>", "<t"), ("<t", "<t"), ("t>", "t>"), ("<t", "t>")),
]
PREFIX = 5  # letters of p
DISTANCES = (2, 3, 4, 5, 6, 11)  # from which on a distance is another one
BITS = 22  # of a hash: there are as many weights as two to that
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)

# Axes: F features, those with direction and distance and those between included; n + 1 heads, ROOT
# first; n dependents.


class DependencyParser:
    """A parser that knows nothing until it is trained.

    Args:
        bits: integer, from 1 to 30: there are 2**bits weights.
    """

    def __init__(self, bits: int = BITS) -> None:
        self.weights = np.zeros(2**bits + 1, "float32")  # the last one is of no feature: 0
        self._shift = np.uint64(64 - bits)

    def features(self, words: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        """The places of the weights of the features of every arc: array (F, n + 1, n)."""
        fields, count = _fields(words, tags), len(words)
        heads = np.stack([_mixed(fields, head) for head, _ in FEATURES])
        dependents = np.stack([_mixed(fields, dependent) for _, dependent in FEATURES])
        numbers = np.arange(len(FEATURES), dtype="uint64")[:, None, None]
        arcs = _mix(heads[:, :, None] + numbers) + dependents[:, None, 1:]  # (features, n + 1, n)
        at = np.arange(count + 1)[:, None], np.arange(1, count + 1)  # head, dependent
        right = at[1] > at[0]
        distance = np.searchsorted(DISTANCES, abs(at[1] - at[0]), "right")
        arcs = np.concatenate([arcs, arcs + _mix(2 * distance + right + 1)])
        # Of every tag: whether it stands between the two.
        known, numbers = np.unique(fields["t"][1:], return_inverse=True)
        before = np.zeros((len(known), count + 2), "int32")  # how often before each place
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
        """The trees of highest scores, best first, and their scores: at most `count`."""
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
        epochs: how often each is parsed; where another tree scores higher, weights change.
        seed: integer, of their order.
        bits: as of `DependencyParser`.
        progress: function that is called after each tree, with 1.

    Returns:
        `DependencyParser`, whose weights are the mean over all that there were.
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
    # A change in step s, from 0 on, is there in all later ones: a share of 1 - s / steps of them.
    parser.weights -= (late / max(step, 1)).astype("float32")
    return parser


def jackknife(
    trees: Sequence[DependencyTree],
    parts: int,
    count: int,
    fit: Callable[[Sequence[DependencyTree]], DependencyParser],
) -> list[list[tuple[DependencyTree, float]]]:
    """Parses every sentence by a parser that was trained on others.

    Args:
        trees: list of `DependencyTree` with tags.
        parts: integer, 2 or above: into so many, of sentences in a row, they are divided.
        count: how many trees of a sentence at the most.
        fit: function that trains a parser of trees.

    Returns:
        A list as `DependencyParser.parse` gives for every sentence.
    """
    ends = [len(trees) * part // parts for part in range(parts + 1)]
    found = []
    for first, last in itertools.pairwise(ends):
        parser = fit([*trees[:first], *trees[last:]])
        found += [parser.parse(tree.words, tree.tags, count) for tree in trees[first:last]]
    return found


def _fields(words, tags):
    """What stands at ROOT and at every word, by names of fields: numbers (n + 1,)."""
    tag = ["<before>", "<root>", *tags, "<after>"]
    return {
        "w": _numbers(["<root>", *words]),
        "p": _numbers(["<root>", *(word[:PREFIX] for word in words)]),
        "t": _numbers(tag[1:-1]),
        "<": _numbers(tag[:-2]),
        ">": _numbers(tag[2:]),
    }


def _numbers(texts):
    """Numbers of texts that are the same in every process."""
    return np.array([zlib.crc32(text.encode()) for text in texts], "uint64")


def _mixed(fields, names):
    """A number of what stands in some fields, (n + 1,)."""
    number = np.zeros_like(fields["t"])
    for name in names:
        number = _mix(number + fields[name] + np.uint64(ord(name) << 32))
    return number


def _mix(numbers):
    """Numbers of 64 bits that look like random ones, equal where the given ones are."""
    numbers = np.asarray(numbers).astype("uint64") * _FIRST
    numbers ^= numbers >> np.uint64(32)
    numbers *= _SECOND
    return numbers
