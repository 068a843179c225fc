"""The JavaScript program beside the export scripts gives the trees that the package gives."""

import shutil
import subprocess

import pytest

from helpers import graphs
from helpers.commands import ROOT
from helpers.raw_texts import raw_texts
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets

PROGRAM = ROOT / "export" / "javascript" / "parse.mjs"
SENTENCES = [
    "The cat saw a dog",
    "dog",
    "75.3 N do n't ( unknown )",
    "the the a a the cat cat the",  # equal distances
    " ".join(graphs.VOCABULARY[1:] * 300),
]

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def run():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    packages = PROGRAM.parent / "node_modules"
    if not any((packages / name).is_dir() for name in ("onnxruntime-web", "onnxruntime-node")):
        pytest.skip(f"ONNX Runtime for Node is not installed: npm install in {PROGRAM.parent}")

    def run(*arguments, given=""):
        return subprocess.run(
            [node, str(PROGRAM), *map(str, arguments)],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "parser.onnx"
    graphs.write_onnx(path)
    return path


def test_trees_are_those_of_the_package(run, exported):
    parser = Parser.load(exported)
    wanted = [brackets(parser.parse(sentence)) for sentence in SENTENCES]
    by_input = run(exported, given="\n".join(SENTENCES) + "\n")
    assert (by_input.returncode, by_input.stderr) == (0, "")
    assert by_input.stdout.splitlines() == wanted
    by_arguments = run(exported, *SENTENCES[:2])
    assert by_arguments.stdout.splitlines() == wanted[:2]


def test_raw_text_has_the_trees_of_the_package(run, exported):
    texts = raw_texts()
    assert not any("\n" in text for text in texts)  # a line is a text
    wanted = [brackets(tree) for tree in Parser.load(exported).parse_many(texts)]
    assert len(wanted) > len(texts) and "(X Nobody answered)" in wanted
    found = run(exported, given="\n".join(texts))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines() == wanted


def test_texts_without_words_give_empty_lines(run, exported):
    found = run(exported, given="a cat\n\n...!\na dog\n")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines() == ["(X a cat)", "", "", "(X a dog)"]


def test_control_characters_are_refused(run, exported):
    found = run(exported, given="a cat\na d\x07og\n")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (
        "parse.mjs: error: line 2: character 4 is a control character. Take it out.\n"
    )


def test_several_models_vote(run, tmp_path):
    path = tmp_path / "several.onnx"
    graphs.write_onnx(path, about={**graphs.ABOUT, "members": [1, graphs.LAYERS - 1]})
    parser = Parser.load(path)
    assert parser.method == "votes"
    sentences = [*SENTENCES[:4], " ".join(graphs.VOCABULARY[1:] * 12)]
    found = run(path, *sentences)
    assert (found.returncode, found.stderr) == (0, "")
    wanted = [brackets(parser.parse(sentence)) for sentence in sentences]
    assert found.stdout.splitlines() == wanted


def test_mistakes_are_one_line(run, exported, tmp_path):
    content = exported.read_bytes()
    missing, short, empty = (tmp_path / name for name in ("none.onnx", "short.onnx", "empty.onnx"))
    short.write_bytes(content[:-100])
    empty.write_bytes(b"")
    bare, layer = tmp_path / "bare.onnx", tmp_path / "layer.onnx"
    graphs.write_onnx(bare, about=None)
    graphs.write_onnx(layer, about={"graph": "layer"})
    for arguments, message in (
        ([], "usage"),
        ([exported], "Nothing to parse"),
        ([exported, " ", "...!"], "Nothing to parse"),
        ([missing, "a cat"], f"{missing}: cannot be read (ENOENT)"),
        ([tmp_path, "a cat"], f"{tmp_path}: cannot be read (EISDIR)"),
        ([short, "a cat"], f"{short}: this is not a complete ONNX file of keras_onlstm"),
        ([empty, "a cat"], f"{empty}: this is not a complete ONNX file of keras_onlstm"),
        ([bare, "a cat"], f"{bare}: this is not a complete ONNX file of keras_onlstm"),
        ([layer, "a cat"], f"{layer}: this is not a parser with a vocabulary"),
    ):
        found = run(*arguments)
        assert (found.returncode, found.stdout) == (2, "")
        assert found.stderr.count("\n") == 1
        assert found.stderr.startswith("parse.mjs: error: ")
        assert message in found.stderr
