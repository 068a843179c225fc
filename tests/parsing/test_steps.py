"""The pictures of greedy parsing show the steps of `build_tree`."""

from itertools import pairwise

import numpy as np
import pytest
from nltk import Tree

from helpers import commands
from helpers.commands import ROOT
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import build_tree

DOCS = ROOT / "docs"


pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def script():
    with commands.imported(DOCS, "draw_steps") as (module,):
        yield module


def spans(tree, start=0):
    """(span, spans of the children) of every constituent of a tree."""
    parts, place = [], start
    for child in tree:
        width = len(child.leaves()) if isinstance(child, Tree) else 1
        if isinstance(child, Tree):
            yield from spans(child, place)
        parts.append((place, place + width))
        place += width
    yield (start, place), parts


def edges(tree):
    return sorted((above, below) for above, parts in spans(tree) for below in parts)


def test_files_are_what_the_package_gives(script, monkeypatch, capsys, tmp_path):
    run = commands.runner(DOCS / "draw_steps.py", script, monkeypatch, capsys)
    assert run("--output", tmp_path) == (0, "", "")
    drawn = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in (DOCS / "images").glob("steps*.svg")}
    assert drawn == kept and len(drawn) == 7
    result = run("--output", tmp_path / "nowhere")
    commands.refused("draw_steps.py", result, str(tmp_path / "nowhere"))


def test_steps_are_those_of_the_package(script):
    scene = script.scene_of(Parser.load())
    distances = Parser.load().distances(script.SENTENCE)[13]
    np.testing.assert_allclose(scene.distances, distances, rtol=0, atol=6e-4)
    tree = build_tree(distances, scene.words)
    assert str(tree) == "(X (X shares (X of (X the bank))) (X fell (X in (X early trading))))"
    assert sorted(edge for step in scene.found for edge in step.branches) == edges(tree)
    assert [scene.words[step.place] for step in scene.found] == ["fell", "in", "of", "early", "the"]


@pytest.mark.parametrize("words", [2, 3, 5, 9, 14])
def test_steps_of_any_distances(script, words):
    rng = np.random.default_rng(words)
    for ties in (2, 5, 10**6):
        distances = rng.integers(ties, size=words) / ties
        found = script.steps(distances)
        tree = build_tree(distances, [f"w{place}" for place in range(words)])
        assert sorted(edge for step in found for edge in step.branches) == edges(tree)
        sizes = [distances[step.place] for step in found]
        assert all(one >= two for one, two in pairwise(sizes))
