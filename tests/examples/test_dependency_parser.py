"""The dependency parser of the examples: exact search, features, averaging, unseen sentences."""

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
        others = [[h for h in range(count + 1) if h != place] for place in range(1, count + 1)]
        for heads in itertools.product(*others):
            if heads.count(0) == 1:
                try:
                    tree = DependencyTree(["w"] * count, heads)
                except ValueError:  # words in a circle
                    continue
                if tree.is_projective:
                    yield heads

    return {count: list(trees(count)) for count in range(1, 7)}


def total(scores, heads):
    return sum(scores[head, place] for place, head in enumerate(heads))


def test_the_oracle_has_all_trees(all_heads):
    """Their numbers are known: (3n - 2)! / ((n - 1)! (2n - 1)!)."""
    assert [len(all_heads[count]) for count in range(1, 7)] == [1, 2, 7, 30, 143, 728]


@pytest.mark.parametrize("words", range(1, 7))
@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 1000])
def test_the_best_trees_are_those_of_brute_force(parser, all_heads, words, count):
    scores = np.random.default_rng(words).normal(size=(words + 1, words))
    ranked = sorted(all_heads[words], key=lambda heads: -total(scores, heads))[:count]
    found = best_trees(scores, count)
    assert [tuple(heads) for heads, _ in found] == ranked
    expected = [total(scores, heads) for heads in ranked]
    assert [score for _, score in found] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("count", [1, 4, 20])
def test_trees_of_equal_scores(parser, all_heads, count):
    """Whole numbers, so that many are: the scores are right, and no tree comes twice."""
    for seed in range(20):
        scores = np.random.default_rng(seed).integers(-1, 2, (6, 5)).astype("float64")
        found = best_trees(scores, count)
        expected = sorted((total(scores, heads) for heads in all_heads[5]), reverse=True)[:count]
        assert [score for _, score in found] == expected
        assert [total(scores, heads) for heads, _ in found] == expected
        heads = {tuple(heads) for heads, _ in found}
        assert len(heads) == count and heads <= set(all_heads[5])


def test_the_best_of_a_long_sentence(parser):
    """More words than brute force can: the first is the one that all scores were made for."""
    words = 120
    heads = np.arange(words)  # a chain
    scores = np.zeros((words + 1, words))
    scores[heads, np.arange(words)] = 1.0
    (best, first), (_, second) = best_trees(scores, 2)
    assert (best, first, second) == (heads.tolist(), words, words - 1)


@pytest.mark.parametrize("scores", [np.zeros((3, 3)), np.zeros((1, 0)), np.full((3, 2), np.nan)])
def test_scores_of_another_shape_or_not_finite(parser, scores):
    with pytest.raises(ValueError, match="finite numbers"):
        best_trees(scores)


def features_of(parser, words, tags, head, dependent):
    """The features of an arc: a set, as strings say them."""
    words = ["<root>", *words]
    tags = ["<before>", "<root>", *tags, "<after>"]

    def look(fields, place):
        values = {
            "w": words[place],
            "p": words[place][:5],
            "t": tags[place + 1],
            "<": tags[place],
            ">": tags[place + 2],
        }
        return tuple(values[field] for field in fields)

    right = dependent > head
    distance = min(d for d in (1, 2, 3, 4, 5, 10, 999) if abs(dependent - head) <= d)
    found = set()
    for number, (one, other) in enumerate(parser.FEATURES):
        feature = number, look(one, head), look(other, dependent)
        found |= {feature, (*feature, right, distance)}
    for place in range(min(head, dependent) + 1, max(head, dependent)):
        found.add(("between", tags[head + 1], tags[place + 1], tags[dependent + 1], right))
    return found


def slow_arcs(parser, weights, words, tags):
    """Scores of all arcs, one by one."""
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
    """Trees of few words and tags, at random: nothing to learn, much to mistake."""
    generator = np.random.default_rng(seed)
    trees = []
    for _ in range(count):
        size = int(generator.integers(1, longest + 1))
        words = generator.choice(["a", "stone", "stonework", "stonewall", "be"], size).tolist()
        tags = generator.choice(["D", "N", "V"], size).tolist()
        heads = best_trees(generator.normal(size=(size + 1, size)))[0][0]
        trees.append(DependencyTree(words, heads, tags))
    return trees


def test_training_is_that_of_the_averaged_perceptron(parser):
    """Dictionaries of strings, and a mean of the weights after every sentence."""
    trees = sentences(parser, 9, 1, longest=5)
    epochs, seed = 2, 5
    trained = parser.train(trees, epochs, seed, bits=23)  # many: no two features share one
    generator = np.random.default_rng(seed)
    weights, totals, steps = defaultdict(int), defaultdict(int), 0
    for _ in range(epochs):
        for place in generator.permutation(len(trees)):
            tree = trees[place]
            arcs = slow_arcs(parser, weights, tree.words, tree.tags)
            ((heads, _),) = best_trees(arcs)
            for sign, of in ((1, tree.heads), (-1, heads)):
                for dependent, head in enumerate(of, 1):
                    for feature in features_of(parser, tree.words, tree.tags, head, dependent):
                        weights[feature] += sign
            for feature, weight in weights.items():
                totals[feature] += weight
            steps += 1
    means = defaultdict(float, {feature: number / steps for feature, number in totals.items()})
    assert any(totals.values())
    for tree in sentences(parser, 5, 2, longest=5):
        fast = trained.arcs(tree.words, tree.tags)
        slow = slow_arcs(parser, means, tree.words, tree.tags)
        off = ~np.eye(len(tree) + 1, len(tree), -1, dtype=bool)  # a word is not its own head
        assert np.abs(fast - slow)[off].max() < 1e-4


def test_a_toy_grammar_is_learnt(parser):
    """Where a phrase hangs is said by its preposition alone. Other sentences are right."""

    def trees(nouns):
        for subject, thing, other in itertools.product(nouns, repeat=3):
            for preposition, head in (("with", 2), ("of", 3)):
                words = [subject, "saw", thing, preposition, other]
                yield DependencyTree(words, [2, 0, 2, head, 4], list("NVNPN"))

    known = parser.train(list(trees(("dog", "cat"))), 3, bits=16)
    for tree in trees(("bird", "stone")):
        (best, score), (other, less) = known.parse(tree.words, tree.tags, 2)
        assert best == tree and other != tree and score > less
        arcs = known.arcs(tree.words, tree.tags)
        assert score == pytest.approx(total(arcs, tree.heads))


def test_jackknife_parses_what_its_parsers_have_not_seen(parser):
    trees = sentences(parser, 11, 4)
    fitted = []

    class Recorder:
        def __init__(self, given):
            fitted.append(given)

        def parse(self, words, tags, count):
            return fitted[-1], words, tags, count

    found = parser.jackknife(trees, 3, 7, Recorder)
    assert len(fitted) == 3 and len(found) == 11
    for tree, (given, words, tags, count) in zip(trees, found, strict=True):
        assert (words, tags, count) == (tree.words, tree.tags, 7)
        assert not any(one is tree for one in given)
        assert len(given) in (7, 8)
