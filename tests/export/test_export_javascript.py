"""The JavaScript parser gives the same trees as the package."""

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

    def run(*arguments, inputs=""):
        return subprocess.run(
            [node, str(PROGRAM), *map(str, arguments)],
            input=inputs,
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


def test_trees_match_the_package(run, exported):
    parser = Parser.load(exported)
    expected = [brackets(parser.parse(sentence)) for sentence in SENTENCES]
    by_input = run(exported, inputs="\n".join(SENTENCES) + "\n")
    assert (by_input.returncode, by_input.stderr) == (0, "")
    assert by_input.stdout.splitlines() == expected
    by_arguments = run(exported, *SENTENCES[:2])
    assert by_arguments.stdout.splitlines() == expected[:2]


def test_trees_of_raw_text_match_the_package(run, exported):
    texts = raw_texts()
    assert not any("\n" in text for text in texts)  # each line is one text
    expected = [brackets(tree) for tree in Parser.load(exported).parse_many(texts)]
    assert len(expected) > len(texts) and "(X Nobody answered)" in expected
    result = run(exported, inputs="\n".join(texts))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == expected


def test_texts_without_words_give_empty_lines(run, exported):
    result = run(exported, inputs="a cat\n\n...!\na dog\n")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["(X a cat)", "", "", "(X a dog)"]


def test_control_characters_raise(run, exported):
    result = run(exported, inputs="a cat\na d\x07og\n")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "parse.mjs: error: line 2: character 4 is a control character. Remove it.\n"
    )


def test_several_models_vote(run, tmp_path):
    path = tmp_path / "several.onnx"
    graphs.write_onnx(path, about={**graphs.ABOUT, "members": [1, graphs.LAYERS - 1]})
    parser = Parser.load(path)
    assert parser.method == "votes"
    sentences = [*SENTENCES[:4], " ".join(graphs.VOCABULARY[1:] * 12)]
    result = run(path, *sentences)
    assert (result.returncode, result.stderr) == (0, "")
    expected = [brackets(parser.parse(sentence)) for sentence in sentences]
    assert result.stdout.splitlines() == expected


def test_errors_are_one_line(run, exported, tmp_path):
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
        result = run(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("parse.mjs: error: ")
        assert message in result.stderr
