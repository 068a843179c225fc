"""Consensus trees against brute force over all binary trees, and against `build_tree`."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk import Tree

from keras_onlstm.parsing import (
    balanced,
    brackets,
    build_tree,
    consensus,
    left_branching,
    random_tree,
    right_branching,
    vote,
)
from keras_onlstm.parsing.scores import walk
from keras_onlstm.parsing.trees import METHODS

pytestmark = pytest.mark.keras_free


def words(count):
    return [f"w{place}" for place in range(count)]


def spans(tree):
    return {(start, end) for _, start, end in walk(tree)[0]}


@functools.cache
def all_trees(start, end):
    """The spans of every binary tree of a range, ordered by their splits from the left."""
    if end - start == 1:
        return [frozenset()]
    return [
        frozenset({(start, end)}) | left | right
        for middle in range(start + 1, end)
        for left in all_trees(start, middle)
        for right in all_trees(middle, end)
    ]


def elected(votes, count):
    """The first tree with the largest sum of votes."""
    return max(all_trees(0, count), key=lambda tree: sum(votes.get(span, 0) for span in tree))


def count_votes(trees, weights):
    votes = {}
    for tree, weight in zip(trees, weights, strict=True):
        for span in spans(tree):
            votes[span] = votes.get(span, 0) + weight
    return votes


def flattened(tree, rng):
    """Removes some constituents of a tree and adds unary constituents."""
    children = []
    for child in tree:
        if not isinstance(child, Tree):
            children.append(child)
        elif rng.random() < 0.4:
            children += list(flattened(child, rng))
        else:
            children.append(flattened(child, rng))
    found = Tree("NP", children)
    return Tree("S", [found]) if rng.random() < 0.2 else found


@pytest.mark.parametrize("count", range(1, 9))
def test_elected_tree_matches_brute_force(count):
    rng = np.random.default_rng(count)
    flat = 0
    for _ in range(10):
        trees = [random_tree(words(count), seed=int(rng.integers(1 << 30))) for _ in range(4)]
        trees += [flattened(tree, rng) for tree in trees[:3]]
        flat += sum(len(spans(tree)) < count - 1 for tree in trees)
        # Weights without ties, and integers, which often tie.
        for weights in (rng.uniform(size=len(trees)), rng.integers(0, 3, len(trees)), None):
            found = consensus(iter(trees), weights)
            given = np.ones(len(trees)) if weights is None else weights
            assert spans(found) - {(0, 1)} == elected(count_votes(trees, given), count)
            assert found.leaves() == words(count)
    assert flat or count < 3


def test_repeated_words_are_distinct():
    assert consensus([left_branching(["a", "a", "a"])]) == left_branching(["a", "a", "a"])


def rows(maximum):
    """Strategy for rows of distances: few distinct numbers, equal numbers, or any."""
    numbers = st.one_of(st.integers(0, 3).map(float), st.floats(-1, 1, width=32), st.just(0.25))
    return st.integers(1, maximum).flatmap(
        lambda count: st.lists(
            st.lists(numbers, min_size=count, max_size=count), min_size=1, max_size=4
        )
    )


@settings(deadline=None, max_examples=300)
@given(rows(24), st.sampled_from([("greedy",), ("binary",), METHODS]))
def test_votes_match_trees_of_rows(distances, methods):
    tokens = words(len(distances[0]))
    trees = [build_tree(row, tokens, method) for row in distances for method in methods]
    assert vote(distances, tokens, methods) == consensus(trees)
    weights = np.arange(1.0, len(distances) + 1)
    expected = consensus(trees, np.repeat(weights, len(methods)))
    assert vote(np.array(distances), tokens, methods, weights) == expected


@settings(deadline=None, max_examples=300)
@given(rows(24), st.sampled_from(METHODS))
def test_single_row_elects_its_own_tree(distances, method):
    tokens = words(len(distances[0]))
    assert vote(distances[:1], tokens, (method,)) == build_tree(distances[0], tokens, method)


def test_voting_methods_can_be_chosen():
    distances = [[0.9, 0.1, 0.8, 0.3, 0.2]]
    assert brackets(vote(distances, "abcde", ["greedy"])) == "(X a (X b (X c (X d e))))"
    assert brackets(vote(distances, "abcde", "binary")) == "(X (X a b) (X c (X d e)))"
    assert vote(distances, "abcde") == vote(distances, "abcde", ("greedy", "binary"))
    assert vote(distances * 2, "abcde", METHODS, [1, 0]) == vote(distances, "abcde")


def test_long_sentence():
    rng = np.random.default_rng(0)
    distances = rng.uniform(size=(3, 300))
    trees = [build_tree(row, words(300), method) for row in distances for method in METHODS]
    assert vote(distances, words(300)) == consensus(trees)
    # Enough words that rows are compared one by one.
    distances = rng.uniform(size=(2, 1100))
    assert vote(distances, words(1100), weights=[1, 0]) == vote(distances[:1], words(1100))


PAIR = [left_branching("abc"), right_branching("abc")]


@pytest.mark.parametrize(
    ("trees", "weights", "match"),
    [
        ([], None, "trees is empty: at least one tree must vote"),
        ([Tree("S", [])], None, "tokens is empty: a sentence without words has no tree"),
        ([*PAIR, balanced("abd")], None, "tree 3 has other words than tree 1"),
        (PAIR, [1], r"weights must have the shape \(2,\), one for each voter, got \(1,\)"),
        (PAIR, [1, math.nan], "weights must be finite and at least 0"),
    ],
)
def test_rejects_invalid_trees(trees, weights, match):
    with pytest.raises(ValueError, match=match):
        consensus(trees, weights)


@pytest.mark.parametrize(
    ("distances", "tokens", "options", "match"),
    [
        ([[]], [], {}, "tokens is empty: a sentence without words has no tree"),
        ([0.1, 0.2], "ab", {}, r"distances must have the shape \(rows, 2\).*got the shape \(2,\)"),
        ([[0.1, 0.2], [0.1, math.nan]], "ab", {}, r"distances\[1, 1\] must be finite, got nan"),
        (
            [[0.1, 0.2]],
            "ab",
            {"methods": ()},
            r"methods must be 'greedy', 'binary' or both, got \(\)",
        ),
        ([[0.1, 0.2]], "ab", {"weights": [1, 1]}, r"weights must have the shape \(1,\)"),
    ],
)
def test_rejects_invalid_distances(distances, tokens, options, match):
    with pytest.raises(ValueError, match=match):
        vote(distances, tokens, **options)
