"""Attachment scores, counted by hand and word by word."""

import random

import pytest

from keras_onlstm.dependencies import Attachment, Counts, DependencyTree, attachment, random_tree

pytestmark = pytest.mark.keras_free
WORDS = ["``", "cats", "sleep", "here", "."]
GOLD = DependencyTree(WORDS, [3, 3, 0, 3, 3], ["``", "NNS", "VBP", "RB", "."], list("pnrap"))
PREDICTED = DependencyTree(WORDS, [2, 3, 0, 2, 3], None, list("pxrap"))


def test_scores_by_hand():
    scores = attachment([GOLD], [PREDICTED])
    assert scores.all == Counts(words=5, heads=3, relations=2)
    assert scores.without_punctuation == Counts(words=3, heads=2, relations=1)
    assert (scores.all.uas, scores.all.las) == (3 / 5, 2 / 5)
    assert (scores.without_punctuation.uas, scores.without_punctuation.las) == (2 / 3, 1 / 3)


def test_punctuation_is_chosen_by_tag():
    assert attachment([GOLD], [PREDICTED], ["RB"]).without_punctuation == Counts(4, 3, 2)
    for tag, is_punctuation in (("''", 1), (",", 1), (":", 1), ("-LRB-", 0), ("$", 0), ("#", 0)):
        tree = DependencyTree(["a", "b"], [2, 0], [tag, "NN"])
        assert attachment([tree], [tree]).without_punctuation.words == 2 - is_punctuation


def test_trees_without_relations_have_no_las():
    bare = DependencyTree(WORDS, PREDICTED.heads)
    scores = attachment([GOLD], [bare])
    assert scores.all == Counts(5, 3, None) and scores.all.las is None
    assert (scores + attachment([GOLD], [PREDICTED])).all == Counts(10, 6, None)


def test_counts_add_up():
    draw = random.Random(0)
    pairs = []
    for seed in range(20):
        words = [f"w{i}" for i in range(draw.randint(1, 9))]
        tags = draw.choices(["NN", ".", ","], k=len(words))
        relations = [draw.choices("ab", k=len(words)) for _ in range(2)]
        pairs.append(
            (
                DependencyTree(words, random_tree(words, seed).heads, tags, relations[0]),
                DependencyTree(words, random_tree(words, seed + 100).heads, None, relations[1]),
            )
        )
    whole = attachment(*zip(*pairs, strict=True))
    assert whole == sum((attachment([a], [b]) for a, b in pairs), Attachment())
    expected = [0] * 6
    for gold, predicted in pairs:
        rows = zip(
            gold.heads, predicted.heads, gold.relations, predicted.relations, gold.tags, strict=True
        )
        for a, b, x, y, tag in rows:
            row = [1, a == b, a == b and x == y]
            expected = [
                n + m for n, m in zip(expected, row + [r * (tag == "NN") for r in row], strict=True)
            ]
    assert [*whole.all, *whole.without_punctuation] == expected
    assert 0 < expected[5] < expected[4] < expected[3] < expected[0]


def test_empty_attachment():
    assert attachment([], []) == Attachment()
    assert (Attachment().all.uas, Attachment().all.las) == (0.0, 0.0)
    with pytest.raises(TypeError):
        Attachment() + 1


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([GOLD, GOLD], [PREDICTED], "predicted must have 2 trees like gold, got 1"),
        ([GOLD], [DependencyTree(["a"], [0])], "sentence 1: word 1 must be '``', not 'a'"),
        (
            [GOLD, DependencyTree(["a", "b"], [2, 0], ["A", "B"])],
            [PREDICTED, DependencyTree(["a", "c"], [2, 0])],
            "sentence 2: word 2 must be 'b', not 'c'",
        ),
        ([PREDICTED], [GOLD], "sentence 1: the gold tree must have tags"),
    ],
)
def test_trees_that_cannot_be_compared_raise_an_error(gold, predicted, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        attachment(gold, predicted)
