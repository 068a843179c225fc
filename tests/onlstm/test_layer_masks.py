"""Masked steps: states carried, outputs repeated or zero, distances zero; masks on their way."""

import functools
import inspect

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import (
    EXACT,
    NO_DROPOUT,
    SINGLE,
    assert_all_close,
    assert_close,
    gradients,
    loaded,
    tensor,
)
from keras_onlstm import ONLSTM, ONLSTMCell
from keras_onlstm.models import LanguageModel, PairClassifier
from keras_onlstm.models.regularization import WeightDroppedLSTM

UNITS, CHUNK, BATCH, TIME = 6, 2, 4, 5
NAMES = oracle.Result._fields
MASKS = oracle.masks(BATCH, TIME)
EVERYTHING = {"return_sequences": True, "return_state": True}


@pytest.mark.parametrize(
    ("name", "go_backwards", "zero_output_for_mask"),
    [
        ("left", False, False),
        ("left", True, True),
        ("right", False, False),
        ("right", True, False),
        ("holes", False, False),
        ("holes", False, True),
        ("a row without any", True, False),
        ("all", False, False),
    ],
)
def test_equals_the_equations(name, go_backwards, zero_output_for_mask, float64):
    problem = oracle.draw(UNITS, CHUNK, BATCH, TIME)
    options = {"go_backwards": go_backwards, "zero_output_for_mask": zero_output_for_mask}
    mask = MASKS[name]
    expected = oracle.onlstm(*problem, chunk_size=CHUNK, mask=mask, **options)
    call = {
        "initial_state": [tensor(s, float64) for s in problem.states],
        "mask": ops.convert_to_tensor(mask),
    }
    x = tensor(problem.x, float64)
    layer = ONLSTM(UNITS, CHUNK, return_distances=True, dtype=float64, **EVERYTHING, **options)
    assert_all_close(loaded(layer, problem)(x, **call), expected, EXACT, NAMES)
    cell = ONLSTMCell(UNITS, CHUNK, dtype=float64)
    layer = keras.layers.RNN(cell, dtype=float64, **EVERYTHING, **options)
    outputs, h, c = loaded(layer, problem)(x, **call)
    assert_close(h, expected.h, EXACT, "h of RNN")
    assert_close(c, expected.c, EXACT, "c of RNN")
    started = np.ones_like(mask)
    if keras.backend.backend() == "jax" and not zero_output_for_mask:
        # There Keras repeats the initial state, not zeros, before the first step that counts.
        read = mask[:, ::-1] if go_backwards else mask
        started = np.cumsum(read, 1) > 0
    outputs = ops.convert_to_numpy(outputs)
    assert_close(outputs[started], expected.outputs[started], EXACT, "outputs of RNN")


@pytest.mark.parametrize(
    ("name", "zero_output_for_mask"),
    [("left", False), ("right", False), ("right", True), ("holes", True), ("all", False)],
)
def test_the_last_output_is_the_last_of_the_sequence(name, zero_output_for_mask):
    problem = oracle.draw(UNITS, CHUNK, BATCH, TIME)
    layer = ONLSTM(UNITS, CHUNK, zero_output_for_mask=zero_output_for_mask)
    found = loaded(layer, problem)(
        tensor(problem.x, "float32"),
        initial_state=[tensor(s, "float32") for s in problem.states],
        mask=MASKS[name],
    )
    expected = oracle.onlstm(
        *problem, chunk_size=CHUNK, mask=MASKS[name], zero_output_for_mask=zero_output_for_mask
    )
    assert_close(found, expected.outputs[:, -1], SINGLE, "last output")


def test_one_masked_step():
    problem = oracle.draw(UNITS, CHUNK, BATCH, time=1)
    mask = np.array([[True], [False], [True], [False]])
    layer = ONLSTM(UNITS, CHUNK, return_distances=True, **EVERYTHING)
    found = loaded(layer, problem)(
        tensor(problem.x, "float32"),
        initial_state=[tensor(s, "float32") for s in problem.states],
        mask=mask,
    )
    expected = oracle.onlstm(*problem, chunk_size=CHUNK, mask=mask)
    assert_all_close(found, expected, SINGLE, NAMES)


