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
from keras_onlstm.dependencies import DependencyTree, Edge, chain, random_tree

pytestmark = pytest.mark.keras_free


def random_heads(draw, count):
    """The heads of a tree that is seldom projective: words join it one by one."""
    order = draw.sample(range(1, count + 1), count)
    heads = [0] * count
    for number, place in enumerate(order[1:], 1):
        heads[place - 1] = order[draw.randrange(number)]
    return heads


def fan(count):
    return [count // 2 * (place != count // 2) for place in range(1, count + 1)]


def zigzag(count):
    """First word, last word, second word, last but one, ...: each the head of the next."""
    order = [place // 2 + 1 if place % 2 == 0 else count - place // 2 for place in range(count)]
    heads = [0] * count
    for above, place in itertools.pairwise(order):
        heads[place - 1] = above
    return heads


def steps_by_definition(heads):
    """(place, source, edge, left) in the order of section 2.2 of Zhang, Lu and Lapata 2016.

    Of every word by itself: the siblings nearer to its head are looked for.
    """
    places = range(1, len(heads) + 1)
    found = []
    for place in places:
        head = heads[place - 1]
        siblings = [one for one in places if heads[one - 1] == head]
        if place < head:
            nearer = [one for one in siblings if place < one < head]
            source, edge = (min(nearer), Edge.NX_LEFT) if nearer else (head, Edge.LEFT)
            left = ()
        else:
            nearer = [one for one in siblings if head < one < place]
            source, edge = (max(nearer), Edge.NX_RIGHT) if nearer else (head, Edge.RIGHT)
            left = () if nearer else tuple(one for one in siblings if one < head)
        found.append((place, source, edge, left))
    # Level by level; on a level by the head's turn, then as they are generated.
    turn = {0: ()}

    def turn_of(place):
        if place not in turn:
            head = heads[place - 1]
            side = place > head
            turn[place] = (*turn_of(head), (side, abs(place - head)))
        return turn[place]

    return sorted(found, key=lambda step: (len(turn_of(step[0])), turn_of(step[0])))


@pytest.mark.parametrize(("words", "count"), [(1, 1), (2, 2), (3, 7), (4, 30), (5, 143), (6, 728)])
def test_every_projective_tree(words, count):
    seen = set()
    for heads in projective_trees(words):
        tree = DependencyTree(named(words), heads, named(words)[::-1], list("rstuvw"[:words]))
        steps, paths = tree.steps(), tree.paths()
        assert steps == steps_by_definition(heads)
        for step in steps:
            before = paths[step.source - 1] if step.source else ()
            assert paths[step.place - 1] == (*before, (step.source, step.edge))
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


def test_steps_of_the_reference(tree_reference):
    names = ("words", "heads", "lengths", "bfs_step", "source", "edge")
    arrays = {name: tree_reference[name].tolist() for name in names}
    ends = list(itertools.accumulate(arrays["lengths"]))
    assert len(ends) == 12 and ends[-1] == 101
    for start, end in itertools.pairwise([0, *ends]):
        heads, expected = arrays["heads"][start:end], []
        tree = DependencyTree(list(map(str, arrays["words"][start:end])), heads)
        for number, step in enumerate(tree.steps(), 1):
            expected.append((step.place, number, step.source, step.edge))
        found = [arrays[name][start:end] for name in ("bfs_step", "source", "edge")]
        assert sorted(expected) == list(zip(range(1, len(tree) + 1), *found, strict=True))


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([[(0, 1)]], "1 paths for 2 words"),
        ([[(0, 1)], []], "word 2, 'b': its path does not begin at ROOT"),
        ([[(0, 1)], [(0, 1), (1, 7)]], "word 1, 'a' and word 2, 'b': exactly one"),
        ([[(0, 1)], [(0, 1), (1, 0)]], "word 2, 'b': no tree has its path and those before"),
    ],
)
def test_paths_of_no_tree(paths, message):
    with pytest.raises(ValueError, match=message):
        DependencyTree.from_paths(["a", "b"], paths)


def test_every_tree_of_five_words():
    """All 625 that have one word under ROOT: projective or not, and made so."""
    count = 0
    for heads in itertools.product(range(6), repeat=5):
        if is_tree(heads):
            count += 1
            tree = DependencyTree(named(5), heads)
            assert tree.is_projective == is_projective(heads)
            lifted, lifts = tree.projectivized()
            assert (list(lifted.heads), lifts) == projectivized(heads)
            for head, (left, right) in enumerate(tree.dependents()):
                below = tuple(place for place in range(1, 6) if heads[place - 1] == head)
                assert left + right == below and len(left) == sum(one < head for one in below)
            assert tree.depth == max(
                sum(is_below(heads, place, head) for head in range(1, 6)) for place in range(1, 6)
            )
    assert count == 625


