"""Models of the package exported in every format, compared with Keras."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from helpers import exports
from helpers.checks import SINGLE, as_array, assert_close, assert_differ
from helpers.exports import TIMES, endpoints
from keras_onlstm import ONLSTM, ONLSTMCell, Parser, runtime
from keras_onlstm.exporting import (
    graph_names,
    saved_model_tensorflow,
    to_onnx,
    to_saved_model,
    to_tflite,
)
from keras_onlstm.exporting.graphs import draw_inputs, make_graph
from keras_onlstm.models import LanguageModel
from keras_onlstm.prpn.step import WALL

pytestmark = pytest.mark.backend("tensorflow")

FORMATS = ("onnx", "tflite", "saved")
GRAPHS = ("parser", "language_model", "step")
BATCHES = (1, 3, 8, 32)
BATCH = 3
FIXED = {"prpn": 8, "large": 5}  # batches of TensorFlow Lite files, 3 where not named
SCANS = {"parser": 2, "language_model": 2, "step": 0, "classifier": 2, "layer": 2}
LOOPS = {"parser": 2, "language_model": 2, "step": 0, "classifier": 2, "layer": 3}


def layer_model():
    """A model whose outputs are named after how its layers are used."""
    x, mask = keras.Input((None, 3), name="x"), keras.Input((None,), dtype="bool", name="mask")
    h, c = (keras.Input((12,), name=name) for name in "hc")
    options = {"return_sequences": True, "zero_output_for_mask": True}
    cells = keras.layers.RNN(ONLSTMCell(12, 1), go_backwards=True, **options)
    hidden = cells(x, mask=mask)
    _, last_h, last_c, forget_distance, _ = ONLSTM(
        12, 3, return_state=True, return_distances=True, use_bias=False
    )(hidden, initial_state=[h, c], mask=mask)
    outputs = {
        "cells": hidden,
        "last_h": last_h,
        "last_c": last_c,
        "forget_distance": forget_distance,
        "activation": ONLSTM(12, 4, activation="softsign", return_sequences=True)(x, mask=mask),
    }
    return exports.with_weights(keras.Model([x, mask, h, c], outputs), 0.6)


@pytest.fixture(scope="module")
def models():
    return {
        "language_model": exports.language_model(vocabulary=exports.WORDS, name="english"),
        "prpn": exports.prpn(vocabulary=exports.WORDS, name="prpn"),
        "classifier": exports.classifier(),
        "layer": layer_model(),
    }


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    """Results of the exporters by format, model and graph. Few are checked, to save time."""
    directory, result = tmp_path_factory.mktemp("exports"), {}
    for name, model in models.items():
        options = {"metadata": {"by": "a test"}}
        if name == "classifier":
            options["labels"] = list("=<>^|v#")
        for graph in graph_names(model):
            checked = {**options, "check": graph == "language_model"}
            path = directory / f"{name}_{graph}"
            result["onnx", name, graph] = to_onnx(model, f"{path}.onnx", graph, **checked)
            checked["check"] &= name == "language_model"
            result["tflite", name, graph] = to_tflite(
                model, f"{path}.tflite", graph, batch=FIXED.get(name, BATCH), **checked
            )
        checked["check"] = name == "classifier"
        saved = to_saved_model(model, directory / name, **checked)
        result |= {("saved", name, graph): saved for graph in graph_names(model)}
    return result


@pytest.fixture(scope="module")
def files(exported):
    """Functions of arrays by format, model and graph."""
    return {
        key: endpoints(item.path)[key[2]]
        if key[0] == "saved"
        else runtime.load(Path(item.path), threads=1).run
        for key, item in exported.items()
    }


@pytest.fixture(scope="module")
def read(models):
    """The largest batch of the longest sentences, and the outputs of Keras."""
    ids, _ = exports.sentences(max(BATCHES), max(TIMES))
    return {name: (ids, exports.read(models[name], ids)) for name in ("language_model", "prpn")}


def batches(suffix, name):
    return (FIXED.get(name, BATCH),) if suffix == "tflite" else BATCHES


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("graph", ["parser", "language_model"])
@pytest.mark.parametrize("name", ["language_model", "prpn"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_sentence_graphs_match_keras(files, read, suffix, name, graph, time, padded):
    for batch in batches(suffix, name):
        _, lengths = exports.sentences(batch, time, seed=time)
        lengths = lengths if padded else np.full(batch, time)
        ids, run = read[name][0][:batch, :time], files[suffix, name, graph]
        expected = exports.part(read[name][1], time, lengths)
        if graph == "parser":
            del expected["log_probabilities"]
        result = run(ids=ids, lengths=lengths)
        assert result.keys() == expected.keys()
        padding = np.arange(time) >= lengths[:, None]
        again = run(ids=np.where(padding, (ids + 7) % 100, ids), lengths=lengths)
        for output, array in result.items():
            assert_close(array, expected[output], SINGLE, f"{output}, batch {batch}")
            assert_close(again[output], array, 0.0, f"{output} with another padding")


@pytest.mark.parametrize("graph", ["parser", "language_model"])
def test_results_do_not_depend_on_the_batch(files, graph):
    ids, lengths = exports.sentences(5, 17)
    run = files["onnx", "language_model", graph]
    batch = run(ids=ids, lengths=lengths)
    for row, length in enumerate(lengths):
        single = run(ids=ids[row : row + 1, :length], lengths=[length])
        rest = {output: array[row : row + 1] for output, array in batch.items()}
        for output, array in exports.part(rest, length, [length]).items():
            assert_close(single[output], array, SINGLE, f"{output} of sentence {row}")


@pytest.mark.parametrize("name", ["language_model", "prpn"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_step_by_step_matches_whole_sentences(models, files, read, suffix, name):
    for batch in batches(suffix, name):
        ids = read[name][0][:batch, :50]
        result = exports.step_by_step(files[suffix, name, "step"], models[name], ids)
        for output, array in exports.part(read[name][1], 50, np.full(batch, 50)).items():
            assert_close(result[output], array, SINGLE, output)


@pytest.mark.parametrize("times", [(1, 1), (1, 2), (2, 17), (17, 2), (200, 40)])
@pytest.mark.parametrize("suffix", FORMATS)
def test_classifier_matches_keras(files, models, suffix, times):
    run = files[suffix, "classifier", "classifier"]
    left, right = exports.pair(32, *times)
    expected = exports.classified(models["classifier"], left, right)
    assert_differ(expected[:1], expected[1:], 0.2, "probabilities of pairs")
    for batch in batches(suffix, "classifier"):
        result = run(left=left[:batch], right=right[:batch])["probabilities"]
        assert_close(result, expected[:batch], SINGLE, "probabilities")
        longer = [np.pad(ids[:batch], ((0, 0), (0, 3))) for ids in (left, right)]
        result = run(left=longer[0], right=longer[1])["probabilities"]
        assert_close(result, expected[:batch], SINGLE, "with more padding")


@pytest.mark.parametrize("time", [6, 2, 1])
@pytest.mark.parametrize("suffix", FORMATS)
def test_layer_graph_matches_keras(files, models, suffix, time):
    arguments = draw_inputs(make_graph(models["layer"]), BATCH, time, seed=time)
    expected, result = models["layer"](arguments), files[suffix, "layer", "layer"](**arguments)
    assert result.keys() == expected.keys()
    for output, array in expected.items():
        assert_close(result[output], array, SINGLE, output)


@pytest.mark.parametrize("time", TIMES)
def test_onnx_layer_graph_of_any_batch_size(files, models, time):
    whole = draw_inputs(make_graph(models["layer"]), max(BATCHES), time, seed=time)
    expected = models["layer"](whole)
    for batch in BATCHES:
        arguments = {name: array[:batch] for name, array in whole.items()}
        result = files["onnx", "layer", "layer"](**arguments)
        for output, array in expected.items():
            assert_close(result[output], array[:batch], SINGLE, f"{output}, batch {batch}")


def test_untied_softmax_weights(tmp_path):
    model = exports.language_model(tie_weights=False)
    exported = to_onnx(model, tmp_path / "model.onnx", "language_model", check=False)
    ids, lengths = exports.sentences(3, 17)
    result = runtime.load(exported.path).run(ids=ids, lengths=lengths)
    for output, array in exports.part(exports.read(model, ids), 17, lengths).items():
        assert_close(result[output], array, SINGLE, output)


@pytest.mark.parametrize("suffix", FORMATS)
def test_results_and_metadata_of_an_export(exported, suffix):
    item = exported[suffix, "language_model", "language_model"]
    paths = [path for path in item.path.rglob("*") if path.is_file()] or [item.path]
    assert item.size == sum(path.stat().st_size for path in paths)
    if suffix == "saved":
        assert item.graphs == GRAPHS and (item.difference, item.latency) == (None, None)
        text = (item.path / saved_model_tensorflow.METADATA).read_text(encoding="utf-8")
        about = json.loads(text)
        assert about["graphs"] == list(GRAPHS)
        checked, libraries = exported["saved", "classifier", "classifier"], set()
    else:
        assert item.graphs == ("language_model",)
        graph = runtime.load(item.path)
        about, checked = graph.metadata, item
        assert graph.batch == (BATCH if suffix == "tflite" else None)
        assert about["quantize"] is None
        libraries = {"onnx": {"tf2onnx", "onnx", "onnxruntime"}, "tflite": {"ai-edge-litert"}}[
            suffix
        ]
        labels = runtime.load(exported[suffix, "classifier", "classifier"].path).metadata["labels"]
        assert labels == list("=<>^|v#")
        step = runtime.load(exported[suffix, "prpn", "step"].path).metadata
        assert step["starts"] == {"history": WALL}  # all other states begin with zeros
    assert 0.0 < checked.difference.largest < SINGLE and 0.0 < checked.latency < 1.0
    assert about["vocabulary"] == exports.WORDS and about["num_layers"] == 2
    assert about["about"] == {"by": "a test"}
    assert {*libraries, "keras", "tensorflow"} <= about["versions"].keys()


def test_operator_counts(exported):
    for (suffix, name, graph), item in exported.items():
        kinds = item.operators.keys()
        if name == "prpn":
            continue
        if suffix == "onnx":
            assert item.operators.get("Scan", 0) == SCANS[graph], graph
            assert item.operators.get("Loop", 0) == (graph == "layer"), graph
        elif suffix == "tflite":
            assert all(re.fullmatch(r"[A-Z0-9_]+", kind) for kind in kinds), graph
            assert not {"CUSTOM", "FLEX", "DELEGATE"} & kinds, graph
            assert item.operators["CUMSUM"] >= 2, graph  # a matrix product would have 8 bits
            assert item.operators.get("WHILE", 0) == LOOPS[graph], graph
        else:
            assert not [kind for kind in kinds if "PyFunc" in kind or "Xla" in kind]
    assert "LogSoftmax" not in exported["onnx", "language_model", "parser"].operators
    # Two layers, two endpoints of whole sentences.
    assert exported["saved", "language_model", "parser"].operators["While"] == 4


def test_names_of_onnx_axes(exported):
    import onnx

    def axes(name, graph):
        graph = onnx.load(exported["onnx", name, graph].path).graph
        return {
            value.name: [
                a.dim_param or a.dim_value or None for a in value.type.tensor_type.shape.dim
            ]
            for value in (*graph.input, *graph.output)
        }

    result = axes("language_model", "language_model")
    assert result["ids"] == ["batch", "time"] and result["lengths"] == ["batch"]
    assert result["log_probabilities"][::2] == ["batch", 100]
    assert axes("language_model", "step")["c_1"] == ["batch", 12]
    assert axes("classifier", "classifier")["right"] == ["batch", "time_right"]


@pytest.mark.parametrize("graph", [*GRAPHS, "classifier"])
def test_onnx_file_stores_weights_once(exported, models, graph):
    import onnx
    from onnx import numpy_helper

    def numbers(array):
        return np.sort(np.abs(array), axis=None).astype("float32")  # whatever their order and sign

    name = "classifier" if graph == "classifier" else "language_model"
    graph = onnx.load(exported["onnx", name, graph].path).graph
    inner = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
    constants = [c for part in (graph, *inner) for c in part.initializer]
    constants = [numbers(numpy_helper.to_array(constant)) for constant in constants]
    matrices = [numbers(w) for w in models[name].get_weights() if w.ndim == 2 and w.size >= 1024]
    assert len(matrices) == (3 if name == "classifier" else 4)
    for matrix in matrices:
        assert sum(np.array_equal(matrix, constant) for constant in constants) == 1


def test_saved_model_replaces_another(models, tmp_path):
    path = tmp_path / "model"
    to_saved_model(models["language_model"], path, graphs="step", check=False)
    assert endpoints(path).keys() == {"serving_default", "step"}
    (path / "more").write_text("of the old one")
    x = keras.Input((1, 3), name="x")
    other = exports.with_weights(keras.Model(x, ONLSTM(4)(x)))
    to_saved_model(other, path, check=False)
    result = endpoints(path)
    assert result.keys() == {"serving_default", "layer"} and not (path / "more").exists()
    x = np.random.default_rng(0).normal(size=(2, 1, 3)).astype("float32")
    for name in result:
        assert_close(result[name](x=x)["output"], other(x), SINGLE, "output")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("batch", [0, True, None])
def test_invalid_batch_size_raises(models, tmp_path, batch):
    with pytest.raises(ValueError, match="batch must be an integer, 1 or above"):
        to_tflite(models["language_model"], tmp_path / "model.tflite", "step", batch=batch)
    assert list(tmp_path.iterdir()) == []


# Accepted errors of log-probabilities and distances, and the size relative to float32.
BOUNDS = {
    ("onnx", None): (SINGLE, SINGLE, (1.0, 1.0)),
    ("onnx", "float16"): (5e-3, 2e-4, (0.49, 0.52)),
    ("onnx", "dynamic"): (0.2, 1e-2, (0.24, 0.30)),
    ("onnx", "weights"): (0.1, 5e-3, (0.24, 0.30)),
    ("tflite", None): (SINGLE, SINGLE, (1.0, 1.0)),
    ("tflite", "float16"): (5e-3, 5e-4, (0.49, 0.52)),
    ("tflite", "dynamic"): (0.3, 2e-2, (0.24, 0.30)),
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A model with tied embedding and softmax, its files, and the outputs of Keras."""
    model, directory = (
        LanguageModel(2000, 150, 200, 2, 10, seed=0),
        tmp_path_factory.mktemp("large"),
    )
    model.build()
    exports.with_weights(model, 0.12)
    ids = np.random.default_rng(0).integers(0, 2000, (FIXED["large"], 20))
    result = {}
    for suffix, quantize in BOUNDS:
        path = directory / f"{quantize}.{suffix}"
        to, options = (to_onnx, {}) if suffix == "onnx" else (to_tflite, {"batch": FIXED["large"]})
        options |= {"quantize": quantize, "check": False}
        result[suffix, quantize] = to(model, path, "language_model", **options)
    return SimpleNamespace(ids=ids, read=exports.read(model, ids), exported=result)