def test_what_is_masked_may_hold_anything():
    problem = oracle.draw(UNITS, CHUNK, BATCH, TIME)
    layer = loaded(ONLSTM(UNITS, CHUNK, return_distances=True, **EVERYTHING), problem)
    mask = MASKS["holes"]
    other = np.where(mask[..., None], problem.x, 77.0)
    found, expected = (layer(tensor(x, "float32"), mask=mask) for x in (other, problem.x))
    assert_all_close(found, expected, 0.0, NAMES)


@pytest.mark.parametrize(("fused", "go_backwards"), [(False, True), (True, False)])
def test_no_gradient_comes_from_what_is_masked(fused, go_backwards):
    problem = oracle.draw(UNITS, CHUNK, BATCH, TIME)
    options = {"fused": fused, "go_backwards": go_backwards, "dropout": 0.3, "seed": 5}
    mask = MASKS["a row without any"]
    found = {}
    for worse in (0.0, np.nan, -np.inf):
        layer = loaded(ONLSTM(UNITS, CHUNK, **EVERYTHING, **options), problem)

        def loss(x, *states, layer=layer):
            results = layer(x, initial_state=states, mask=mask, training=True)
            return sum(ops.sum(ops.square(y)) for y in results)

        x = np.where(mask[..., None], problem.x, worse)
        given = [a.astype("float32") for a in (x, *problem.states)]
        found[worse] = gradients(loss, given, layer.trainable_variables)
        assert_all_close(found[worse], found[0.0], 0.0, problem._fields)
        assert not found[worse][0][~mask].any(), "a gradient by what is masked"


def test_masks_may_be_numbers_and_have_a_last_axis():
    problem = oracle.draw(UNITS, CHUNK, BATCH, TIME)
    layer = loaded(ONLSTM(UNITS, CHUNK, return_sequences=True), problem)
    x, mask = tensor(problem.x, "float32"), MASKS["holes"]
    expected = layer(x, mask=mask)
    for same in (mask.astype("int32"), mask.astype("float32"), mask[..., None]):
        assert_close(layer(x, mask=same), expected, 0.0, f"mask of {same.dtype} {same.shape}")


@pytest.mark.parametrize("shape", [(BATCH,), (BATCH, TIME, 2), (BATCH, TIME - 1), (1, TIME)])
def test_masks_of_another_shape_are_refused(shape):
    layer = ONLSTM(UNITS, CHUNK)
    with pytest.raises(ValueError, match=r"mask must have the shape \(batch, time\), got"):
        layer(np.zeros((BATCH, TIME, 3), "float32"), mask=np.ones(shape, bool))


IDS = np.array([[3, 1, 4, 1, 0], [0, 2, 2, 0, 4], [1, 0, 0, 0, 0]], "int32")


def expected_outputs(x, mask, problem):
    zeros = np.zeros((len(x), UNITS))
    return oracle.onlstm(x, zeros, zeros, *problem.weights, chunk_size=CHUNK, mask=mask)


def test_masks_of_an_embedding_arrive_and_go_on():
    problem = oracle.draw(UNITS, CHUNK)
    embedding = keras.layers.Embedding(5, 3, mask_zero=True)
    first = ONLSTM(UNITS, CHUNK, return_sequences=True, return_distances=True)
    second = ONLSTM(UNITS, CHUNK)
    inputs = keras.Input((None,), dtype="int32")
    sequence, forget_distance, _ = first(embedding(inputs))
    model = keras.Model(inputs, [sequence, forget_distance, second(sequence)])
    first.set_weights(problem.weights)
    table = np.random.default_rng(3).normal(size=(5, 3))
    embedding.set_weights([table])
    result = expected_outputs(table[IDS], IDS != 0, problem)
    again = oracle.draw(UNITS, CHUNK, input_dim=UNITS, seed=8)
    second.set_weights(again.weights)
    last = expected_outputs(result.outputs, IDS != 0, again).outputs[:, -1]
    assert_all_close(
        model(IDS),
        [result.outputs, result.forget_distance, last],
        SINGLE,
        ["sequence", "distance", "output of the layer above"],
    )


