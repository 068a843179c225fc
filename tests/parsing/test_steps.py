"""The pictures of how a tree follows from distances: their steps are those of `build_tree`."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from nltk import Tree

from helpers import commands
from helpers.commands import ROOT
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import build_tree
from keras_onlstm.parsing.pictures import BLUE, RED

DOCS = ROOT / "docs"
SVG = "{http://www.w3.org/2000/svg}"

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def script():
    with commands.imported(DOCS, "draw_steps") as (module,):
        yield module


@pytest.fixture(scope="module")
def scene(script):
    return script.scene_of(Parser.load())


@pytest.fixture(scope="module")
def pictures(script, scene):
    return [ElementTree.fromstring(text) for text in script.pictures(scene)]


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


def test_steps_are_those_of_the_package(script, scene):
    distances = Parser.load().distances(script.SENTENCE)[13]
    np.testing.assert_allclose(scene.distances, distances, rtol=0, atol=6e-4)
    tree = build_tree(distances, scene.words)
    assert str(tree) == "(X (X shares (X of (X the bank))) (X fell (X in (X early trading))))"
    assert sorted(edge for step in scene.found for edge in step.branches) == edges(tree)
    assert [scene.words[step.place] for step in scene.found] == ["fell", "in", "of", "early", "the"]
    for step in scene.found:
        own = build_tree(distances[step.start : step.end], scene.words[step.start : step.end])
        (_, parts) = list(spans(own, step.start))[-1]
        first = [below for above, below in step.branches if above == (step.start, step.end)]
        assert first == parts


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


def test_pictures_show_their_steps(scene, pictures):
    assert len(pictures) == len(scene.found) + 1
    done = 0
    for number, picture in enumerate(pictures):
        texts = [text.text for text in picture.findall(f"{SVG}text")]
        assert texts[:2] == list(scene.texts[number])
        assert texts.count("trading") == 2  # below its bar and in the tree
        bars = [bar for bar in picture.findall(f"{SVG}rect") if bar.get("width") == "18"]
        assert len(bars) == len(scene.words)
        marked = [bar for bar in bars if bar.get("fill") == RED]
        assert [bar.get("fill") for bar in bars].count(BLUE) == max(number - 1, 0)
        triangles = [path for path in picture.findall(f"{SVG}path") if "L" in path.get("d")]
        if number:
            step = scene.found[number - 1]
            (bar,) = marked
            assert float(bar.get("x")) + 9 == pytest.approx(scene.x(step.place), abs=0.06)
            done += 1 - sum(b - a > 1 for a, b in step.parts)
        else:
            assert marked == []
        assert len(triangles) == 1 - done


def test_heights_are_distances(scene, pictures):
    bars = [float(bar.get("height")) for bar in pictures[0].findall(f"{SVG}rect")[1:]]
    assert bars == pytest.approx(list(scene.distances * bars[4] / scene.distances[4]), abs=0.1)
    assert bars[4] > 70


def test_pictures_have_names(script, scene, pictures):
    for number, picture in enumerate(pictures):
        title, said = scene.texts[number]
        assert picture.get("role") == "img"
        assert picture.find(f"{SVG}title").text == title
        assert picture.find(f"{SVG}desc").text == said
    moving = ElementTree.fromstring(script.animation(scene))
    assert moving.find(f"{SVG}title").text == "From distances to a tree"
    for title, said in scene.texts[1:-1]:
        assert f"{title}: {said}." in moving.find(f"{SVG}desc").text


def test_another_model(script):
    class Small:
        members = (3, 3)

    class Parsing:
        model = Small()

    with pytest.raises(ValueError, match=r"has 2 models .* layer 2 of model 5: set MODEL"):
        script.scene_of(Parsing())