@pytest.mark.parametrize(("suffix", "quantize"), BOUNDS)
def test_error_and_size_of_quantized_files(large, suffix, quantize):
    off, distances_off, (minimum, maximum) = BOUNDS[suffix, quantize]
    item = large.exported[suffix, quantize]
    # The matrix that embedding and softmax share is there once.
    assert minimum <= item.size / large.exported[suffix, None].size <= maximum
    graph = runtime.load(item.path)
    assert graph.metadata["quantize"] == quantize
    result = graph.run(ids=large.ids, lengths=np.full(FIXED["large"], 20))
    assert result.keys() == large.read.keys()
    for name, array in result.items():
        bound = off if name == "log_probabilities" else distances_off
        assert_close(array, large.read[name], bound, f"{name}, {quantize}")


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_quantized_weights_are_used(large, suffix):
    """Coarser weights give larger errors, so all weights were quantized."""
    arguments = {"ids": large.ids, "lengths": np.full(FIXED["large"], 20)}
    error = {}
    for kind, quantize in BOUNDS:
        if kind == suffix:
            result = runtime.load(large.exported[suffix, quantize].path).run(**arguments)
            difference = result["log_probabilities"] - large.read["log_probabilities"]
            error[quantize] = np.abs(difference).max()
    exact, float16, *int8 = error.values()
    assert float16 > 10 * exact and min(int8) > 10 * float16


