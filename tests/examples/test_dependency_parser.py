"""The dependency parser of the examples: search, features, averaged perceptron, jackknife."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from helpers.commands import EXAMPLES, imported
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.eisner import best_trees

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def parser():
    """The module of the parser."""
    with imported(EXAMPLES, "_dependency_parser") as (module,):
        yield module


@pytest.fixture(scope="module")
def all_heads():
    """The heads of all projective trees with one word under ROOT, by the number of words."""

    def trees(count):
        others = [[h for h in range(count + 1) if h != word] for word in range(1, count + 1)]
        for heads in itertools.product(*others):
            if heads.count(0) == 1:
                try:
                    tree = DependencyTree(["w"] * count, heads)
                except ValueError:  # cyclic
                    continue
                if tree.is_projective:
                    yield heads

    return {count: list(trees(count)) for count in range(1, 7)}


def total(scores, heads):
    return sum(scores[head, word] for word, head in enumerate(heads))


def test_brute_force_finds_all_trees(all_heads):
    """The number of trees of n words is (3n - 2)! / ((n - 1)! (2n - 1)!)."""
    assert [len(all_heads[count]) for count in range(1, 7)] == [1, 2, 7, 30, 143, 728]


@pytest.mark.parametrize("words", range(1, 7))
@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 1000])
def test_best_trees_match_brute_force(parser, all_heads, words, count):
    scores = np.random.default_rng(words).normal(size=(words + 1, words))
    ranked = sorted(all_heads[words], key=lambda heads: -total(scores, heads))[:count]
    best = best_trees(scores, count)
    assert [tuple(heads) for heads, _ in best] == ranked
    expected = [total(scores, heads) for heads in ranked]
    assert [score for _, score in best] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("count", [1, 4, 20])
def test_best_trees_with_ties_are_distinct(parser, all_heads, count):
    """Integer scores produce many ties."""
    for seed in range(20):
        scores = np.random.default_rng(seed).integers(-1, 2, (6, 5)).astype("float64")
        best = best_trees(scores, count)
        expected = sorted((total(scores, heads) for heads in all_heads[5]), reverse=True)[:count]
        assert [score for _, score in best] == expected
        assert [total(scores, heads) for heads, _ in best] == expected
        heads = {tuple(heads) for heads, _ in best}
        assert len(heads) == count and heads <= set(all_heads[5])


def test_best_trees_of_long_sentence(parser):
    words = 120
    heads = np.arange(words)  # a chain
    scores = np.zeros((words + 1, words))
    scores[heads, np.arange(words)] = 1.0
    (best, first), (_, second) = best_trees(scores, 2)
    assert (best, first, second) == (heads.tolist(), words, words - 1)


@pytest.mark.parametrize("scores", [np.zeros((3, 3)), np.zeros((1, 0)), np.full((3, 2), np.nan)])
def test_rejects_scores_of_wrong_shape_or_not_finite(parser, scores):
    with pytest.raises(ValueError, match="must be finite"):
        best_trees(scores)


def features_of(parser, words, tags, head, dependent):
    """The features of an arc as a set of tuples of strings: the reference implementation."""
    words = ["<root>", *words]
    tags = ["<before>", "<root>", *tags, "<after>"]

    def read_fields(fields, index):
        values = {
            "w": words[index],
            "p": words[index][:5],
            "t": tags[index + 1],
            "<": tags[index],
            ">": tags[index + 2],
        }
        return tuple(values[field] for field in fields)

    right = dependent > head
    distance = min(d for d in (1, 2, 3, 4, 5, 10, 999) if abs(dependent - head) <= d)
    features = set()
    for number, (of_head, of_dependent) in enumerate(parser.FEATURES):
        feature = number, read_fields(of_head, head), read_fields(of_dependent, dependent)
        features |= {feature, (*feature, right, distance)}
    for index in range(min(head, dependent) + 1, max(head, dependent)):
        features.add(("between", tags[head + 1], tags[index + 1], tags[dependent + 1], right))
    return features


def reference_arcs(parser, weights, words, tags):
    """Scores of all arcs, computed separately."""
    count = len(words)
    return np.array(
        [
            [
                sum(weights[f] for f in features_of(parser, words, tags, h, d + 1))
                for d in range(count)
            ]
            for h in range(count + 1)
        ],
        "float64",
    )


def sentences(parser, count, seed, longest=14):
    """Random trees of few words and tags."""
    generator = np.random.default_rng(seed)
    trees = []
    for _ in range(count):
        size = int(generator.integers(1, longest + 1))
        words = generator.choice(["a", "stone", "stonework", "stonewall", "be"], size).tolist()
        tags = generator.choice(["D", "N", "V"], size).tolist()
        heads = best_trees(generator.normal(size=(size + 1, size)))[0][0]
        trees.append(DependencyTree(words, heads, tags))
    return trees


def test_training_matches_reference_averaged_perceptron(parser):
    """The reference stores weights in dictionaries and averages them after every sentence."""
    trees = sentences(parser, 9, 1, longest=5)
    epochs, seed = 2, 5
    trained = parser.train(trees, epochs, seed, bits=23)  # large enough for no collisions
    generator = np.random.default_rng(seed)
    weights, totals, steps = defaultdict(int), defaultdict(int), 0
    for _ in range(epochs):
        for index in generator.permutation(len(trees)):
            tree = trees[index]
            arcs = reference_arcs(parser, weights, tree.words, tree.tags)
            ((heads, _),) = best_trees(arcs)
            for sign, some_heads in ((1, tree.heads), (-1, heads)):
                for dependent, head in enumerate(some_heads, 1):
                    for feature in features_of(parser, tree.words, tree.tags, head, dependent):
                        weights[feature] += sign
            for feature, weight in weights.items():
                totals[feature] += weight
            steps += 1
    means = defaultdict(float, {feature: number / steps for feature, number in totals.items()})
    assert any(totals.values())
    for tree in sentences(parser, 5, 2, longest=5):
        scores = trained.arcs(tree.words, tree.tags)
        expected = reference_arcs(parser, means, tree.words, tree.tags)
        off = ~np.eye(len(tree) + 1, len(tree), -1, dtype=bool)  # a word is not its own head
        assert np.abs(scores - expected)[off].max() < 1e-4


def test_learns_simple_grammar(parser):
    """The preposition determines the head of the phrase. The test sentences have other nouns."""

    def trees(nouns):
        for subject, noun, other in itertools.product(nouns, repeat=3):
            for preposition, head in (("with", 2), ("of", 3)):
                words = [subject, "saw", noun, preposition, other]
                yield DependencyTree(words, [2, 0, 2, head, 4], list("NVNPN"))

    trained = parser.train(list(trees(("dog", "cat"))), 3, bits=16)
    for tree in trees(("bird", "stone")):
        (best, score), (other, less) = trained.parse(tree.words, tree.tags, 2)
        assert best == tree and other != tree and score > less
        arcs = trained.arcs(tree.words, tree.tags)
        assert score == pytest.approx(total(arcs, tree.heads))


def test_jackknife_parsers_have_not_seen_their_sentences(parser):
    trees = sentences(parser, 11, 4)
    fitted = []

    class Recorder:
        def __init__(self, training):
            fitted.append(training)

        def parse(self, words, tags, count):
            return fitted[-1], words, tags, count

    parsed = parser.jackknife(trees, 3, 7, Recorder)
    assert len(fitted) == 3 and len(parsed) == 11
    for tree, (training, words, tags, count) in zip(trees, parsed, strict=True):
        assert (words, tags, count) == (tree.words, tree.tags, 7)
        assert not any(other is tree for other in training)
        assert len(training) in (7, 8)
