"""How trees grow, against all projective trees; and what trees look like on the whole."""

import itertools

import numpy as np
import pytest

from helpers.corpora import corpora_in
from helpers.dependency_trees import named, projective_trees
from keras_onlstm.datasets import dependency_treebank
from keras_onlstm.dependencies import DependencyTree, Edge, chain, random_tree
from keras_onlstm.dependencies.growth import Growth, additions
from keras_onlstm.dependencies.statistics import statistics, statistics_rows

pytestmark = pytest.mark.keras_free

FIGURE = DependencyTree(named(7), [2, 3, 0, 6, 6, 3, 3])


def grown(tree, max_words=100):
    """The tree that the decisions of a tree lead to, and the growth."""
    made, growth, words = additions(tree).made, Growth(max_words), []
    for step in tree.steps():
        if growth.sprout is None:
            break
        words.append(tree.words[step.place - 1])
        growth.add(made[step.place])
    return growth.tree(words), growth


def test_decisions_of_a_tree_by_hand():
    found = additions(FIGURE)
    made = {0: "R", 1: "", 2: "L", 3: "LR", 4: "", 5: "l", 6: "Lr", 7: ""}
    is_open = {0: "", 1: "LRl", 2: "LRl", 3: "LR", 4: "LRl", 5: "LRl", 6: "LRr", 7: "LRr"}
    for expected, rows in ((made, found.made), (is_open, found.is_open)):
        for place, letters in expected.items():
            assert rows[place].tolist() == [letter in letters for letter in "LRlr"], place


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_grows_again_from_its_decisions(seed):
    tree = random_tree(named(seed + 1), seed)
    again, growth = grown(tree)
    assert again == tree and growth.sprout is None and not growth.is_cut
    assert len(growth) == len(tree)


def test_a_tree_grows_in_the_order_of_its_steps():
    growth, made = Growth(100), additions(FIGURE).made
    places = [0]
    for step in FIGURE.steps():
        sprout = growth.sprout
        assert (places[sprout.source], sprout.edge) == (step.source, step.edge)
        assert tuple(places[number] for number in sprout.left) == step.left
        places.append(step.place)
        growth.add(made[step.place])
    assert [places[number] for number in growth.order()] == list(range(1, 8))


def outcomes(decided, most):
    """The trees of at most so many words that follow from every outcome of the open decisions."""
    growth = Growth(most)
    for decisions in decided:
        growth.add(decisions)
    if growth.sprout is None:
        if not growth.is_cut:
            yield growth.tree(named(len(growth))).heads
        return
    choices = [(False, True) if is_open else (False,) for is_open in growth.is_open()]
    for decisions in itertools.product(*choices):
        yield from outcomes([*decided, decisions], most)


def test_every_outcome_is_one_tree_and_every_tree_is_one_outcome():
    # The words of one tree come in another order than those of the sentence: shapes are compared.
    found = sorted(outcomes([], 4))
    expected = sorted(heads for count in range(1, 5) for heads in projective_trees(count))
    assert found == expected


def test_what_is_not_open_counts_for_nothing():
    growth = Growth(10)
    growth.add([False, False, True, True])
    assert growth.sprout is None and growth.tree(["a"]).heads == (0,) and not growth.is_cut
    growth = Growth(10)
    growth.add([True, True, False, False])
    growth.add([False, False, False, True])
    growth.add([False, False, True, False])
    assert growth.sprout is None and growth.tree(["a", "b", "c"]).words == ("b", "a", "c")


def test_what_is_complete_takes_no_more():
    growth = Growth(10)
    growth.add([False] * 4)
    for use in (growth.is_open, lambda: growth.add([False] * 4)):
        with pytest.raises(ValueError, match=r"^the tree is complete\.$"):
            use()


def test_the_limit():
    for most in range(1, len(FIGURE) + 2):
        tree, growth = grown(FIGURE, most)
        kept = sorted(step.place for step in FIGURE.steps()[:most])
        assert tree.words == tuple(FIGURE.words[place - 1] for place in kept)
        assert growth.is_cut == (most < len(FIGURE)) and growth.sprout is None
    with pytest.raises(ValueError, match=r"^max_words must be an integer, 1 or above, not 0\.$"):
        Growth(0)


@pytest.mark.parametrize("heads", [range(5000), [0] + [1] * 4999, [*range(2, 5001), 0]])
def test_long_trees(heads):
    tree = DependencyTree(["a"] * 5000, heads)
    assert grown(tree, 5000)[0] == tree


def test_the_shares_of_the_treebank(shared_data):
    parts = ("train", "validation", "test")
    with corpora_in(shared_data / "nltk_data"):
        decided = [additions(tree) for part in parts for tree in dependency_treebank.load(part)]
    made = np.concatenate([one.made for one in decided])
    is_open = np.concatenate([one.is_open for one in decided])
    assert np.round(100 * (1 - made.mean(0)), 1).tolist() == [72.8, 64.1, 80.2, 86.9]
    left, right = (
        1 - made[is_open[:, edge], edge].mean() for edge in (Edge.NX_LEFT, Edge.NX_RIGHT)
    )
    # Of what stands under ROOT, never followed by another, the second does not know.
    assert round(100 * left, 1) == 57.8 and round(100 * right, 1) == 71.0


def test_statistics_by_hand():
    found = statistics([FIGURE, chain(["a"] * 3)])
    assert found["words"] == (5.0, 3, 3, 7, 7)
    assert found["depth"] == (3.0, 3, 3, 3, 3)
    assert found["left"] == (0.4, 0, 0, 1, 2)  # of 10 words 1, 1 and 2
    assert found["right"] == (0.4, 0, 0, 1, 2)
    # 1, 1, 2, 1, 3, 4 of the one, 1, 1 of the other
    assert found["distance"] == (1.75, 1, 1, 4, 4)


def test_statistics_of_one_word_and_of_none():
    found = statistics([chain(["a"])])
    assert found["distance"] == (0.0, 0, 0, 0, 0) and found["words"].mean == 1.0
    with pytest.raises(ValueError, match=r"^there is no tree\.$"):
        statistics([])


def test_rows_of_statistics():
    rows = statistics_rows({"one": [FIGURE], "other": iter([chain(["a"] * 3)])})
    assert rows[0] == ["words of a sentence", "7.00 (7 7 7; 7)", "3.00 (3 3 3; 3)"]
    assert rows[4] == ["words from a word to its head", "2.00 (1 1 4; 4)", "1.00 (1 1 1; 1)"]
