"""The smallest model that reads sentences, by `models.sentence_reader` alone: what it gets for it.

Whoever adds a model finds here what it must offer.
"""

from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import as_array, assert_close
from keras_onlstm import ONLSTM, Parser, runtime
from keras_onlstm.exporting import graph_names, to_onnx
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.training import TruncatedModel, Windows, evaluate_windows

WORDS = ["<eos>", "<unk>", "the", "cat", "saw", "a", "dog"]


class Output(NamedTuple):
    logits: Any
    states: Any
    raw_output: Any
    output: Any
    distances: Any


class Smallest(SentenceReader):
    """One layer, one kind of distances, and states under names instead of in lists."""

    gates = ("depth",)
    layers_per_model = (1,)
    vocabulary = WORDS
    vocabulary_size = len(WORDS)

    def __init__(self):
        super().__init__(name="smallest")
        self.embedding = keras.layers.Embedding(len(WORDS), 8)
        self.layer = ONLSTM(
            8, 2, return_sequences=True, return_state=True, return_distances=True, seed=1
        )
        self.softmax = keras.layers.Dense(len(WORDS))

    def build(self, input_shape=None):
        self.embedding.build((None, None))
        self.layer.build((None, None, 8))
        self.softmax.build((None, None, 8))
        self.built = True

    def initial_states(self, batch_size):
        h, c = self.layer.cell.get_initial_state(batch_size)
        return {"cell": c, "hidden": h}

    state_names = {"cell": "the_cell", "hidden": "the_hidden"}  # noqa: RUF012

    def hidden(self, ids, states=None, mask=None, training=False):
        given = None if states is None else [states["hidden"], states["cell"]]
        x = self.embedding(ids)
        rows, h, c, depth, _ = self.layer(x, initial_state=given, mask=mask, training=training)
        distances = {"depth": ops.expand_dims(depth, 1)}
        return Output(None, {"cell": c, "hidden": h}, rows, rows, distances)

    def logits(self, output):
        return self.softmax(output)


@pytest.fixture
def model():
    keras.utils.set_random_seed(1)
    model = Smallest()
    model.build()
    return model


def test_distances_and_scores(model):
    ids = np.array([[0, 2, 3, 4, 0]], "int32")
    found = model(ids, details=True)
    (distances,) = model.distances(["the cat saw"], "depth")
    assert_close(distances, as_array(found.distances["depth"])[0, :, 1:4], 1e-6, "distances")
    log_probabilities = as_array(ops.log_softmax(found.logits))[0]
    (scores,) = model.score(["the cat saw"])
    expected = log_probabilities[range(4), ids[0, 1:]]
    assert_close(scores, expected, 1e-5, "log-probabilities")
    with pytest.raises(ValueError, match="gate must be 'depth', got 'forget'"):
        model.distances(["the cat"], "forget")
    assert_close(model.distances(["the cat saw"])[0], distances, 0.0, "of the only ones")


def test_a_parser_of_one_layer(model):
    parser = Parser(model)
    assert (parser.layer, parser.method, parser.gate) == (1, "greedy", "depth")
    assert parser.parse("the cat saw a dog").leaves() == ["the", "cat", "saw", "a", "dog"]


def test_generate_picks_likeliest_words(model):
    """The likeliest word at each step is the next input."""
    drawn = model.generate("the cat", length=6, top_k=1)
    ids = model.encode(["<eos>", "the", "cat", *drawn])
    logits = as_array(model(np.array([ids]), details=True).logits)[0]
    logits[:, 1] = -np.inf
    likeliest = [WORDS[place] for place in logits[2:].argmax(-1)]
    assert likeliest[: len(drawn)] == drawn
    assert len(drawn) == 6 or likeliest[len(drawn)] == "<eos>"
    assert model.generate("the cat", length=0) == []
    one, same, other = (model.generate([], 40, seed=seed) for seed in (1, 1, 2))
    assert one == same != other and "<unk>" not in one


def test_training_carries_its_states(model):
    text = np.tile([2, 3, 4, 5, 6, 0], 40)
    reader = TruncatedModel(model, batch_size=3)
    reader.compile(keras.optimizers.Adam(0.05))
    names = [variable.name for variable in keras.tree.flatten(reader.states)]
    assert names == ["the_cell", "the_hidden"]
    windows = Windows(text, 3, 20, variable_bptt=False)
    before = evaluate_windows(reader, windows)
    for _ in range(5):
        reader.reset_states()
        for index in range(len(windows)):
            inputs, targets, weights = windows[index]
            reader.train_on_batch(inputs, targets, weights)
    assert evaluate_windows(reader, windows) < before / 2
    last = model(text[:240].reshape(3, 80)[:, :-1], details=True).states  # in one window
    for name, state in reader.states.items():
        assert_close(state, last[name], 1e-5, name)


@pytest.mark.backend("tensorflow")
def test_exported_graphs(model, tmp_path):
    assert graph_names(model) == ("parser", "language_model", "step")
    to_onnx(model, tmp_path / "step.onnx", "step")
    step = runtime.load(tmp_path / "step.onnx")
    assert set(step.inputs) == {"ids", "the_cell", "the_hidden"}
    assert {"depth_distances", "next_the_cell", "next_the_hidden"} < set(step.outputs)
    to_onnx(model, tmp_path / "parser.onnx", "parser")
    parser = Parser.load(tmp_path / "parser.onnx")
    assert (parser.layer, parser.gate) == (1, "depth")
    sentence = "the cat saw a dog"
    assert_close(
        parser.distances(sentence, "depth"), model.distances([sentence], "depth")[0], 1e-5, ""
    )
    assert parser.parse(sentence) == Parser(model).parse(sentence)
