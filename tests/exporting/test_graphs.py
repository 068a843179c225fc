"""Graphs of models: their names, errors, metadata and results."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import SINGLE, as_array, assert_all_close, assert_close
from keras_onlstm import ONLSTM, ONLSTMCell
from keras_onlstm.exporting import GRAPHS, graph_names
from keras_onlstm.exporting.graphs import draw_inputs, make_graph
from keras_onlstm.models import Ensemble, LanguageModel, PairClassifier, TreeLSTM
from keras_onlstm.utils.keras_private import layers_within

pytestmark = pytest.mark.backend("tensorflow")

WORDS = [f"word{number}" for number in range(20)]


def language_model(**options):
    return LanguageModel(20, 8, 12, 2, 4, seed=0, **options)


def classifier():
    return PairClassifier(9, 7, embedding_dim=6, units=12, chunk_size=4, seed=0)


def sequential(*layers, shape=(None, 3), **options):
    return keras.Sequential([keras.Input(shape, name="x", **options), *layers])


class UndefinedInputs(keras.Model):
    """A model that does not define its inputs."""

    def __init__(self, *layers):
        super().__init__(name="unknowing")
        self.first, *self.others = layers

    def call(self, x):
        x = self.first(x)
        for layer in self.others:
            x = layer(x)
        return x


def test_graph_names():
    names = {
        language_model(): ("parser", "language_model", "step"),
        Ensemble([language_model(), language_model()]): ("parser",),
        classifier(): ("classifier",),
        sequential(ONLSTM(4)): ("layer",),
        TreeLSTM(5, embedding_dim=4, units=8): ("tree_language_model",),
    }
    assert {model: graph_names(model) for model in names} == names
    assert set(GRAPHS) == {name for several in names.values() for name in several}


def stateful():
    return keras.Sequential(
        [keras.Input(batch_shape=(2, None, 3)), ONLSTM(4, stateful=True, name="keeper")]
    )


def two_names(item, other):
    x, y = keras.Input((None, 3), name=item), keras.Input((None, 3), name=other)
    layer = ONLSTM(4)
    return keras.Model([x, y], layer(x) + layer(y))


def of_strings(layer, dtype="string"):
    ids = keras.Input((None,), dtype=dtype, name="words")
    return keras.Model(ids, ONLSTM(4)(keras.layers.Embedding(9, 3)(layer(ids))))


def no_strings(subject):
    return rf"^{subject} works with strings, which cannot be exported. Export the part [^\n]*\.$"


def vectorized():
    return of_strings(keras.layers.TextVectorization(vocabulary=["a"], name="vectorize"))


def integers_looked_up():
    return of_strings(keras.layers.IntegerLookup(vocabulary=[7], name="lookup"), "int64")


def strings_into_a_lambda():
    return of_strings(keras.layers.Lambda(lambda words: keras.ops.zeros((2, 3), "int32")))


def in_float16():
    return sequential(ONLSTM(4, dtype="mixed_float16", name="half"))


def cell_in_bfloat16():
    return UndefinedInputs(keras.layers.RNN(ONLSTMCell(4, dtype="bfloat16", name="cell")))


UNSUPPORTED = {
    "a layer": (lambda: ONLSTM(4), "layer", "model must be a Keras model, got ONLSTM. Put a layer"),
    "no name": (
        language_model,
        None,
        "graph must be one of parser, language_model, step for a LanguageModel, got None",
    ),
    "a graph of another model": (
        classifier,
        "parser",
        "one of classifier for a PairClassifier, got 'parser'",
    ),
    "a model of LSTM": (
        lambda: language_model(recurrent="lstm", name="other"),
        "language_model",
        "the model other contains no ON-LSTM.*model.export",
    ),
    "stateful": (stateful, None, "the layer keeper is stateful.*initial_state"),
    "a layer in half precision": (in_float16, None, "the layer half computes in float16.*float32"),
    "a cell in half precision": (cell_in_bfloat16, None, "the layer cell computes in bfloat16"),
    "strings": (vectorized, None, no_strings("the layer vectorize")),
    "a lookup": (integers_looked_up, None, "^the layer lookup works with int64"),
    "an input of strings": (strings_into_a_lambda, None, no_strings("the input words")),
    "unknown inputs": (
        lambda: UndefinedInputs(ONLSTM(4)),
        None,
        r"the model unknowing does not define its inputs.*inputs=\[keras.Input",
    ),
    "names that become equal": (
        lambda: two_names("a b", "a_b"),
        None,
        "'a_b' among 'a b', 'a_b': names of inputs and outputs must .* must differ",
    ),
    "names without a letter": (
        lambda: two_names("x", "ö"),
        None,
        "invalid name 'ö' among 'x', 'ö': .*letter",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_unsupported_models_raise(case):
    make, name, match = UNSUPPORTED[case]
    with pytest.raises(TypeError if case == "a layer" else ValueError, match=match):
        make_graph(make(), name)


@pytest.mark.parametrize("keys", [("x", "y"), ("_y", "z")])
def test_invalid_names_of_outputs(keys):
    x = keras.Input((None, 3), name="x")
    output = ONLSTM(4)(x)
    graph = make_graph(keras.Model(x, dict.fromkeys(keys, output)))
    with pytest.raises(ValueError, match=f"among 'x', '{keys[0]}', '{keys[1]}': names"):
        graph.function(draw_inputs(graph, 1, 2))


def test_metadata():
    model, origin = language_model(vocabulary=WORDS), {"perplexity": 90.5}
    step = make_graph(model, "step", metadata=origin, vocabulary=["other"])
    assert step.metadata == {"graph": "step", "vocabulary": WORDS, "num_layers": 2, "about": origin}
    words = make_graph(language_model(), "parser", vocabulary=tuple(WORDS)).metadata["vocabulary"]
    assert words == WORDS
    several = make_graph(Ensemble([model, language_model(vocabulary=WORDS)])).metadata
    assert (several["num_layers"], several["members"]) == (4, [2, 2])
    pairs = make_graph(classifier(), labels=("=", "<"), vocabulary=["", "a"]).metadata
    assert pairs == {
        "graph": "classifier", "vocabulary": ["", "a"], "labels": ["=", "<"], "about": None
    }  # fmt: skip
    layer = make_graph(sequential(ONLSTM(4))).metadata
    assert layer == {"graph": "layer", "vocabulary": None, "about": None}


@pytest.mark.parametrize("inputs", [lambda x: [x], lambda x: x])
def test_inputs_of_a_model_that_does_not_define_them(inputs):
    model = UndefinedInputs(ONLSTM(4, return_sequences=True), keras.layers.Dense(2))
    graph = make_graph(model, inputs=inputs(keras.Input((None, 3), name="a b")))
    assert [entry[:3] for entry in graph.inputs] == [("a_b", "float32", ("batch", "a_b_1", 3))]
    arguments = draw_inputs(graph, 2, 5)
    assert_close(graph.function(arguments)["output"], model(arguments["a_b"]), SINGLE, "output")


def test_drawn_inputs_cover_the_whole_range():
    parser = make_graph(language_model(), "parser")
    arguments = draw_inputs(parser, 40, 9, seed=1)
    assert arguments["ids"].dtype == arguments["lengths"].dtype == "int32"
    assert set(arguments["ids"].ravel()) == set(range(20))
    assert set(arguments["lengths"]) == set(range(1, 10)) and arguments["lengths"][0] == 9
    again, other = (draw_inputs(parser, 40, 9, seed=seed) for seed in (1, 2))
    assert (again["ids"] == arguments["ids"]).all() and (other["ids"] != arguments["ids"]).any()

    states = draw_inputs(make_graph(language_model(), "step"), 40, 1)
    assert list(states) == ["ids", "h_0", "c_0", "h_1", "c_1"]
    assert states["h_0"].shape == (40, 12) and states["h_1"].shape == (40, 8)
    assert states["c_1"].dtype == "float32" and 0.4 < np.abs(states["c_0"]).max() <= 0.5

    pairs = draw_inputs(make_graph(classifier()), 40, 9)
    for ids in pairs.values():
        lengths = (ids != 0).sum(axis=1)
        assert (
            (ids != 0) == (np.arange(9) < lengths[:, None])
        ).all()  # padding is only on the right
        assert lengths.max() == 9 and lengths.min() >= 1 and ids.max() == 8
    assert (pairs["left"] != pairs["right"]).any()


def test_drawn_inputs_of_a_layer_graph():
    x, mask = keras.Input((None, 3), name="x"), keras.Input((None,), dtype="bool", name="mask")
    h, c = (keras.Input(batch_shape=(2, 4), name=name) for name in "hc")
    graph = make_graph(keras.Model([x, mask, h, c], ONLSTM(4)(x, initial_state=[h, c], mask=mask)))
    arguments = draw_inputs(graph, 5, 7)
    assert arguments["x"].shape == (5, 7, 3) and arguments["h"].shape == (2, 4)
    assert arguments["mask"].dtype == bool and set(arguments["mask"].ravel()) == {True, False}
    embedded = sequential(keras.layers.Embedding(2, 3), ONLSTM(4), shape=(None,), dtype="int64")
    ids = draw_inputs(make_graph(embedded), 5, 7)["x"]
    assert ids.dtype == "int64" and set(ids.ravel()) == {0, 1}  # any embedding has two entries


def onlstm_rnn(**options):
    return keras.layers.RNN(ONLSTMCell(8, chunk_size=2), **options)


def random_weights(model, seed=3):
    """Sets weights large enough to open and close gates, all of them different."""
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0.1, 0.6, w.shape) for w in model.get_weights()])
    return model


def nested_rnns():
    x = keras.Input((None, 3), name="x")
    mask = keras.Input((None,), dtype="bool", name="mask")
    first = onlstm_rnn(return_sequences=True, zero_output_for_mask=True)(x, mask=mask)
    second = keras.layers.Bidirectional(onlstm_rnn(return_sequences=True))(first, mask=mask)
    return keras.Model([x, mask], onlstm_rnn(return_state=True, go_backwards=True)(second))


def test_rnn_of_cells_runs_as_onlstm_layer(monkeypatch):
    model = random_weights(nested_rnns())
    graph = make_graph(model)
    arguments = draw_inputs(graph, 3, 6)
    expected = model([arguments["x"], arguments["mask"]])

    def refuse(*_, **__):
        raise AssertionError("a cell ran")

    with monkeypatch.context() as patch:
        patch.setattr(ONLSTMCell, "call", refuse)
        result = graph.function(arguments)
    assert list(result) == ["output_0", "output_1", "output_2"]
    assert_all_close(result.values(), expected, SINGLE, result)
    assert np.abs(as_array(expected[0])).max() > 0.1
    assert_all_close(model([arguments["x"], arguments["mask"]]), expected, 0.0, result)


def test_layers_are_restored_after_a_run_or_an_error():
    model = sequential(onlstm_rnn())
    layer, graph = model.layers[0], make_graph(model)
    arguments = draw_inputs(graph, 2, 3)
    seen = []

    def spy(x, **_):
        seen.append("call" in layer.__dict__)
        return ops.sum(layer(x), axis=-1)

    object.__setattr__(model, "call", spy)
    graph.function(arguments)
    assert seen == [True] and "call" not in layer.__dict__
    with pytest.raises(Exception, match="incompatible"):
        graph.function({"x": arguments["x"][..., :2]})
    assert "call" not in layer.__dict__


def test_onlstm_layer_keeps_the_dtype_of_the_rnn():
    model = random_weights(sequential(onlstm_rnn()))
    keras.config.set_dtype_policy("float64")
    graph = make_graph(model)
    arguments = draw_inputs(graph, 2, 3)
    result = graph.function(arguments)["output"]
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    assert_close(result, model(arguments["x"]), SINGLE, "output")


def test_layers_within():
    model = nested_rnns()
    inner = keras.Sequential([keras.layers.Dense(2, name="inside")])
    outer = UndefinedInputs(model, inner)
    result = layers_within(outer)
    assert outer in result and inner in result and inner.layers[0] in result
    kinds = [type(layer).__name__ for layer in result]
    assert kinds.count("ONLSTMCell") == 4 and kinds.count("RNN") == 4
