"""Dependency trees, their paths and steps: by brute force, and against the reference file."""

import itertools
import pickle
import random
import time

import numpy as np
import pytest

from helpers.corpora import corpora_in
from helpers.dependency_trees import (
    crossed_words,
    is_below,
    is_projective,
    is_tree,
    named,
    projective_trees,
)
from keras_onlstm.datasets import dependency_treebank
from keras_onlstm.datasets.sentence_completion import Question
from keras_onlstm.dependencies import DependencyTree, Edge, attachment, chain, random_tree
from keras_onlstm.dependencies.statistics import statistics

pytestmark = pytest.mark.keras_free


def random_heads(draw, count):
    """The heads of a tree that is seldom projective: words join it one by one."""
    order = draw.sample(range(1, count + 1), count)
    heads = [0] * count
    for number, position in enumerate(order[1:], 1):
        heads[position - 1] = order[draw.randrange(number)]
    return heads


def fan(count):
    return [count // 2 * (position != count // 2) for position in range(1, count + 1)]


def zigzag(count):
    """First word, last word, second word, last but one, ...: each the head of the next."""
    order = [i // 2 + 1 if i % 2 == 0 else count - i // 2 for i in range(count)]
    heads = [0] * count
    for head, position in itertools.pairwise(order):
        heads[position - 1] = head
    return heads


def steps_by_definition(heads):
    """(position, source, edge, left) in the order of section 2.2 of Zhang, Lu and Lapata 2016.

    Each word is treated separately, with the siblings nearer to its head.
    """
    positions = range(1, len(heads) + 1)
    steps = []
    for position in positions:
        head = heads[position - 1]
        siblings = [p for p in positions if heads[p - 1] == head]
        if position < head:
            nearer = [p for p in siblings if position < p < head]
            source, edge = (min(nearer), Edge.NX_LEFT) if nearer else (head, Edge.LEFT)
            left = ()
        else:
            nearer = [p for p in siblings if head < p < position]
            source, edge = (max(nearer), Edge.NX_RIGHT) if nearer else (head, Edge.RIGHT)
            left = () if nearer else tuple(p for p in siblings if p < head)
        steps.append((position, source, edge, left))
    # Level by level; within a level in the order of the heads, then of the dependents.
    keys = {0: ()}

    def key(position):
        if position not in keys:
            head = heads[position - 1]
            side = position > head
            keys[position] = (*key(head), (side, abs(position - head)))
        return keys[position]

    return sorted(steps, key=lambda step: (len(key(step[0])), key(step[0])))


@pytest.mark.parametrize(("words", "count"), [(1, 1), (2, 2), (3, 7), (4, 30), (5, 143), (6, 728)])
def test_steps_and_paths_of_every_projective_tree(words, count):
    seen = set()
    for heads in projective_trees(words):
        tree = DependencyTree(named(words), heads, named(words)[::-1], list("rstuvw"[:words]))
        steps, paths = tree.steps(), tree.paths()
        assert steps == steps_by_definition(heads)
        for step in steps:
            before = paths[step.source - 1] if step.source else ()
            assert paths[step.position - 1] == (*before, (step.source, step.edge))
        assert DependencyTree.from_paths(tree.words, paths, tree.tags, tree.relations) == tree
        as_lists = [[[source, int(edge)] for source, edge in path] for path in paths]
        assert DependencyTree.from_paths(tree.words, as_lists).heads == heads
        seen.add(tuple(paths))
    assert len(seen) == count  # no two trees have the same paths


def test_paths_of_the_dependency_treebank(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        trees = dependency_treebank.load()
    assert len(trees) == 3_914
    for tree in trees:
        assert DependencyTree.from_paths(tree.words, tree.paths(), tree.tags) == tree
    edges = [step.edge for tree in trees for step in tree.steps()]
    share = [round(100 * edges.count(edge) / len(edges), 1) for edge in Edge]
    assert share == [28.3, 37.4, 20.6, 13.6]
    assert max(len(path) for tree in trees for path in tree.paths()) == 45
    left = [len(step.left) for tree in trees for step in tree.steps() if step.edge == Edge.RIGHT]
    assert (len(left), sum(map(bool, left)), max(left)) == (35_224, 13_615, 18)


def test_steps_match_the_reference_file(tree_reference):
    names = ("words", "heads", "lengths", "bfs_step", "source", "edge")
    arrays = {name: tree_reference[name].tolist() for name in names}
    ends = list(itertools.accumulate(arrays["lengths"]))
    assert len(ends) == 12 and ends[-1] == 101
    for start, end in itertools.pairwise([0, *ends]):
        heads, expected = arrays["heads"][start:end], []
        tree = DependencyTree(list(map(str, arrays["words"][start:end])), heads)
        for number, step in enumerate(tree.steps(), 1):
            expected.append((step.position, number, step.source, step.edge))
        reference = [arrays[name][start:end] for name in ("bfs_step", "source", "edge")]
        assert sorted(expected) == list(zip(range(1, len(tree) + 1), *reference, strict=True))


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([[(0, 1)]], "paths must have 2 items, one for each word, got 1"),
        ([[(0, 1)], []], "word 2, 'b': its path must begin at ROOT"),
        (
            [[(0, 1)], [(0, 1), (1, 7)]],
            "exactly one word must depend on ROOT, got word 1, 'a' and word 2, 'b'",
        ),
        ([[(0, 1)], [(0, 1), (1, 0)]], "word 2, 'b': its path contradicts the others"),
    ],
)
def test_paths_that_contradict_raise_an_error(paths, message):
    with pytest.raises(ValueError, match=message):
        DependencyTree.from_paths(["a", "b"], paths)


def test_every_tree_of_five_words():
    """All 625 that have one word under ROOT."""
    count = 0
    for heads in itertools.product(range(6), repeat=5):
        if is_tree(heads):
            count += 1
            tree = DependencyTree(named(5), heads)
            assert tree.is_projective == is_projective(heads)
            projective, lifts = tree.projectivize()
            assert (list(projective.heads), lifts) == projectivize(heads)
            for head, (left, right) in enumerate(tree.dependents()):
                dependents = tuple(p for p in range(1, 6) if heads[p - 1] == head)
                assert left + right == dependents
                assert len(left) == sum(p < head for p in dependents)
            assert tree.depth == max(
                sum(is_below(heads, p, head) for head in range(1, 6)) for p in range(1, 6)
            )
    assert count == 625


def projectivize(heads):
    """Nivre and Nilsson's algorithm, written from its definition."""
    heads, lifts = list(heads), 0
    while True:
        crossing = [p for p in range(1, len(heads) + 1) if crossed_words(heads, p)]
        if not crossing:
            return heads, lifts
        position = min(crossing, key=lambda p: abs(p - heads[p - 1]))  # the first of equals
        heads[position - 1] = heads[heads[position - 1] - 1]
        lifts += 1


def test_projectivize_matches_its_definition():
    draw = random.Random(2)
    max_lifts = 0
    for _ in range(300):
        heads = random_heads(draw, draw.randint(2, 14))
        words = named(len(heads))
        tree = DependencyTree(words, heads, words, words)
        projective, lifts = tree.projectivize()
        assert is_projective(projective.heads)
        assert (list(projective.heads), lifts) == projectivize(heads)
        assert (projective.words, projective.tags, projective.relations) == (tree.words,) * 3
        assert (projective is tree) == (not lifts) == tree.is_projective
        max_lifts = max(max_lifts, lifts)
    assert max_lifts > 5


@pytest.mark.parametrize("heads", [list(range(5000)), fan(5000), zigzag(5000)])
def test_5000_words_take_linear_time(heads):
    start = time.process_time()
    tree = DependencyTree(named(5000), heads)
    assert tree.is_projective and tree.projectivize() == (tree, 0)
    assert tree.depth == (2 if heads.count(2500) > 2 else 5000)
    assert len(tree.steps()) == 5000
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert DependencyTree.from_paths(tree.words, tree.paths()) == tree
    assert time.process_time() - start < 20  # seconds, on a slow machine


def test_chain():
    assert chain(named(4)) == DependencyTree(named(4), [0, 1, 2, 3])
    assert {step.edge for step in chain(named(4)).steps()} == {Edge.RIGHT}


def test_random_trees():
    """All projective trees are drawn, and all words are equally often the head of the sentence."""
    drawn = [random_tree(named(4), seed).heads for seed in range(2000)]
    assert set(drawn) == set(projective_trees(4))
    tops = [heads.index(0) for heads in drawn]
    assert all(abs(tops.count(index) - 500) < 80 for index in range(4))
    assert random_tree(named(9), seed=3) == random_tree(named(9), seed=3)
    assert random_tree(named(9), seed=3) != random_tree(named(9), seed=4)
    with pytest.raises(ValueError, match="seed must be an integer, 0 or above, not -1"):
        random_tree(["a"], seed=-1)
    assert random_tree(named(5000)).is_projective


def test_attributes():
    tree = DependencyTree(("a", "b"), np.array([2, 0], "int32"), ["A", "B"], ["x", "y"])
    assert (tree.words, tree.heads) == (("a", "b"), (2, 0))
    assert (tree.tags, tree.relations) == (("A", "B"), ("x", "y"))
    assert all(type(head) is int for head in tree.heads)
    assert eval(repr(tree)) == tree
    assert DependencyTree(["a"], [0]).tags is None
    with pytest.raises(AttributeError):  # trees are immutable
        tree.heads = (0, 1)


def test_equal_trees():
    arguments = (["a", "b"], [2, 0], ["A", "B"], ["x", "y"])
    tree = DependencyTree(*arguments)
    others = (["a", "c"], [0, 1], ["A", "C"], ["x", "z"])
    for index, other in enumerate(others):
        changed = DependencyTree(*arguments[:index], other, *arguments[index + 1 :])
        assert tree != changed and len({tree, changed}) == 2
    assert tree != DependencyTree(*arguments[:3]) and tree != "a b"
    again = DependencyTree(*map(tuple, arguments))
    assert tree == again and len({tree, again}) == 1
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(tree, protocol)) == tree


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ab", [2, 0]), "words must be a list of strings, got 'ab'"),
        ((["a", ""], [2, 0]), "words must be nonempty strings, got ''"),
        ((["a", "b"], [0]), "heads must have 2 items, one for each word, got 1"),
        ((["a", "b"], [0, 1], ["A"]), "tags must have 2 items, one for each word, got 1"),
        ((["a", "b"], [0, 1], None, ["x", None]), "relations must be nonempty strings, got None"),
        ((["a", "b"], [0, -1]), "word 2, 'b': its head must be an integer from 0 to 2, got -1"),
        ((["a", "b"], [0, 1.0]), r"word 2, 'b': its head must be an integer .*, got 1\.0"),
        (
            (["a", "b"], [0, 0]),
            "exactly one word must depend on ROOT, got word 1, 'a' and word 2, 'b'",
        ),
        ((["a", "b", "c"], [2, 3, 1]), "exactly one word must depend on ROOT, got no word"),
        ((["a", "b", "c"], [0, 3, 2]), "word 2, 'b': its heads form a cycle"),
        ((["a" * 99, "b"], [1, 0]), r"word 1, 'aaaaaaaaaaaa\.\.\.aaaaaaaaaaaaa': its heads form a"),
    ],
)
def test_heads_that_are_not_a_tree_raise_an_error(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        DependencyTree(*arguments)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_exactly_the_trees_are_accepted():
    for count in range(1, 5):
        trees = 0
        for heads in itertools.product(range(count + 1), repeat=count):
            try:
                DependencyTree(named(count), heads)
                trees += 1
                assert is_tree(heads)
            except ValueError:
                assert not is_tree(heads)
        assert trees == count ** (count - 1)  # Cayley's number of rooted trees


def test_former_names_warn():
    tree = chain(["a", "b"])
    with pytest.warns(DeprecationWarning, match=r"Step\.place is deprecated\. Use position"):
        assert tree.steps()[0].place == 1
    with pytest.warns(DeprecationWarning, match="Use projectivize"):
        assert tree.projectivized() == tree.projectivize()
    with pytest.warns(DeprecationWarning, match=r"found= is deprecated\. Use predicted="):
        assert attachment([], found=[]) == attachment([], predicted=[])
    with pytest.warns(DeprecationWarning, match="Use maximum"):
        assert statistics([tree])["words"].greatest == 2
    question = Question((), 3, (), 0)
    with pytest.warns(DeprecationWarning, match="Use position"):
        assert question.place == question.position == 3
