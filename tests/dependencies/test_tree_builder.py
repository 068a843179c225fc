"""The tree builder, against all projective trees; and statistics of trees."""

import itertools

import numpy as np
import pytest

from helpers.corpora import corpora_in
from helpers.dependency_trees import named, projective_trees
from keras_onlstm.datasets import dependency_treebank
from keras_onlstm.dependencies import DependencyTree, Edge, chain, random_tree
from keras_onlstm.dependencies.statistics import statistics, statistics_rows
from keras_onlstm.dependencies.tree_builder import TreeBuilder, additions, open_decisions

pytestmark = pytest.mark.keras_free

FIGURE = DependencyTree(named(7), [2, 3, 0, 6, 6, 3, 3])


def rebuild(tree, max_words=100):
    """The tree that the decisions of a tree lead to, and the builder."""
    labels, builder, words = additions(tree).labels, TreeBuilder(max_words), []
    for step in tree.steps():
        if builder.next_step is None:
            break
        words.append(tree.words[step.position - 1])
        builder.add(labels[step.position])
    return builder.tree(words), builder


def test_decisions_of_a_tree_by_hand():
    decisions = additions(FIGURE)
    labels = {0: "R", 1: "", 2: "L", 3: "LR", 4: "", 5: "l", 6: "Lr", 7: ""}
    is_open = {0: "", 1: "LRl", 2: "LRl", 3: "LR", 4: "LRl", 5: "LRl", 6: "LRr", 7: "LRr"}
    for expected, rows in ((labels, decisions.labels), (is_open, decisions.is_open)):
        for position, letters in expected.items():
            assert rows[position].tolist() == [letter in letters for letter in "LRlr"], position


@pytest.mark.parametrize("seed", range(20))
def test_decisions_of_a_tree_rebuild_it(seed):
    tree = random_tree(named(seed + 1), seed)
    rebuilt, builder = rebuild(tree)
    assert rebuilt == tree and builder.next_step is None and not builder.is_cut
    assert len(builder) == len(tree)


def test_builder_follows_the_steps_of_a_tree():
    builder, labels = TreeBuilder(100), additions(FIGURE).labels
    positions = [0]
    for step in FIGURE.steps():
        next_step = builder.next_step
        assert next_step.position == len(positions)
        assert (positions[next_step.source], next_step.edge) == (step.source, step.edge)
        assert tuple(positions[number] for number in next_step.left) == step.left
        positions.append(step.position)
        builder.add(labels[step.position])
    assert [positions[number] for number in builder.order()] == list(range(1, 8))


def outcomes(decided, max_words):
    """The trees of at most `max_words` words, for every outcome of the open decisions."""
    builder = TreeBuilder(max_words)
    for decisions in decided:
        builder.add(decisions)
    if builder.next_step is None:
        if not builder.is_cut:
            yield builder.tree(named(len(builder))).heads
        return
    is_open_next = open_decisions(builder.next_step.source, builder.next_step.edge)
    choices = [(False, True) if is_open else (False,) for is_open in is_open_next]
    for decisions in itertools.product(*choices):
        yield from outcomes([*decided, decisions], max_words)


def test_every_outcome_is_one_tree_and_every_tree_is_one_outcome():
    # Only heads are compared, because words are added in another order than that of the sentence.
    trees = sorted(outcomes([], 4))
    expected = sorted(heads for count in range(1, 5) for heads in projective_trees(count))
    assert trees == expected


def test_decisions_that_are_not_open_are_ignored():
    builder = TreeBuilder(10)
    builder.add([False, False, True, True])
    assert builder.next_step is None and builder.tree(["a"]).heads == (0,) and not builder.is_cut
    builder = TreeBuilder(10)
    builder.add([True, True, False, False])
    builder.add([False, False, False, True])
    builder.add([False, False, True, False])
    assert builder.next_step is None and builder.tree(["a", "b", "c"]).words == ("b", "a", "c")


def test_complete_tree_accepts_no_words():
    builder = TreeBuilder(10)
    builder.add([False] * 4)
    with pytest.raises(ValueError, match=r"^the tree is complete\.$"):
        builder.add([False] * 4)


def test_max_words_cuts_the_tree():
    for max_words in range(1, len(FIGURE) + 2):
        tree, builder = rebuild(FIGURE, max_words)
        positions = sorted(step.position for step in FIGURE.steps()[:max_words])
        assert tree.words == tuple(FIGURE.words[position - 1] for position in positions)
        assert builder.is_cut == (max_words < len(FIGURE)) and builder.next_step is None
    with pytest.raises(ValueError, match=r"^max_words must be an integer, 1 or above, not 0\.$"):
        TreeBuilder(0)


@pytest.mark.parametrize("heads", [range(5000), [0] + [1] * 4999, [*range(2, 5001), 0]])
def test_long_trees_are_rebuilt(heads):
    tree = DependencyTree(["a"] * 5000, heads)
    assert rebuild(tree, 5000)[0] == tree


def test_shares_of_decisions_in_the_treebank(shared_data):
    parts = ("train", "validation", "test")
    with corpora_in(shared_data / "nltk_data"):
        decided = [additions(tree) for part in parts for tree in dependency_treebank.load(part)]
    labels = np.concatenate([decisions.labels for decisions in decided])
    is_open = np.concatenate([decisions.is_open for decisions in decided])
    assert np.round(100 * (1 - labels.mean(0)), 1).tolist() == [72.8, 64.1, 80.2, 86.9]
    left, right = (
        1 - labels[is_open[:, edge], edge].mean() for edge in (Edge.NX_LEFT, Edge.NX_RIGHT)
    )
    # The second ignores words under ROOT, after which no other is added.
    assert round(100 * left, 1) == 57.8 and round(100 * right, 1) == 71.0


def test_statistics_by_hand():
    summaries = statistics([FIGURE, chain(["a"] * 3)])
    assert summaries["words"] == (5.0, 3, 3, 7, 7)
    assert summaries["depth"] == (3.0, 3, 3, 3, 3)
    assert summaries["left"] == (0.4, 0, 0, 1, 2)  # of 10 words: 1, 1 and 2
    assert summaries["right"] == (0.4, 0, 0, 1, 2)
    # 1, 1, 2, 1, 3, 4 in the first tree, 1, 1 in the second
    assert summaries["distance"] == (1.75, 1, 1, 4, 4)


def test_statistics_of_one_word_and_without_trees():
    summaries = statistics([chain(["a"])])
    assert summaries["distance"] == (0.0, 0, 0, 0, 0) and summaries["words"].mean == 1.0
    with pytest.raises(ValueError, match=r"^trees must not be empty\.$"):
        statistics([])


def test_statistics_rows():
    rows = statistics_rows({"one": [FIGURE], "other": iter([chain(["a"] * 3)])})
    assert rows[0] == ["words of a sentence", "7.00 (7 7 7; 7)", "3.00 (3 3 3; 3)"]
    assert rows[4] == ["words from a word to its head", "2.00 (1 1 4; 4)", "1.00 (1 1 1; 1)"]
