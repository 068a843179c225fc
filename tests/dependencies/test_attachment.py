"""Attachment scores, counted by hand and word by word."""

import random

import pytest

from keras_onlstm.dependencies import Attachment, Counts, DependencyTree, attachment, random_tree

pytestmark = pytest.mark.keras_free
WORDS = ["``", "cats", "sleep", "here", "."]
GOLD = DependencyTree(WORDS, [3, 3, 0, 3, 3], ["``", "NNS", "VBP", "RB", "."], list("pnrap"))
FOUND = DependencyTree(WORDS, [2, 3, 0, 2, 3], None, list("pxrap"))


def test_by_hand():
    scores = attachment([GOLD], [FOUND])
    assert scores.all == Counts(words=5, heads=3, relations=2)
    assert scores.without_punctuation == Counts(words=3, heads=2, relations=1)
    assert (scores.all.uas, scores.all.las) == (3 / 5, 2 / 5)
    assert (scores.without_punctuation.uas, scores.without_punctuation.las) == (2 / 3, 1 / 3)


def test_what_is_punctuation():
    assert attachment([GOLD], [FOUND], ["RB"]).without_punctuation == Counts(4, 3, 2)
    for tag, left_out in (("''", 1), (",", 1), (":", 1), ("-LRB-", 0), ("$", 0), ("#", 0)):
        tree = DependencyTree(["a", "b"], [2, 0], [tag, "NN"])
        assert attachment([tree], [tree]).without_punctuation.words == 2 - left_out


def test_without_relations():
    bare = DependencyTree(WORDS, FOUND.heads)
    scores = attachment([GOLD], [bare])
    assert scores.all == Counts(5, 3, None) and scores.all.las is None
    assert (scores + attachment([GOLD], [FOUND])).all == Counts(10, 6, None)


def test_counts_add_up():
    draw = random.Random(0)
    pairs = []
    for seed in range(20):
        words = [f"w{place}" for place in range(draw.randint(1, 9))]
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
    for gold, found in pairs:
        rows = zip(gold.heads, found.heads, gold.relations, found.relations, gold.tags, strict=True)
        for a, b, x, y, tag in rows:
            row = [1, a == b, a == b and x == y]
            expected = [
                n + m for n, m in zip(expected, row + [r * (tag == "NN") for r in row], strict=True)
            ]
    assert [*whole.all, *whole.without_punctuation] == expected
    assert 0 < expected[5] < expected[4] < expected[3] < expected[0]


def test_no_words():
    assert attachment([], []) == Attachment()
    assert (Attachment().all.uas, Attachment().all.las) == (0.0, 0.0)
    with pytest.raises(TypeError):
        Attachment() + 1


@pytest.mark.parametrize(
    ("gold", "found", "message"),
    [
        ([GOLD, GOLD], [FOUND], "there are 2 gold trees and 1 found ones"),
        ([GOLD], [DependencyTree(["a"], [0])], "sentence 1: word 1 must be '``', not 'a'"),
        (
            [GOLD, DependencyTree(["a", "b"], [2, 0], ["A", "B"])],
            [FOUND, DependencyTree(["a", "c"], [2, 0])],
            "sentence 2: word 2 must be 'b', not 'c'",
        ),
        ([FOUND], [GOLD], "sentence 1: the gold tree has no tags"),
    ],
)
def test_what_cannot_be_compared(gold, found, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        attachment(gold, found)
