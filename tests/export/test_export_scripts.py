"""The export scripts: files, output, and one line for every error."""

import json

import numpy as np
import pytest

from helpers import commands
from helpers.commands import ROOT, contents, ours
from helpers.corpora import corpora_in
from keras_onlstm import runtime
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.datasets import treebank
from keras_onlstm.models import Ensemble, LanguageModel, PairClassifier
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit
from keras_onlstm.parser import Parser

pytestmark = pytest.mark.backend("tensorflow")

SCRIPTS = ("to_onnx", "to_saved_model", "to_tflite")
GRAPHS = ("parser", "language_model", "step", "tree_language_model", "classifier", "layer")


@pytest.fixture(scope="module")
def scripts():
    """The scripts as modules."""
    with commands.imported(ROOT / "export", *SCRIPTS) as modules:
        for module in modules:
            module.main = module.export.run
        yield dict(zip(SCRIPTS, modules, strict=True))


@pytest.fixture
def run(scripts, monkeypatch, capsys):
    """Runs a script by name: (exit status, stdout, stderr)."""

    def run(name, *arguments):
        path = ROOT / "export" / f"{name}.py"
        return commands.runner(path, scripts[name], monkeypatch, capsys)(*arguments)

    return run


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A directory of models: small.npz, lstm.keras, the run of a classifier, damaged ones."""
    directory = tmp_path_factory.mktemp("models")
    words = ["<eos>", "<unk>", "the", "cat"]
    model = LanguageModel(4, 8, 12, 2, 4, vocabulary=words, seed=0)
    model.build()
    save_eight_bit(model, directory / "small.npz", {"perplexity": 90.5})
    ensemble = Ensemble([model, LanguageModel(4, 8, 12, 2, 4, vocabulary=words, seed=1)])
    ensemble.build()
    save_eight_bit(ensemble, directory / "several.npz", [{"seed": 0}, {"seed": 1}])
    whole = (directory / "small.npz").read_bytes()
    (directory / "corrupted.npz").write_bytes(whole[:400] + b"\0" * 40 + whole[440:])
    lstm = LanguageModel(4, 8, 12, 1, 4, recurrent="lstm", name="other")
    lstm.build()
    lstm.save(directory / "lstm.keras")
    (directory / "truncated.keras").write_bytes((directory / "lstm.keras").read_bytes()[:3000])
    classifier = PairClassifier(len(logic.TOKENS) + 1, len(logic.LABELS), 8, 12, 4, name="logic")
    ids = np.ones((1, 2), "int32")
    classifier((ids, ids))
    (directory / "run").mkdir()
    classifier.save(directory / "run" / "best.keras")
    (directory / "run" / "config.json").write_text('{"seed": 7}')
    (directory / "empty").mkdir()
    (directory / "model.onnx").write_bytes(b"whatever")
    return directory


def test_debug_onnx(run, tmp_path):
    directory = tmp_path / "a" / "b"
    status, text, errors = run("to_onnx", "--preset", "debug", "--no-check", "--output", directory)
    assert (status, ours(errors)) == (0, [])
    assert contents(directory).keys() == {f"{name}.onnx" for name in GRAPHS}
    for name in GRAPHS:
        path = directory / f"{name}.onnx"
        assert runtime.load(path).metadata["graph"] == name
        assert f"{path}: {name}\n" in text
    lines = [line.split() for line in text.splitlines()]
    assert (
        text.count("not checked") == text.count("  took ") == len(GRAPHS)
        and "from Keras" not in text
    )
    assert lines[-1][:2] == ["Peak", "memory"] and 100 < float(lines[-1][-2]) < 100_000


def test_debug_models_are_checked(run, tmp_path):
    arguments = ["--preset", "debug", "--output", tmp_path, "--graph", "step", "--graph", "layer"]
    status, text, errors = run("to_onnx", *arguments)
    assert (status, ours(errors)) == (0, []) and "not checked" not in text
    lines = [line.split() for line in text.splitlines()]
    results = {kind: [line for line in lines if kind in line] for kind in ("difference", "latency")}
    assert [len(actual) for actual in results.values()] == [2, 2]
    assert all(0.0 < float(line[1]) < 1e-5 for line in results["difference"])
    assert all(0.0 < float(line[1]) < 1000 for line in results["latency"])


def test_debug_tflite(run, tmp_path):
    arguments = ["--preset", "debug", "--output", tmp_path, "--batch", 2]
    status, text, errors = run("to_tflite", *arguments, "--graph", "step")
    assert (status, ours(errors)) == (0, [])
    assert contents(tmp_path).keys() == {"step.tflite"}
    assert "not checked" not in text and text.count("from Keras") == 1
    step = runtime.load(tmp_path / "step.tflite")
    assert step.batch == 2 and step.metadata["vocabulary"][2] == "word0"


def test_one_or_all_models_of_a_file(run, models, tmp_path):
    several, _ = load_eight_bit(models / "several.npz")
    arguments = ["--model", models / "several.npz", "--graph", "parser", "--output", tmp_path]
    for number, model in enumerate(several.models, 1):
        status, _, errors = run("to_onnx", *arguments, "--no-check", "--model-index", number)
        assert (status, ours(errors)) == (0, [])
        parser = Parser.load(tmp_path / "parser.onnx")
        assert parser.metadata == {"seed": number - 1}
        expected = model.distances(["the cat"])[0]
        np.testing.assert_allclose(parser.distances("the cat"), expected, rtol=0, atol=1e-6)
    status, _, errors = run("to_onnx", *arguments, "--no-check")
    assert (status, ours(errors)) == (0, [])
    assert runtime.load(tmp_path / "parser.onnx").metadata["members"] == [2, 2]


def test_debug_saved_model(run, tmp_path):
    graphs = ["--graph", "step", "--graph", "classifier"]
    arguments = ["--preset", "debug", "--output", tmp_path, "--no-check"]
    status, text, errors = run("to_saved_model", *arguments, *graphs)
    assert (status, ours(errors)) == (0, []) and text.count("not checked") == 2
    assert {path.name for path in tmp_path.iterdir()} == {"language_model", "pair_classifier"}
    for directory in tmp_path.iterdir():
        about = json.loads((directory / "assets.extra" / "keras_onlstm.json").read_text())
        assert f"{directory}: {', '.join(about['graphs'])}\n" in text


def test_run_of_the_logic_example(run, models, tmp_path):
    status, _, errors = run(
        "to_onnx", "--model", models / "run", "--output", tmp_path, "--no-check"
    )
    assert (status, ours(errors)) == (0, [])
    about = runtime.load(tmp_path / "classifier.onnx").metadata
    assert about["labels"] == list(logic.LABELS) and about["about"] == {"seed": 7}
    assert about["vocabulary"] == ["", *logic.TOKENS] and about["quantize"] is None


def test_quantize_a_compact_model(run, models, tmp_path):
    arguments = ["--model", models / "small.npz", "--output", tmp_path, "--graph", "step"]
    status, _, errors = run("to_onnx", *arguments, "--quantize", "dynamic")
    assert (status, ours(errors)) == (0, [])
    about = runtime.load(tmp_path / "step.onnx").metadata
    assert about["quantize"] == "dynamic" and about["about"] == {"perplexity": 90.5}


SMALL, DEBUG = ["--model", "{models}/small.npz"], ["--preset", "debug"]
SEVERAL = ["--model", "{models}/several.npz"]
MISTAKES = [
    (SCRIPTS[:1], [*SMALL, "--graph", "tree"], ["argument --graph", "'tree'", "--help"]),
    (SCRIPTS, [*SMALL, "--graph", "layer"], ["--graph layer", "LanguageModel has parser, lang"]),
    (
        SCRIPTS[:1],
        [*SEVERAL, "--graph", "step"],
        ["--graph step: this Ensemble has parser", "--model-index N exports one of"],
    ),
    (
        SCRIPTS[:1],
        [*SEVERAL, "--model-index", "3"],
        ["--model-index 3: ", "several.npz has models 1 to 2"],
    ),
    (SCRIPTS[:1], ["--model", "{models}/none.keras"], ["none.keras: no such model"]),
    (
        SCRIPTS[:1],
        ["--model", "{models}/truncated.keras"],
        ["truncated.keras: not a complete model"],
    ),
    (SCRIPTS[:1], ["--model", "{models}/corrupted.npz"], ["corrupted.npz: not a complete model"]),
    (SCRIPTS[:1], ["--model", "{models}/model.onnx"], ["model.onnx: is an exported file"]),
    (SCRIPTS, ["--model", "{models}/lstm.keras"], ["the model other contains no ON-LSTM"]),
    (SCRIPTS, [*SMALL, *DEBUG], ["--preset cannot be combined with --model"]),
    (SCRIPTS[:1], ["--preset", "huge"], ["--preset", "'huge'"]),
    (["to_tflite"], [*SMALL, "--batch", "0"], ["--batch: 0 is not an integer, 1 or above"]),
    (["to_onnx"], [*SMALL, "--opset", "3"], ["opset must be an integer, from 18", "not 3"]),
    (["to_onnx"], [*SMALL, "--provider", "tpu"], ["--provider", "'tpu'"]),
    (["to_onnx", "to_tflite"], [*SMALL, "--quantize", "int8"], ["--quantize", "'int8'"]),
    (["to_saved_model"], [*SMALL, "--quantize", "dynamic"], ["--quantize"]),
]


@pytest.mark.parametrize(
    ("name", "arguments", "parts"),
    [(name, arguments, parts) for names, arguments, parts in MISTAKES for name in names],
)
def test_errors_write_nothing(run, models, tmp_path, name, arguments, parts):
    arguments = [argument.format(models=models) for argument in arguments]
    result = run(name, *arguments, "--output", tmp_path / "exported")
    commands.refused(f"{name}.py", result, *parts)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_output_that_is_a_file_raises(run, models, tmp_path, name):
    path = tmp_path / "exported"
    path.write_text("years of work")
    before = contents(tmp_path)
    result = run(name, "--model", models / "small.npz", "--output", path)
    commands.refused(f"{name}.py", result, f"{path}: cannot be written", "Choose another --output")
    assert contents(tmp_path) == before


def test_unavailable_provider_raises(run, models, tmp_path, monkeypatch):
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    (tmp_path / "step.onnx").write_text("an older one")
    before = contents(tmp_path)
    arguments = ["--model", models / "small.npz", "--graph", "step", "--output", tmp_path]
    result = run("to_onnx", *arguments, "--provider", "cuda")
    commands.refused("to_onnx.py", result, "ONNX Runtime has no CUDAExecutionProvider")
    assert contents(tmp_path) == before


@pytest.fixture(scope="module")
def sentences(shared_data):
    """128 sentences of the treebank, batches of one size: Keras compiles for each."""
    with corpora_in(shared_data / "nltk_data"):
        sentences = [sentence.tokens for sentence in treebank.load(max_length=14)]
    chosen = [words for words in sentences if len(words) >= 7][:128]
    assert len(chosen) == 128
    return chosen


@pytest.fixture(scope="module")
def trees(sentences):
    parser = Parser.load()
    return list(parser.parse_many(sentences)), parser.metadata


@pytest.mark.parametrize("name", ["to_onnx", "to_tflite"])
def test_default_model_keeps_its_trees(run, name, sentences, trees, tmp_path):
    options = ["--batch", 32] if name == "to_tflite" else []
    arguments = ["--graph", "parser", "--output", tmp_path, "--no-check", *options]
    status, _, errors = run(name, *arguments)
    assert (status, ours(errors)) == (0, [])
    (path,) = tmp_path.iterdir()
    assert path.suffix == f".{name.removeprefix('to_')}"
    parser = Parser.load(path)
    expected, about = trees
    assert list(parser.parse_many(sentences)) == expected
    assert parser.metadata == about is not None
