"""Dependency trees from constituency trees: a treebank that has both, and sentences by hand."""

import itertools

import pytest
from nltk import Tree

from helpers.corpora import corpora_in
from keras_onlstm.datasets import dependency_treebank
from keras_onlstm.dependencies import attachment, from_constituents
from keras_onlstm.dependencies.constituents import HEAD_RULES

pytestmark = pytest.mark.keras_free


def test_treebank_has_the_heads_of_the_dependency_treebank(shared_data):
    """For all 94,084 words of all sentences."""
    from nltk.corpus import treebank

    with corpora_in(shared_data / "nltk_data"):
        gold = dependency_treebank.load()
        predicted = list(map(from_constituents, treebank.parsed_sents()))
    assert len(gold) == 3_914
    assert attachment(gold, predicted).all[:2] == (94_084, 94_084)
    assert predicted == gold  # tags, too


@pytest.mark.parametrize(
    ("text", "words", "heads"),
    [
        ("(NN cat)", "cat", [0]),
        ("(PP-TMP=1 (IN in) (NP (DT the) (NN end)))", "in the end", [0, 3, 1]),
        ("(PRN (-LRB- -LRB-) (NP (NN cat)) (-RRB- -RRB-))", "-LRB- cat -RRB-", [2, 0, 2]),
        ("(FRAG (, ,) (. .))", ", .", [0, 1]),
        ("(NEW (NN a) (NN b) (. .))", "a b .", [2, 0, 2]),
        (
            "(S (NP-SBJ (-NONE- *-1)) (VP (VB go) (SBAR (-NONE- 0) (S (-NONE- *T*)))) (. .))",
            "go .",
            [0, 1],
        ),
        (
            "( (S (NP (DT the) (NN cat)) (VP (MD will) (VP (VB see) (NP (NNP Kim)))) (. .)))",
            "the cat will see Kim .",
            [2, 3, 0, 3, 4, 3],
        ),
    ],
)
def test_conversion_by_hand(text, words, heads):
    tree = from_constituents(Tree.fromstring(text))
    assert tree.words == tuple(words.split())
    assert list(tree.heads) == heads
    assert tree.relations is None


def test_head_rules_decide_the_head():
    """Of two children that a rule names, the earlier one in it is the head, on either side."""
    for label, (side, groups) in HEAD_RULES.items():
        names = groups.split()
        for first, second in itertools.pairwise(names):
            for tag in first.split("|"):
                other = second.split("|")[0]
                assert _heads_of(label, tag, other) == [0, 1]
                assert _heads_of(label, other, tag) == [2, 0]
        if names and "|" in names[0]:  # within a group the side decides
            a, b = names[0].split("|")[:2]
            expected = [2, 0] if side == "right" else [0, 1]
            assert _heads_of(label, a, b) == _heads_of(label, b, a) == expected
        same = _heads_of(label, "XX", "XX")  # in no rule
        assert same == ([2, 0] if side == "right" else [0, 1])


def _heads_of(label, *tags):
    tree = Tree(label, [Tree(tag, [f"w{i}"]) for i, tag in enumerate(tags)])
    return list(from_constituents(tree).heads)


def test_deep_trees_are_converted():
    tree = Tree("NP", [Tree("NN", ["w"])])
    for _ in range(5000):
        tree = Tree("VP", [Tree("VB", ["v"]), tree])
    assert list(from_constituents(tree).heads) == list(range(5001))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            Tree("S", [Tree("NP", []), Tree("VB", ["go"])]),
            r"each node must be a tag or have children, got Tree\('NP', \[\]\)",
        ),
        (Tree("S", [Tree("VB", ["go"]), "now"]), "a tag or have children, got 'now'"),
        (Tree("S", ["go", "now"]), "the tag 'S' must be above one word, got 2"),
        (Tree("S", [Tree("-NONE-", ["*"])]), "tree must contain a word, got only traces under 'S'"),
    ],
)
def test_other_trees_raise_an_error(tree, message):
    with pytest.raises(ValueError, match=message):
        from_constituents(tree)
