"""Errors before an export, and checks of the exported file, in every format."""

import os
import resource
import sys

import keras
import numpy as np
import pytest

from helpers import exports
from helpers.checks import assert_close
from helpers.commands import contents
from keras_onlstm import ONLSTM
from keras_onlstm.exporting import Difference, Exported, checks, to_onnx, to_saved_model, to_tflite
from keras_onlstm.exporting.checks import describe
from keras_onlstm.exporting.graphs import Input, ModelGraph, draw_inputs, make_graph

pytestmark = pytest.mark.backend("tensorflow")

FORMATS = {"model.onnx": to_onnx, "model.tflite": to_tflite, "model": to_saved_model}
FILES = {name: export for name, export in FORMATS.items() if "." in name}


@pytest.fixture(scope="module")
def model():
    x = keras.Input((1, 3), name="x")  # one step converts fastest
    return exports.with_weights(keras.Model(x, ONLSTM(4)(x)))


@pytest.mark.parametrize("name", FORMATS)
def test_other_backends_raise(name, model, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"runs on jax\. Save.*KERAS_BACKEND=tensorflow"):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("other", ["model", "model.keras"])
def test_wrong_file_extension_raises(name, other, model, tmp_path):
    ending = os.path.splitext(name)[1]
    with pytest.raises(ValueError, match=rf"{other}: the name of the file must end in \{ending}"):
        FORMATS[name](model, tmp_path / other)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FORMATS)
def test_missing_and_read_only_folders_raise(name, model, tmp_path, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=r"missing: this folder does not exist\. Create it first"
    ):
        FORMATS[name](model, tmp_path / "missing" / name)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(PermissionError, match=rf"{tmp_path}: this folder is not writable"):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FILES)
def test_directory_at_the_path_of_the_file_raises(name, model, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    with pytest.raises(
        IsADirectoryError, match=rf"{name}: is a directory\. Choose the name of a file"
    ):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("quantize", ["int8", True])
def test_unknown_quantization_raises(name, quantize, model, tmp_path):
    known = "'dynamic', 'float16' or 'weights'" if "onnx" in name else "'dynamic' or 'float16'"
    with pytest.raises(ValueError, match=f"None, {known}, got {quantize!r}"):
        FORMATS[name](model, tmp_path / name, quantize=quantize)


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_graph_or_model_raises_before_writing(name, model, tmp_path):
    with pytest.raises(
        ValueError, match="graph must be one of layer for a Functional, got 'parser'"
    ):
        FORMATS[name](model, tmp_path / name, "parser")
    with pytest.raises(TypeError, match="must be a Keras model"):
        FORMATS[name](ONLSTM(4), tmp_path / name)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "module", "options"),
    [
        ("model.onnx", "tf2onnx", {}),
        ("model.onnx", "onnxruntime", {}),
        ("model.onnx", "onnxruntime", {"quantize": "dynamic"}),
        ("model.tflite", "ai_edge_litert", {}),
    ],
)
def test_missing_libraries_raise(name, module, options, model, tmp_path, monkeypatch):
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_text("an older one")
    before = contents(tmp_path)
    library = module.replace("_", "-")
    with pytest.raises(ImportError, match=rf"needs .*: pip install .*\b{library}\b"):
        FORMATS[name](model, tmp_path / name, **options)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(("name", "operators"), [("model.onnx", "ONNX's"), ("model.tflite", "the")])
def test_unsupported_operator_raises_short_error(name, operators, tmp_path, capfd, caplog):
    x = keras.Input((1, 3), name="x")
    odd = keras.Model(x, keras.layers.Lambda(keras.ops.erfinv)(ONLSTM(4)(x)), name="odd")
    (tmp_path / name).write_text("an older one")
    before = contents(tmp_path)
    match = rf"the graph layer of odd cannot be expressed in {operators} operators.*\(.*Erfinv.*\)"
    with pytest.raises(ValueError, match=match) as caught:
        FORMATS[name](odd, tmp_path / name)
    assert contents(tmp_path) == before
    assert len(str(caught.value)) < 500  # the original message has pages
    assert "rfinv" not in capfd.readouterr().err + caplog.text  # it is reported only once


def test_saved_model_replaces_only_a_saved_model(model, tmp_path):
    (tmp_path / "file").write_text("years of work")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    for name in ("file", "directory"):
        with pytest.raises(FileExistsError, match=f"{name}: exists, but is not a SavedModel"):
            to_saved_model(model, tmp_path / name)
    assert contents(tmp_path) == before


