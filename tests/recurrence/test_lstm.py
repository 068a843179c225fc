"""The fast loop of the LSTM that language models are compared with, against Keras's own."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import (
    EXACT,
    SINGLE,
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    finite_differences,
    gradients,
    tensor,
)
from keras_onlstm.models import regularization
from keras_onlstm.models.regularization import WeightDroppedLSTM
from keras_onlstm.recurrence import engine
from keras_onlstm.utils.numerics import exact_activation

BATCH, FEATURES, UNITS = 3, 4, 5
RETURNED = ("rows", "last h", "last c")
DERIVED = ("inputs", "h", "c", "kernel", "recurrent kernel", "bias")


@pytest.fixture
def runs(monkeypatch):
    """Grows by one with each run of the fast loop."""
    seen, run = [], regularization.lstm

    def counted(*arguments):
        seen.append(1)
        return run(*arguments)

    monkeypatch.setattr(regularization, "lstm", counted)
    return seen


def layer_of(rate=0.0, make=WeightDroppedLSTM, **options):
    if make is WeightDroppedLSTM:
        options["recurrent_weight_dropout"] = rate
    options = {"return_sequences": True, "return_state": True, "seed": 7, **options}
    layer = make(UNITS, **options)
    layer.build((BATCH, None, FEATURES))
    random = np.random.default_rng(3)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def arrays_of(time):
    random = np.random.default_rng(1)
    shapes = ((BATCH, time, FEATURES), (BATCH, UNITS), (BATCH, UNITS))
    return [random.normal(size=shape) for shape in shapes]


def read(layer, x, h, c, mask=None):
    """All that the layer returns in training."""
    return layer(x, initial_state=[h, c], mask=mask, training=True)


def losses(layer, mask, weights, dtype):
    """A scalar of all that the layer returns."""

    def loss(*tensors):
        results = read(layer, *tensors, mask)
        return sum(ops.sum(r * tensor(w, dtype)) for r, w in zip(results, weights, strict=True))

    return loss


def weights_of(time):
    random = np.random.default_rng(2)
    return [random.normal(size=shape) for shape in ((BATCH, time, UNITS), *[(BATCH, UNITS)] * 2)]


# Before the first unmasked step Keras returns zeros, or on JAX the state.
HOLES = np.array([[1, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0, 0], [1, 0, 0, 1, 0, 1]], bool)


@pytest.mark.parametrize(
    ("time", "rate", "mask", "compiled"),
    [(6, 0.0, None, 0), (6, 0.4, None, 1), (1, 0.4, None, 0), (6, 0.4, HOLES, 0), (6, 0, HOLES, 1)],
)
def test_matches_keras_and_its_gradients(time, rate, mask, compiled, float64, runs, monkeypatch):
    if compiled:
        monkeypatch.setitem(engine._LAUNCH_BOUND, keras.backend.backend(), 0)
    # Keras's own tanh has float32's precision on JAX; and another function has Keras's loop run.
    exact = exact_activation(keras.activations.tanh, float64)
    arrays, found, counts = arrays_of(time), [], []
    for fast in (True, False):
        layer = layer_of(rate, dtype=float64)
        if not fast:
            layer.cell.activation = lambda x: exact(x)
        results = read(layer, *(tensor(x, float64) for x in arrays), mask)
        loss = losses(layer, mask, weights_of(time), float64)
        found.append([*results, *gradients(loss, arrays, layer.trainable_variables)])
        counts.append(len(runs))
    assert counts == [2, 2]
    # On PyTorch Keras's products of float64 have float32's precision.
    tolerance = SINGLE if keras.backend.backend() == "torch" else EXACT
    assert_all_close(*found, tolerance, (*RETURNED, *DERIVED))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def oracle(x, h, c, kernel, recurrent_kernel, bias, mask):
    """An LSTM in NumPy: all that the layer returns."""
    rows = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent_kernel + bias, 4, -1)
        keep = mask[:, t, None]
        c = np.where(keep, sigmoid(f) * c + sigmoid(i) * np.tanh(g), c)
        h = np.where(keep, sigmoid(o) * np.tanh(c), h)
        rows.append(h)
    return np.stack(rows, 1), h, c


@pytest.mark.parametrize("mask", [None, [[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]]])
def test_the_equations(mask, float64, runs):
    given = None if mask is None else np.array(mask, bool)
    mask = np.ones((BATCH, 4), bool) if mask is None else given
    layer, arrays = layer_of(dtype=float64), arrays_of(4)
    variables = layer.get_weights()
    results = read(layer, *(tensor(x, float64) for x in arrays), given)
    assert_all_close(results, oracle(*arrays, *variables, mask), EXACT, RETURNED)
    weights = weights_of(4)
    expected = finite_differences(
        lambda *at: sum((r * w).sum() for r, w in zip(oracle(*at, mask), weights, strict=True)),
        [*arrays, *variables],
    )
    loss = losses(layer, given, weights, float64)
    found = gradients(loss, arrays, layer.trainable_variables)
    assert_all_close(found, expected, 1e-7, DERIVED)
    assert len(runs) == 2


def test_weights_are_dropped_only_in_training(runs):
    x, h, c = (array.astype("float32") for array in arrays_of(4))
    layer, whole = layer_of(0.5), layer_of()
    assert_close(layer(x, initial_state=[h, c])[0], whole(x, initial_state=[h, c])[0], 0.0, "rows")
    assert not runs
    rows = [as_array(read(layer, x, h, c)[0]) for _ in range(2)]
    assert_differ(*rows, 1e-3, "two draws")
    assert_differ(rows[0], read(whole, x, h, c)[0], 1e-3, "dropped and whole")
    assert len(runs) == 3


def test_only_the_last_output(runs):
    x, h, c = (array.astype("float32") for array in arrays_of(4))
    rows = read(layer_of(), x, h, c)[0]
    last = read(layer_of(return_sequences=False), x, h, c)[0]
    assert_close(last, rows[:, -1], 0.0, "the last row")
    assert len(runs) == 2


def test_half_precision_keeps_a_wide_cell_state():
    """Small additions to a large cell state, which half precision loses one by one."""
    arrays = [np.zeros((1, 300, FEATURES)), np.zeros((1, UNITS)), np.full((1, UNITS), 1.0)]
    layer = layer_of(dtype="mixed_bfloat16")
    bias = np.repeat([-7.0, 20.0, 0.5, 0.0], UNITS)  # adds 4e-4 a step; after 1 bfloat16 has 1.0078
    layer.set_weights([np.zeros((FEATURES, 4 * UNITS)), np.zeros((UNITS, 4 * UNITS)), bias])
    added = 300 * np.tanh(0.5) / (1 + np.exp(7.0))
    c = as_array(read(layer, *(a.astype("float32") for a in arrays))[2])
    np.testing.assert_allclose(c, 1.0 + added, rtol=2**-8)
    assert added > 2**-4


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "relu"},
        {"recurrent_activation": "hard_sigmoid"},
        {"use_bias": False},
        {"dropout": 0.2},
        {"recurrent_dropout": 0.2},
        {"go_backwards": True},
        {"zero_output_for_mask": True},
    ],
)
def test_unsupported_options_fall_back_to_keras(options, runs):
    x, h, c = (array.astype("float32") for array in arrays_of(4))
    layers = layer_of(**options), layer_of(make=keras.layers.LSTM, **options)
    results = [read(layer, x, h, c) for layer in layers]
    assert_all_close(*results, 1e-6, RETURNED)
    assert not runs
