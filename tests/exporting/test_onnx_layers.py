"""ONNX files of custom Keras models, with every way to use the layers, compared with Keras."""

import keras
import numpy as np
import pytest

from helpers import exports
from helpers.checks import SINGLE, as_array, assert_close, assert_differ
from keras_onlstm import ONLSTM, ONLSTMCell, runtime
from keras_onlstm.exporting import to_onnx
from keras_onlstm.exporting.graphs import draw_inputs, make_graph

pytestmark = pytest.mark.backend("tensorflow")

UNITS = 12


def layer(chunk_size=3, **options):
    return ONLSTM(UNITS, chunk_size, **options)


def rnn(*chunk_sizes, **options):
    cells = [ONLSTMCell(UNITS, size) for size in chunk_sizes]
    return keras.layers.RNN(cells if len(cells) > 1 else cells[0], **options)


def every_way():
    """A model whose outputs are named after how its layers are used."""
    x = keras.Input((None, 3), name="x")
    row = keras.Input((1, 3), name="row")
    mask = keras.Input((None,), dtype="bool", name="mask")
    h, c = (keras.Input((UNITS,), name=name) for name in "hc")
    sequences = {"return_sequences": True}
    output, last_h, last_c, forget_distance, input_distance = layer(
        return_state=True, return_distances=True, **sequences
    )(x, initial_state=[h, c], mask=mask)
    both = keras.layers.Bidirectional(layer(return_state=True, **sequences), name="both")
    forward_and_back, *_, backward_c = both(x, mask=mask)
    outputs = {
        "sequence": output,
        "last_h": last_h,
        "last_c": last_c,
        "forget_distance": forget_distance,
        "input_distance": input_distance,
        "last": layer()(x),
        "last_masked": layer()(x, mask=mask),
        "backwards": layer(go_backwards=True, **sequences)(x, mask=mask),
        "both": forward_and_back,
        "backward_c": backward_c,
        "summed": keras.layers.Bidirectional(layer(), merge_mode="sum")(x),
        "zeroed": layer(zero_output_for_mask=True, **sequences)(x, mask=mask),
        "no_bias": layer(use_bias=False, **sequences)(x),
        "chunks_of_1": layer(1, **sequences)(x),
        "one_chunk": layer(UNITS, return_state=True)(x, initial_state=[h, c])[2],
        "cells": rnn(2, **sequences)(x, mask=mask),
        "cells_both": keras.layers.Bidirectional(rnn(4))(x, mask=mask),
        "one_row": layer(return_state=True)(row, initial_state=[h, c])[2],
        "one_masked": layer()(row, mask=mask[:, :1], initial_state=[h, c]),
    }
    return exports.with_weights(keras.Model([x, row, mask, h, c], outputs), 0.6)


def other_activations():
    """Activations and stacked cells that have no operators of their own and convert to loops."""
    x = keras.Input((None, 3), name="x")
    mask = keras.Input((None,), dtype="bool", name="mask")
    others = {"activation": "softsign", "recurrent_activation": "hard_sigmoid"}
    outputs = {
        "activations": layer(return_sequences=True, **others)(x, mask=mask),
        "stacked": rnn(3, 2)(x),
    }
    return exports.with_weights(keras.Model([x, mask], outputs), 0.6)


def word_inputs():
    """Sentences as ids, padded with 0, in a dictionary, and names with blanks."""
    ids = {name: keras.Input((None,), dtype="int64", name=name) for name in ("left", "right")}
    embedding = keras.layers.Embedding(40, 30, mask_zero=True)
    shared = layer(return_sequences=True)
    left, right = (shared(embedding(x)) for x in ids.values())
    outputs = {"on the left": layer()(left), "on the right": keras.layers.Dense(4)(right)}
    return exports.with_weights(keras.Model(ids, outputs), 0.6)


MODELS = {
    "every way": every_way,
    "other activations": other_activations,
    "word inputs": word_inputs,
}
OPERATORS = {"every way": (15, 0), "other activations": (0, 2), "word inputs": (3, 0)}


@pytest.fixture(scope="module", params=MODELS)
def case(request, tmp_path_factory):
    model = MODELS[request.param]()
    path = tmp_path_factory.mktemp("layers") / "model.onnx"
    return request.param, model, to_onnx(model, path, check=False)


@pytest.mark.parametrize(("batch", "time"), [(3, 5), (1, 2)])
def test_outputs_match_keras(case, batch, time):
    name, model, exported = case
    arguments = draw_inputs(make_graph(model), batch, time, seed=time)
    expected = model(arguments)
    result = runtime.load(exported.path, threads=1).run(**arguments)
    assert result.keys() == {output.replace(" ", "_") for output in expected}
    for output, array in expected.items():
        assert_close(result[output.replace(" ", "_")], array, SINGLE, f"{output}, {name}")
        assert np.abs(as_array(array)).max() > 0.03, f"{output} says little"


def test_operator_counts(case):
    name, _, exported = case
    assert [exported.operators.get(kind, 0) for kind in ("Scan", "Loop")] == [*OPERATORS[name]]
    assert exported.difference is None and exported.latency is None


@pytest.mark.parametrize("case", ["word inputs"], indirect=True)
@pytest.mark.parametrize("batch", [1, 4])
def test_padding_of_ids_has_no_effect(case, batch):
    rng, run = np.random.default_rng(2), runtime.load(case[2].path).run
    left, right = rng.integers(1, 40, (2, batch, 5))
    result = run(left=left, right=right)
    longer = run(left=np.pad(left, ((0, 0), (0, 4))), right=right)
    assert_close(longer["on_the_left"], result["on_the_left"], SINGLE, "with padding")
    assert_differ(
        run(left=left[:, :4], right=right)["on_the_left"], result["on_the_left"], 0.01, ""
    )


class Unbuilt(keras.Model):
    """A model that is built when it is first called, and does not define its inputs."""

    def __init__(self):
        super().__init__()
        self.recurrent = layer(return_sequences=True, kernel_initializer="orthogonal")
        self.dense = keras.layers.Dense(2)

    def call(self, x):
        return self.dense(self.recurrent(x)), x


def test_unbuilt_model(tmp_path):
    model = Unbuilt()
    exported = to_onnx(model, tmp_path / "model.onnx", inputs=[keras.Input((None, 3), name="x")])
    assert exported.difference.largest < SINGLE and exported.difference.output == "output_0"
    x = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
    result = runtime.load(exported.path).run(x=x)
    assert_close(result["output_0"], model(x)[0], SINGLE, "output_0")
    assert_close(result["output_1"], x, 0.0, "output_1")


def test_fixed_batch_and_time(tmp_path):
    x = keras.Input(batch_shape=(2, 5, 3), name="x")
    model = exports.with_weights(keras.Model(x, layer()(x)))
    exported = to_onnx(model, tmp_path / "model.onnx")
    graph = runtime.load(exported.path)
    assert graph.batch == 2 and exported.operators["Scan"] == 1
    array = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    assert_close(graph.run(x=array)["output"], model(array), SINGLE, "output")
    with pytest.raises(ValueError, match=r"x must have shape \(2, 5, 3\), got \(1, 5, 3\)"):
        graph.run(x=array[:1])