def test_file_size_limit_while_writing_a_saved_model(model, tmp_path):
    path, before = tmp_path / "model", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(OSError, match="cannot be written") as caught:
            to_saved_model(model, path, check=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value).startswith(f"{path}: cannot be written (File too large)")
    assert contents(tmp_path) == {}


def write_older(model, path):
    """Writes something that an export replaces."""
    if path.suffix:
        path.write_text("an older one")
    else:
        to_saved_model(model, path, check=False)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("there", [True, False])
def test_file_that_differs_from_keras_is_not_kept(name, there, model, tmp_path, monkeypatch):
    if there:
        write_older(model, tmp_path / name)
    before = contents(tmp_path)
    original = checks.keras_outputs
    monkeypatch.setattr(
        checks,
        "keras_outputs",
        lambda *arguments: {k: v + 1e-3 for k, v in original(*arguments).items()},
    )
    match = r"differs from Keras by 0\.001, more than 1e-05, in the output output .*\(\d, \d+\)"
    with pytest.raises(ValueError, match=match):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FORMATS)
def test_interrupted_check_keeps_the_old_file(name, model, tmp_path, monkeypatch):
    write_older(model, tmp_path / name)
    before = contents(tmp_path)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "compare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == before


@pytest.fixture
def graph():
    """A graph with two outputs that runs fast."""

    def function(arguments):
        x = np.sin(arguments["ids"][..., None] + np.arange(4)) / 9
        return {"all": x, "last": x[:, -1]}

    def draw(rng, sizes, _):
        return rng.integers(0, 5, sizes)

    return ModelGraph("layer", [Input("ids", "int32", ("batch", "time"), draw)], function, None, {})


def runner(graph, change):
    """Runs the graph in Keras; `change` modifies the outputs for sizes (batch, time)."""

    def run(**arguments):
        result = checks.keras_outputs(graph, arguments)
        change(result, arguments["ids"].shape)
        return result

    return run


@pytest.mark.parametrize("value", [-0.5, np.nan])
@pytest.mark.parametrize("sizes", [(3, 2), (3, 17), (1, 1)])
def test_compare_detects_one_wrong_number(graph, value, sizes):
    def change(result, input_sizes):
        if input_sizes == sizes:
            result["last"] = result["last"].copy()
            result["last"][-1, -1] = value

    match = rf"by \S+, more than 1e-05, in the output last .*\({sizes[0]}, {sizes[1]}\)"
    with pytest.raises(ValueError, match=match):
        checks.compare(runner(graph, change), graph)


def test_compare_returns_the_largest_difference(graph):
    def change(result, input_sizes):
        result["all"] = result["all"] + {(3, 17): 0.03, (1, 2): 0.04}.get(input_sizes, 0.01)

    run = runner(graph, change)
    result = checks.compare(run, graph, "float16")
    assert result[1:] == ("all", (1, 2)) and result.largest == pytest.approx(0.04, abs=1e-6)
    with pytest.raises(ValueError, match=r"differs from Keras by 0\.04"):
        checks.compare(run, graph)
    assert checks.compare(runner(graph, lambda *_: None), graph) == Difference(0.0, None, None)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda result, _: result.pop("last"),
            r"outputs of shapes \{'all': \S+ \S+ 4\)\}, Keras of .*'last': \(3, 4\)\}",
        ),
        (
            lambda result, _: result.update(last=result["last"][:1]),
            r"'last': \(1, 4\)\}, Keras of .*'last': \(3, 4\)\}",
        ),
    ],
)
def test_compare_detects_missing_outputs_and_wrong_shapes(graph, change, match):
    with pytest.raises(ValueError, match=match):
        checks.compare(runner(graph, change), graph)


def test_keras_outputs_use_the_reference_recurrence(model, monkeypatch):
    graph, runs = make_graph(model), []
    original = checks.reference
    monkeypatch.setattr(checks, "reference", lambda *a, **k: runs.append(1) or original(*a, **k))
    arguments = draw_inputs(graph, 3, 1)
    result = checks.keras_outputs(graph, arguments)
    assert runs == [1] and isinstance(result["output"], np.ndarray)
    assert_close(result["output"], model(arguments["x"]), 1e-6, "output")


def test_describe(tmp_path):
    operators = {f"Kind{number}": 10 - number for number in range(10)}
    result = Exported(
        tmp_path, ("a", "b"), 1_230_000, operators, Difference(0.00123, "a", (3, 2)), 0.0042
    )
    text = describe(result)
    for part in (
        f"{tmp_path}: a, b",
        "1.23 MB",
        "55: Kind0 10",
        "0.0012 from Keras at most",
        "4.20 ms",
    ):
        assert part in text
    assert describe(result._replace(difference=None, latency=None)).endswith("not checked")
