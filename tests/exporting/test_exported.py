"""What every format refuses before it starts, and what a file that fails its check leaves."""

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
    x = keras.Input((1, 3), name="x")  # one step: nothing converts faster
    return exports.with_weights(keras.Model(x, ONLSTM(4)(x)))


@pytest.mark.parametrize("name", FORMATS)
def test_other_backends_are_refused(name, model, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"runs on jax\. Save.*KERAS_BACKEND=tensorflow"):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("other", ["model", "model.keras"])
def test_endings(name, other, model, tmp_path):
    ending = os.path.splitext(name)[1]
    with pytest.raises(ValueError, match=rf"{other}: a file of this format ends in \{ending}"):
        FORMATS[name](model, tmp_path / other)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FORMATS)
def test_places_that_cannot_be_written(name, model, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"missing: no such directory\. Make it first"):
        FORMATS[name](model, tmp_path / "missing" / name)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(PermissionError, match=rf"{tmp_path}: cannot be written"):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FILES)
def test_a_directory_in_the_place_of_the_file(name, model, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    with pytest.raises(IsADirectoryError, match=rf"{name}: is a directory\. Name a file"):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("quantize", ["int8", True])
def test_quantizations(name, quantize, model, tmp_path):
    known = "'dynamic', 'float16' or 'weights'" if "onnx" in name else "'dynamic' or 'float16'"
    with pytest.raises(ValueError, match=f"None, {known}, not {quantize!r}"):
        FORMATS[name](model, tmp_path / name, quantize=quantize)


@pytest.mark.parametrize("name", FORMATS)
def test_graphs_and_models_are_refused_before_anything_is_written(name, model, tmp_path):
    with pytest.raises(ValueError, match="has no graph 'parser': it has layer"):
        FORMATS[name](model, tmp_path / name, "parser")
    with pytest.raises(TypeError, match="no Keras model"):
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
def test_missing_packages(name, module, options, model, tmp_path, monkeypatch):
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
def test_what_a_format_cannot_express(name, operators, tmp_path, capfd, caplog):
    x = keras.Input((1, 3), name="x")
    odd = keras.Model(x, keras.layers.Lambda(keras.ops.erfinv)(ONLSTM(4)(x)), name="odd")
    (tmp_path / name).write_text("an older one")
    before = contents(tmp_path)
    match = rf"the graph layer of odd cannot be expressed in {operators} operators.*\(.*Erfinv.*\)"
    with pytest.raises(ValueError, match=match) as caught:
        FORMATS[name](odd, tmp_path / name)
    assert contents(tmp_path) == before
    assert len(str(caught.value)) < 500  # of pages
    assert "rfinv" not in capfd.readouterr().err + caplog.text  # it is told once


def test_a_saved_model_replaces_nothing_else(model, tmp_path):
    (tmp_path / "file").write_text("years of work")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    for name in ("file", "directory"):
        with pytest.raises(FileExistsError, match=f"{name}: exists, and is no SavedModel"):
            to_saved_model(model, tmp_path / name)
    assert contents(tmp_path) == before


def test_a_limit_on_the_size_of_a_saved_model(model, tmp_path):
    path, before = tmp_path / "model", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(OSError, match="cannot be written") as caught:
            to_saved_model(model, path, check=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value).startswith(f"{path}: cannot be written (File too large)")
    assert contents(tmp_path) == {}


def older(model, path):
    """Puts something at a path that an export replaces."""
    if path.suffix:
        path.write_text("an older one")
    else:
        to_saved_model(model, path, check=False)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_is_not_what_keras_is(name, there, model, tmp_path, monkeypatch):
    if there:
        older(model, tmp_path / name)
    before = contents(tmp_path)
    original = checks.expected
    monkeypatch.setattr(
        checks, "expected", lambda *given: {k: v + 1e-3 for k, v in original(*given).items()}
    )
    match = r"the file is up to 0\.001 from Keras, in output of \d x \d+, and may be 1e-05"
    with pytest.raises(ValueError, match=match):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FORMATS)
def test_an_interrupted_check(name, model, tmp_path, monkeypatch):
    older(model, tmp_path / name)
    before = contents(tmp_path)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "compare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        FORMATS[name](model, tmp_path / name)
    assert contents(tmp_path) == before


@pytest.fixture
def graph():
    """A graph with two outputs, which takes no time."""

    def function(given):
        x = np.sin(given["ids"][..., None] + np.arange(4)) / 9
        return {"all": x, "last": x[:, -1]}

    def draw(rng, sizes, _):
        return rng.integers(0, 5, sizes)

    return ModelGraph("layer", [Input("ids", "int32", ("batch", "time"), draw)], function, None, {})


def runner(graph, change):
    """The graph run by Keras; `change` is given its outputs and the sizes (batch, time)."""

    def run(**given):
        found = checks.expected(graph, given)
        change(found, given["ids"].shape)
        return found

    return run


@pytest.mark.parametrize("value", [-0.5, np.nan])
@pytest.mark.parametrize("sizes", [(3, 2), (3, 17), (1, 1)])
def test_one_wrong_number_is_found(graph, value, sizes):
    def change(found, given):
        if given == sizes:
            found["last"] = found["last"].copy()
            found["last"][-1, -1] = value

    match = rf"up to \S+ from Keras, in last of {sizes[0]} x {sizes[1]}, and may be 1e-05"
    with pytest.raises(ValueError, match=match):
        checks.compare(runner(graph, change), graph)


def test_the_largest_difference_is_told(graph):
    def change(found, given):
        found["all"] = found["all"] + {(3, 17): 0.03, (1, 2): 0.04}.get(given, 0.01)

    run = runner(graph, change)
    found = checks.compare(run, graph, "float16")
    assert found[1:] == ("all", (1, 2)) and found.largest == pytest.approx(0.04, abs=1e-6)
    with pytest.raises(ValueError, match=r"up to 0\.04 from Keras"):
        checks.compare(run, graph)
    assert checks.compare(runner(graph, lambda *_: None), graph) == Difference(0.0, None, None)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda found, _: found.pop("last"), r"gives \['all'\], and Keras \['all', 'last'\]"),
        (
            lambda found, _: found.update(last=found["last"][:1]),
            r"the file's last has shape \(1, 4\), and Keras's \(3, 4\)",
        ),
    ],
)
def test_missing_outputs_and_other_shapes(graph, change, match):
    with pytest.raises(ValueError, match=match):
        checks.compare(runner(graph, change), graph)


def test_keras_computes_with_the_readable_recurrence(model, monkeypatch):
    graph, runs = make_graph(model), []
    original = checks.reference
    monkeypatch.setattr(checks, "reference", lambda *a, **k: runs.append(1) or original(*a, **k))
    given = draw_inputs(graph, 3, 1)
    found = checks.expected(graph, given)
    assert runs == [1] and isinstance(found["output"], np.ndarray)
    assert_close(found["output"], model(given["x"]), 1e-6, "output")


def test_descriptions(tmp_path):
    operators = {f"Kind{number}": 10 - number for number in range(10)}
    found = Exported(
        tmp_path, ("a", "b"), 1_230_000, operators, Difference(0.00123, "a", (3, 2)), 0.0042
    )
    text = describe(found)
    for part in (f"{tmp_path}: a, b", "1.23 MB", "55: Kind0 10", "0.0012 at most", "4.20 ms"):
        assert part in text
    assert describe(found._replace(difference=None, latency=None)).endswith("not checked")
