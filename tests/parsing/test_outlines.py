"""Trees as plain text, and with punctuation."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk import Tree

from keras_onlstm.parsing import conll, outline, random_tree, right_branching, with_punctuation

pytestmark = pytest.mark.keras_free

MARKS = (",", ".")
WORDS = st.text(st.sampled_from("abc.()\u4e2d\uff21\U0001f600\u200d\u0301"), min_size=1, max_size=4)
TREES = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, min_size=1, max_size=4).map(lambda c: Tree("X", c)),
    max_leaves=40,
).filter(lambda tree: isinstance(tree, Tree))


def read_back(text):
    """Parses an outline, in which each constituent has two columns."""
    top, path = Tree("X", []), []
    for line in text.split("\n"):
        depth = 0
        while line[2 * depth : 2 * depth + 2] != "─ ":
            if line[2 * depth + 1] in "┬─":
                node = Tree("X", [])
                (path[depth - 1] if depth else top).append(node)
                path[depth:] = [node]
            depth += 1
        path[depth - 1].append(line[2 * depth + 2 :])
    return top[0]


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_outline_represents_tree(tree):
    assert read_back(outline(tree)) == tree


def read_columns(text):
    """Parses a tree in CoNLL columns."""
    rows = [line.split("\t") for line in text.split("\n")]
    assert [row[0] for row in rows] == [str(number) for number in range(len(rows))]
    marks = "".join(mark.replace("*", f" {number} ") for number, _, mark in rows)
    return Tree.fromstring(marks, read_leaf=lambda number: rows[int(number)][1])


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_columns_represent_tree(tree):
    assert read_columns(conll(tree)) == tree


def test_columns_escape_special_words():
    tree = Tree("X", ["(*", ")"])
    assert read_columns(conll(tree)) == tree
    assert conll(Tree("X", ["a\tb", ""])) == "0\ta_b\t(X*\n1\t_\t*)"
    assert conll(Tree("A*(", ["a"])) == "0\ta\t(A_-LRB-*)"
    with pytest.raises(ValueError, match="a constituent without words"):
        conll(Tree("X", ["a", Tree("X", [])]))


def test_outline_of_many_and_special_words():
    words = [f"w{place}" for place in range(200)]
    for tree in (right_branching(words), random_tree(words, 3), Tree("X", words)):
        assert read_back(outline(tree)) == tree
    assert outline(Tree("X", ["a b", ""])) == "─┬─ a_b\n └─ _"
    assert outline(Tree("X", ["a"])) == "─── a"


@pytest.mark.parametrize("seed", range(20))
def test_punctuation_is_attached_as_high_as_possible(seed):
    draw = random.Random(seed)
    tokens = [draw.choice(("a", "b", "c", *MARKS)) for _ in range(12)] + ["a"]
    is_word = [token.isalpha() for token in tokens]
    tree = random_tree([token for token in tokens if token.isalpha()], seed)
    marked = with_punctuation(tree, tokens, is_word)
    assert marked.leaves() == tokens

    def bare(node):
        return Tree("X", [bare(c) if isinstance(c, Tree) else c for c in node if c not in MARKS])

    assert bare(marked) == tree
    for below in marked.subtrees():
        if below is not marked:
            assert below[0] not in MARKS and below[-1] not in MARKS


def test_rejects_punctuation_of_another_sentence():
    for tokens in (["a"], ["a", "b", "c"]):
        with pytest.raises(
            ValueError, match=f"marks {len(tokens)} tokens as words, but the tree has 2"
        ):
            with_punctuation(Tree("X", ["a", "b"]), tokens, [True] * len(tokens))
