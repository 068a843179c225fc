"""The pictures of docs/draw_steps.py show how `build_tree` builds a tree."""

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
    """Yields the span of every constituent, and the spans of its children."""
    parts, end = [], start
    for child in tree:
        width = len(child.leaves()) if isinstance(child, Tree) else 1
        if isinstance(child, Tree):
            yield from spans(child, end)
        parts.append((end, end + width))
        end += width
    yield (start, end), parts


def edges(tree):
    return sorted((above, below) for above, parts in spans(tree) for below in parts)


def test_pictures_in_docs_are_up_to_date(script, monkeypatch, capsys, tmp_path):
    run = commands.runner(DOCS / "draw_steps.py", script, monkeypatch, capsys)
    assert run("--output", tmp_path) == (0, "", "")
    drawn = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    stored = {path.name: path.read_text("utf-8") for path in (DOCS / "images").glob("steps*.svg")}
    assert drawn == stored and len(drawn) == 7
    result = run("--output", tmp_path / "nowhere")
    commands.refused("draw_steps.py", result, str(tmp_path / "nowhere"))


def test_scene_matches_parser(script):
    scene = script.make_scene(Parser.load())
    distances = Parser.load().distances(script.SENTENCE)[13]
    np.testing.assert_allclose(scene.distances, distances, rtol=0, atol=6e-4)
    tree = build_tree(distances, scene.words)
    assert str(tree) == "(X (X shares (X of (X the bank))) (X fell (X in (X early trading))))"
    assert sorted(edge for step in scene.splits for edge in step.branches) == edges(tree)
    assert [scene.words[step.index] for step in scene.splits] == [
        "fell",
        "in",
        "of",
        "early",
        "the",
    ]


@pytest.mark.parametrize("words", [2, 3, 5, 9, 14])
def test_steps_match_greedy_tree(script, words):
    rng = np.random.default_rng(words)
    for ties in (2, 5, 10**6):
        distances = rng.integers(ties, size=words) / ties
        steps = script.steps(distances)
        tree = build_tree(distances, [f"w{index}" for index in range(words)])
        assert sorted(edge for step in steps for edge in step.branches) == edges(tree)
        sizes = [distances[step.index] for step in steps]
        assert all(size >= following for size, following in pairwise(sizes))