def projectivized(heads):
    """Nivre and Nilsson's algorithm, written from its definition."""
    heads, lifts = list(heads), 0
    while True:
        lacking = [place for place in range(1, len(heads) + 1) if crossed_words(heads, place)]
        if not lacking:
            return heads, lifts
        place = min(lacking, key=lambda place: abs(place - heads[place - 1]))  # the first of equals
        heads[place - 1] = heads[heads[place - 1] - 1]
        lifts += 1


def test_projectivized():
    draw = random.Random(2)
    most = 0
    for _ in range(300):
        heads = random_heads(draw, draw.randint(2, 14))
        words = named(len(heads))
        tree = DependencyTree(words, heads, words, words)
        lifted, lifts = tree.projectivized()
        assert is_projective(lifted.heads)
        assert (list(lifted.heads), lifts) == projectivized(heads)
        assert (lifted.words, lifted.tags, lifted.relations) == (tree.words,) * 3
        assert (lifted is tree) == (not lifts) == tree.is_projective
        most = max(most, lifts)
    assert most > 5


@pytest.mark.parametrize("heads", [list(range(5000)), fan(5000), zigzag(5000)])
def test_5000_words(heads):
    start = time.process_time()
    tree = DependencyTree(named(5000), heads)
    assert tree.is_projective and tree.projectivized() == (tree, 0)
    assert tree.depth == (2 if heads.count(2500) > 2 else 5000)
    assert len(tree.steps()) == 5000
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert DependencyTree.from_paths(tree.words, tree.paths()) == tree
    assert time.process_time() - start < 20  # seconds, of a machine as slow as may be


def test_chain():
    assert chain(named(4)) == DependencyTree(named(4), [0, 1, 2, 3])
    assert {step.edge for step in chain(named(4)).steps()} == {Edge.RIGHT}


def test_random_trees():
    """All projective trees come up, and the head of the sentence is any word, equally often."""
    found = [random_tree(named(4), seed).heads for seed in range(2000)]
    assert set(found) == set(projective_trees(4))
    tops = [heads.index(0) for heads in found]
    assert all(abs(tops.count(place) - 500) < 80 for place in range(4))
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
    with pytest.raises(AttributeError):  # trees do not change
        tree.heads = (0, 1)


def test_equal_trees():
    arguments = (["a", "b"], [2, 0], ["A", "B"], ["x", "y"])
    tree = DependencyTree(*arguments)
    others = (["a", "c"], [0, 1], ["A", "C"], ["x", "z"])
    for place, other in enumerate(others):
        changed = DependencyTree(*arguments[:place], other, *arguments[place + 1 :])
        assert tree != changed and len({tree, changed}) == 2
    assert tree != DependencyTree(*arguments[:3]) and tree != "a b"
    again = DependencyTree(*map(tuple, arguments))
    assert tree == again and len({tree, again}) == 1
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(tree, protocol)) == tree


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ab", [2, 0]), "words must be a list of strings, not 'ab'"),
        ((["a", ""], [2, 0]), "words must be strings that are not empty, not ''"),
        ((["a", "b"], [0]), "1 heads for 2 words"),
        ((["a", "b"], [0, 1], ["A"]), "1 tags for 2 words"),
        ((["a", "b"], [0, 1], None, ["x", None]), "relations must be strings that are not empty"),
        ((["a", "b"], [0, -1]), "word 2, 'b': its head must be an integer from 0 to 2, not -1"),
        ((["a", "b"], [0, 1.0]), r"word 2, 'b': its head must be an integer .*, not 1\.0"),
        ((["a", "b"], [0, 0]), "word 1, 'a' and word 2, 'b': exactly one word must depend on ROOT"),
        ((["a", "b", "c"], [2, 3, 1]), "no word: exactly one word must depend on ROOT, not 0"),
        ((["a", "b", "c"], [0, 3, 2]), "word 2, 'b': its heads do not lead up to ROOT"),
        ((["a" * 99, "b"], [1, 0]), r"word 1, 'aaaaaaaaaaaa\.\.\.aaaaaaaaaaaaa': its heads do not"),
    ],
)
def test_what_is_no_tree(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        DependencyTree(*arguments)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_refusals_are_exactly_those_of_no_tree():
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