def test_dynamic_quantization_keeps_cumax_in_float32(large):
    import onnx

    from keras_onlstm.exporting import onnx_weights

    model = onnx.load(large.exported["onnx", "dynamic"].path)
    parts = list(onnx_weights.subgraphs(model.graph))
    nodes = [node for part in parts for node in part.node]
    assert not any(node.op_type == "MatMul" for node in nodes)
    sums = [node for node in nodes if node.op_type == "Gemm"]  # of shares, and their means
    constants = {constant.name: constant for part in parts for constant in part.initializer}
    matrices = [constants[node.input[1]] for node in sums]
    target = [[n, size] for n, units in ((20, 200), (15, 150)) for size in (units, units, 1, 1)]
    assert [matrix.dims[:] for matrix in matrices] == target
    assert all(matrix.data_type == onnx.TensorProto.FLOAT for matrix in matrices)
    # Two products a layer, and the softmax.
    assert large.exported["onnx", "dynamic"].operators["MatMulInteger"] == 5


def test_only_float32_logits_are_summed_in_parts(large):
    sums = {quantize: large.exported["onnx", quantize].operators.get("Sum") for quantize in
            (None, "float16", "dynamic", "weights")}  # fmt: skip
    assert sums == {None: 1, "float16": None, "dynamic": None, "weights": None}


