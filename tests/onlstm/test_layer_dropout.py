"""The three dropouts: one mask a sequence, values against the equations with that mask.

Layers with the same seed draw the same: what is drawn is asked of one of them, and what it does is
seen on another.
"""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import (
    SINGLE,
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    loaded,
    tensor,
)
from keras_onlstm import ONLSTM, ONLSTMCell

UNITS, CHUNK, BATCH, TIME = 6, 2, 4, 5
NAMES = oracle.Result._fields
EVERYTHING = {"return_sequences": True, "return_state": True}
RATES = {
    "dropout": {"dropout": 0.4},
    "recurrent_dropout": {"recurrent_dropout": 0.5},
    "recurrent_weight_dropout": {"recurrent_weight_dropout": 0.45},
    "all": {"dropout": 0.4, "recurrent_dropout": 0.5, "recurrent_weight_dropout": 0.45},
}
PROBLEM = oracle.draw(UNITS, CHUNK, BATCH, TIME)
X = PROBLEM.x.astype("float32")


def onlstm(**options):
    return loaded(ONLSTM(UNITS, CHUNK, return_distances=True, **EVERYTHING, **options), PROBLEM)


def rnn(**options):
    return loaded(keras.layers.RNN(ONLSTMCell(UNITS, CHUNK, **options), **EVERYTHING), PROBLEM)


def states():
    return [tensor(s, "float32") for s in PROBLEM.states]


def factors(drawn):
    """The oracle's arguments from a cell's `DropoutMasks`."""
    names = ("input_factors", "recurrent_factors", "recurrent_kernel_factors")
    return {n: 1.0 if m is None else as_array(m) for n, m in zip(names, drawn, strict=True)}


def expected(drawn, mask=None):
    return oracle.onlstm(*PROBLEM, chunk_size=CHUNK, mask=mask, **factors(drawn))


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("mask", [None, "right"])
def test_one_dropout_mask_per_sequence(rates, mask):
    mask = None if mask is None else oracle.masks(BATCH, TIME)[mask]
    drawn = onlstm(seed=3, **RATES[rates]).cell.draw_masks(BATCH)
    call = {"initial_state": states(), "mask": mask, "training": True}
    result = expected(drawn, mask)
    assert_all_close(onlstm(seed=3, **RATES[rates])(X, **call), result, SINGLE, NAMES)
    assert_all_close(rnn(seed=3, **RATES[rates])(X, **call), result[:3], SINGLE, NAMES[:3])
    assert_differ(result.outputs, oracle.onlstm(*PROBLEM, chunk_size=CHUNK).outputs, 0.01, "effect")


@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout", "recurrent_weight_dropout"])
def test_masks_have_the_rate_and_keep_the_mean(name):
    rate = 0.3
    cell = ONLSTMCell(40, **{name: rate})
    cell.build((None, 40))
    drawn = [np.asarray(factors(cell.draw_masks(100))[k]) for k in factors(cell.draw_masks(1))]
    shapes = {"dropout": (100, 40), "recurrent_dropout": (100, 40)}
    at = list(RATES).index(name)
    mask = drawn.pop(at)
    assert all(other.size == 1 for other in drawn), "only what was asked for is dropped"
    assert mask.shape == shapes.get(name, (40, 240))
    kept = mask != 0
    assert_close(mask[kept], np.full(kept.sum(), 1 / (1 - rate)), 1e-6, "scale of what is kept")
    # 4000 or 9600 draws: five standard deviations are below 0.04.
    assert_close(kept.mean(), 1 - rate, 0.04, "share of what is kept")
    if mask.shape[0] == 100:
        assert len(np.unique(kept, axis=0)) > 90, "every row of the batch has its own mask"


@pytest.mark.parametrize("make", [onlstm, rnn])
def test_inference_drops_nothing(make):
    layer = make(seed=3, **RATES["all"])
    result = oracle.onlstm(*PROBLEM, chunk_size=CHUNK)
    for call in ({}, {"training": False}):
        found = layer(X, initial_state=states(), **call)[:3]
        assert_all_close(found, result[:3], SINGLE, NAMES[:3])


@pytest.mark.parametrize(
    ("make", "rates"),
    [(onlstm, "dropout"), (rnn, "recurrent_dropout"), (onlstm, "recurrent_weight_dropout")],
)
def test_calls_differ_and_the_seed_repeats_them(make, rates):
    one, same, other = (make(seed=seed, **RATES[rates]) for seed in (3, 3, 4))
    first, second = (one(X, training=True)[0] for _ in range(2))
    assert_differ(first, second, 0.01, "two calls")
    assert_close(same(X, training=True)[0], first, 0.0, "first call with the same seed")
    assert_close(same(X, training=True)[0], second, 0.0, "second call with the same seed")
    assert_differ(other(X, training=True)[0], first, 0.01, "another seed")


def test_without_a_seed_layers_differ():
    rates = {"dropout": 0.5, "recurrent_weight_dropout": 0.5}
    one, other = (onlstm(**rates)(X, training=True)[0] for _ in range(2))
    assert_differ(one, other, 0.01, "two layers without a seed")


def test_cell_outside_rnn_draws_at_every_training_call():
    cell = ONLSTMCell(UNITS, CHUNK, seed=3, **RATES["all"])
    cell.build((BATCH, 3))
    cell.set_weights(PROBLEM.weights)
    again = ONLSTMCell(UNITS, CHUNK, seed=3, **RATES["all"])
    again.build((BATCH, 3))
    result = oracle.onlstm(PROBLEM.x[:, :1], *PROBLEM[1:], chunk_size=CHUNK)
    h, (_, c) = cell(X[:, 0], states())
    assert_all_close([h, c], [result.h, result.c], SINGLE, ["h", "c"])
    for _ in range(2):
        drawn = factors(again.draw_masks(BATCH))
        h, (same_h, c) = cell(X[:, 0], states(), training=True)
        result = oracle.onlstm(PROBLEM.x[:, :1], *PROBLEM[1:], chunk_size=CHUNK, **drawn)
        assert_all_close([h, same_h, c], [result.h, result.h, result.c], SINGLE, ["h", "h", "c"])


@pytest.mark.parametrize("make", [onlstm, rnn])
def test_dropout_masks_are_reset_after_a_call(make):
    layer = make(seed=3, **RATES["all"])
    layer(X, training=True)
    layer(keras.KerasTensor((None, None, 3)), training=True)
    assert layer.cell._sequence_masks is None


@pytest.mark.parametrize("make", [onlstm, rnn])
def test_compiled_calls_draw_new_masks_without_leaks(make):
    layer, eager = (make(seed=3, **RATES["all"]) for _ in range(2))
    wanted = [eager(X, training=True)[0] for _ in range(3)]
    compiled = compile_call(layer)
    # Two compiled calls, and one after them in which no tracer may be left.
    found = [compiled(X), compiled(X), layer(X, training=True)[0]]
    assert_all_close(found, wanted, SINGLE, ["first call", "second call", "eager call"])


def compile_call(layer):
    """A function of inputs that calls a layer for training, compiled where the backend compiles."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(lambda x: layer(x, training=True)[0])
    if backend == "torch":
        return lambda x: layer(x, training=True)[0]
    import jax

    stateless = jax.jit(lambda *values: layer.stateless_call(*values, training=True))

    def call(x):
        values = [
            [ops.convert_to_tensor(v) for v in variables]
            for variables in (layer.trainable_variables, layer.non_trainable_variables)
        ]
        results, new = stateless(*values, x)
        for variable, value in zip(layer.non_trainable_variables, new, strict=True):
            variable.assign(value)
        return results[0]

    return call