class Probe(keras.layers.Layer):
    """Returns the mask that came with its input; all `False` if none did."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return ops.zeros_like(inputs, "bool") if mask is None else ops.copy(mask)


@pytest.mark.parametrize("in_model", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
@pytest.mark.parametrize("return_sequences", [False, True])
def test_distances_carry_the_mask(return_sequences, return_state, go_backwards, in_model):
    """In the order of reading, whether or not there is a sequence of outputs to carry it."""
    embedding = keras.layers.Embedding(9, 3, mask_zero=True)
    layer = ONLSTM(
        UNITS,
        CHUNK,
        return_distances=True,
        return_sequences=return_sequences,
        return_state=return_state,
        go_backwards=go_backwards,
    )

    def masks(ids):
        return [Probe()(distance) for distance in layer(embedding(ids))[-2:]]

    ids = keras.Input((None,), dtype="int32")
    found = keras.Model(ids, masks(ids))(IDS) if in_model else masks(ops.convert_to_tensor(IDS))
    assert (IDS != 0).any() and (IDS == 0).any()
    for mask in found:
        assert_close(mask, (IDS != 0)[:, ::-1] if go_backwards else IDS != 0, 0.0, "mask")


@pytest.fixture(params=[False, True], ids=["as installed", "as in Keras 3.16"])
def recurrent_layers(request, monkeypatch):
    """Keras's `RNN` and `Bidirectional`, without support of masks as in Keras 3.16 too."""

    def unsupporting(init):
        @functools.wraps(init)
        def made(self, *args, **kwargs):
            init(self, *args, **kwargs)
            self.supports_masking = False

        made.__signature__ = inspect.signature(init)  # Keras reads the names of arguments
        return made

    if request.param:
        for layer in (keras.layers.RNN, keras.layers.Bidirectional):
            monkeypatch.setattr(layer, "__init__", unsupporting(layer.__init__))


def with_support(layer):
    layer.supports_masking = True
    return layer


MASKED = {
    "ONLSTM": lambda: ONLSTM(UNITS, CHUNK, return_sequences=True),
    "WeightDroppedLSTM": lambda: WeightDroppedLSTM(UNITS, return_sequences=True),
    "RNN": lambda: with_support(keras.layers.RNN(ONLSTMCell(UNITS, CHUNK), return_sequences=True)),
    "Bidirectional": lambda: with_support(
        keras.layers.Bidirectional(ONLSTM(UNITS, CHUNK, return_sequences=True))
    ),
}


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.usefixtures("recurrent_layers")
def test_masks_go_on_whatever_keras_supports(name):
    embedding = keras.layers.Embedding(9, 3, mask_zero=True)
    found = Probe()(MASKED[name]()(embedding(ops.convert_to_tensor(IDS))))
    assert_close(found, IDS != 0, 0.0, "mask")


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
@pytest.mark.usefixtures("recurrent_layers")
def test_models_mask_without_a_warning(recurrent):
    """Warnings are errors. What padding holds, and how much there is, changes nothing."""
    pairs = PairClassifier(9, 3, 6, UNITS, CHUNK, recurrent=recurrent, seed=1)
    longer = np.pad(IDS, [(0, 0), (0, 2)])
    assert_close(pairs((longer, longer)), ops.convert_to_numpy(pairs((IDS, IDS))), 1e-6, "pairs")
    model = LanguageModel(9, 8, 8, 2, 2, recurrent=recurrent, seed=1, **NO_DROPOUT)
    mask = np.array([[True, True, False, True, False]] * 3)
    logits = ops.convert_to_numpy(model(np.where(mask, IDS, 7), mask=mask))
    assert_close(model(np.where(mask, IDS, 8), mask=mask), logits, 1e-6, "language model")
    alone = model(IDS[:, [0, 1, 3]])
    assert_close(alone, logits[:, [0, 1, 3]], 1e-6, "the words alone")


def test_the_mask_is_handed_on_with_sequences_and_distances_alone():
    mask = ops.convert_to_tensor(MASKS["left"])
    layer = ONLSTM(UNITS, return_sequences=True, return_state=True, return_distances=True)
    assert layer.supports_masking
    of_sequence, *rest = layer.compute_mask(None, mask)
    assert_close(of_sequence, MASKS["left"], 0.0, "mask of the outputs")
    assert rest[:2] == [None] * 2
    for distance_mask in [*rest[2:], *layer.compute_mask(None, mask[..., None])[-2:]]:
        assert_close(distance_mask, MASKS["left"], 0.0, "mask of the distances")
    assert ONLSTM(UNITS, return_sequences=True).compute_mask(None, None) is None
    assert ONLSTM(UNITS).compute_mask(None, mask) is None