def test_prpn_fixture_has_open_closed_and_partial_gates(models, read):
    gates = as_array(models["prpn"].parsing(models["prpn"]._embed(read["prpn"][0])).gates)
    for kind in (gates == 0.0, gates == 1.0, (gates > 0.0) & (gates < 1.0)):
        assert 0.1 < kind.mean() < 0.8


def test_prpn_parser_contains_only_the_parsing_network(exported):
    """Parsing does not need the networks that predict words."""
    parser, step = (exported["onnx", "prpn", graph].size for graph in ("parser", "step"))
    weights = 4 * (exports.VOCABULARY_SIZE * 12 + 3 * 12 * 10 + 10 + 10)
    assert weights < parser < weights + 30_000 < step


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_trees_and_scores_without_keras(models, exported, suffix):
    sentence = "word3 word1 word4 word1 word5"
    model, path = models["prpn"], exported[suffix, "prpn", "parser"].path
    keras_parser, parser = Parser(model), Parser.load(path)
    assert_close(parser.distances(sentence), keras_parser.distances(sentence), SINGLE, "distances")
    assert str(parser(sentence)) == str(keras_parser(sentence))
    scoring = runtime.load(exported[suffix, "prpn", "language_model"].path)
    scores = runtime.ExportedModel(scoring).score([sentence])[0]
    assert_close(scores, model.score([sentence])[0], SINGLE, "scores")
    command = (
        "import sys; from keras_onlstm import Parser; "
        f"print(Parser.load({str(path)!r})({sentence!r}));"
        "assert 'keras' not in sys.modules"
    )
    process = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert process.stdout.split() == str(keras_parser(sentence)).split(), process.stderr


@pytest.mark.parametrize("quantize", ["dynamic", "float16"])
@pytest.mark.parametrize(("suffix", "to"), [("onnx", to_onnx), ("tflite", to_tflite)])
def test_quantized_prpn(models, tmp_path, suffix, to, quantize):
    path = tmp_path / f"parser.{suffix}"
    exported = to(models["prpn"], path, "parser", quantize=quantize)
    assert 0.0 < exported.difference.largest < {"dynamic": 0.05, "float16": 0.005}[quantize]


def test_prpn_without_optional_parts(tmp_path):
    parts = ("parsing_network", "reading_attention", "predict_attention", "tie_weights")
    model = exports.prpn(**dict.fromkeys(parts, False))
    assert graph_names(model) == GRAPHS
    exported = to_onnx(model, tmp_path / "step.onnx", "step")
    assert exported.difference.largest < SINGLE
