"""The cell called by hand, what it refuses, its weights, and the private part of Keras it needs."""

import keras
import numpy as np
import pytest

from helpers import oracle
from helpers.checks import EXACT, SINGLE, assert_all_close, assert_close, dtype_of, tensor
from keras_onlstm import ONLSTM, ONLSTMCell
from keras_onlstm.onlstm.gates import gate_offsets

UNITS = 6


def built(problem, chunk_size, **options):
    cell = ONLSTMCell(UNITS, chunk_size, **options)
    cell.build((None, problem.x.shape[-1]))
    cell.set_weights(problem.weights[: 3 if cell.use_bias else 2])
    return cell


@pytest.mark.parametrize("chunk_size", [1, 3, UNITS])
def test_equals_the_equations(chunk_size, float64):
    problem = oracle.draw(UNITS, chunk_size, time=3)
    cell = built(problem, chunk_size, dtype=float64)
    states = [tensor(s, float64) for s in problem.states]
    for t in range(3):
        output, states = cell(tensor(problem.x[:, t], float64), states)
        result = oracle.onlstm(problem.x[:, : t + 1], *problem[1:], chunk_size=chunk_size)
        assert [dtype_of(x) for x in (output, *states)] == [float64] * 3
        expected = [result.outputs[:, t], result.h, result.c]
        assert_all_close([output, *states], expected, EXACT, ["output", "h", "c"])


def test_initial_state_is_zero():
    cell = ONLSTMCell(UNITS, 2, dtype="mixed_bfloat16")
    states = cell.get_initial_state(batch_size=3)
    assert [dtype_of(s) for s in states] == ["bfloat16"] * 2
    assert_all_close(states, [np.zeros((3, UNITS))] * 2, 0.0, ["h", "c"])


@pytest.mark.parametrize("make", [ONLSTMCell, ONLSTM])
@pytest.mark.parametrize("name", ["units", "chunk_size"])
@pytest.mark.parametrize("value", [0, True, 2.0])
def test_sizes_are_positive_integers(make, name, value):
    sizes = {"units": 6, "chunk_size": 2, name: value}
    with pytest.raises(ValueError, match=f"{name} must be an integer, 1 or above, not {value!r}"):
        make(**sizes)


@pytest.mark.parametrize("make", [ONLSTMCell, ONLSTM])
def test_sizes_may_be_numpy_integers(make):
    layer = make(np.int64(6), np.int32(3))
    assert (layer.units, layer.chunk_size) == (6, 3)
    assert {type(layer.units), type(layer.chunk_size)} == {int}


@pytest.mark.parametrize("make", [ONLSTMCell, ONLSTM])
def test_units_must_be_divisible_by_chunk_size(make):
    with pytest.raises(
        ValueError, match="units must be divisible by chunk_size, got units=6 and chunk_size=4"
    ):
        make(6, chunk_size=4)


@pytest.mark.parametrize("make", [ONLSTMCell, ONLSTM])
@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout", "recurrent_weight_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1.0, True, float("nan")])
def test_dropout_rates_must_be_in_range(make, name, rate):
    with pytest.raises(ValueError, match=rf"{name} must be a rate in \[0, 1\), not {rate!r}"):
        make(6, **{name: rate})


@pytest.mark.parametrize("shape", [(2,), (2, 5, 3), (2, None)])
def test_inputs_must_be_one_step(shape):
    with pytest.raises(ValueError, match="ONLSTMCell reads one time step"):
        ONLSTMCell(UNITS).build(shape)


def test_without_a_bias():
    problem = oracle.draw(UNITS, 2)
    cell = built(problem, 2, use_bias=False)
    assert cell.bias is None
    assert [w.name for w in cell.weights] == ["kernel", "recurrent_kernel"]
    states = [tensor(s, "float32") for s in problem.states]
    _, found = cell(tensor(problem.x[:, 0], "float32"), states)
    problem = problem._replace(x=problem.x[:, :1], bias=0 * problem.bias)
    result = oracle.onlstm(*problem, chunk_size=2)
    assert_all_close(found, [result.h, result.c], SINGLE, ["h", "c"])


@pytest.mark.parametrize("start", ["zeros", keras.initializers.Constant(0.25)])
def test_unit_forget_bias_adds_one_only_to_the_forget_gate(start):
    cell = ONLSTMCell(UNITS, 3, bias_initializer=start, unit_forget_bias=True)
    cell.build((None, 3))
    expected = np.full(4 * UNITS + 2 * UNITS // 3, 0.0 if start == "zeros" else 0.25)
    expected[-UNITS:] += 1.0
    assert gate_offsets(UNITS, 3)["forget"].stop == len(expected)
    assert_close(cell.bias, expected, 0.0, "bias")


def test_initializers():
    constant = keras.initializers.Constant
    cell = ONLSTMCell(
        UNITS,
        2,
        kernel_initializer=constant(0.1),
        recurrent_initializer=constant(0.2),
        bias_initializer=constant(0.3),
    )
    cell.build((None, 3))
    for weight, value, shape in zip(
        cell.weights, (0.1, 0.2, 0.3), ((3, 30), (UNITS, 30), (30,)), strict=True
    ):
        assert_close(weight, np.full(shape, value), 1e-7, weight.name)


def test_default_initializers():
    cell = ONLSTMCell(UNITS, 2)
    cell.build((None, 3))
    kernel, recurrent_kernel, bias = cell.get_weights()
    limit = np.sqrt(6 / (3 + 30))
    assert 0.8 * limit < np.abs(kernel).max() <= limit
    assert_close(recurrent_kernel @ recurrent_kernel.T, np.eye(UNITS), SINGLE, "orthogonal rows")
    assert_close(bias, np.zeros(30), 0.0, "bias")


@pytest.mark.parametrize(
    ("name", "function"), [("relu", lambda x: np.maximum(x, 0.0)), (None, lambda x: x)]
)
@pytest.mark.parametrize("which", ["activation", "recurrent_activation"])
def test_activations(which, name, function):
    problem = oracle.draw(UNITS, 2, time=1)
    cell = built(problem, 2, **{which: name})
    states = [tensor(s, "float32") for s in problem.states]
    _, found = cell(tensor(problem.x[:, 0], "float32"), states)
    result = oracle.onlstm(*problem, chunk_size=2, **{which: function})
    assert_all_close(found, [result.h, result.c], SINGLE, ["h", "c"])


@pytest.mark.parametrize("make", [ONLSTMCell, ONLSTM])
def test_regularizers(make):
    problem = oracle.draw(UNITS, 2)
    layer = make(
        UNITS,
        2,
        kernel_regularizer=keras.regularizers.L1(0.5),
        recurrent_regularizer=keras.regularizers.L2(0.25),
        bias_regularizer=keras.regularizers.L2(2.0),
    )
    layer.build((4, 3) if make is ONLSTMCell else (4, 5, 3))
    layer.set_weights(problem.weights)
    expected = [
        0.5 * np.abs(problem.kernel).sum(),
        0.25 * np.square(problem.recurrent_kernel).sum(),
        2.0 * np.square(problem.bias).sum(),
    ]
    # Sums of up to 180 numbers, of order 30.
    assert_all_close(layer.losses, expected, 1e-4, ["kernel", "recurrent kernel", "bias"])


@pytest.mark.parametrize("make", [ONLSTMCell, ONLSTM])
def test_constraints_belong_to_their_weights(make):
    constraints = [keras.constraints.MaxNorm(m) for m in (0.1, 0.2, 0.3)]
    layer = make(
        UNITS,
        2,
        kernel_constraint=constraints[0],
        recurrent_constraint=constraints[1],
        bias_constraint=constraints[2],
    )
    layer.build((4, 3) if make is ONLSTMCell else (4, 5, 3))
    assert [w.constraint for w in layer.weights] == constraints


def test_stacked_cells_match_consecutive_layers(float64):
    first = oracle.draw(UNITS, 2, seed=1)
    second = oracle.draw(UNITS, 3, input_dim=UNITS, seed=2)
    cells = [built(first, 2, dtype=float64), built(second, 3, dtype=float64)]
    layer = keras.layers.RNN(
        keras.layers.StackedRNNCells(cells, dtype=float64),
        return_sequences=True,
        return_state=True,
        dtype=float64,
    )
    states = [[tensor(s, float64) for s in p.states] for p in (first, second)]
    x = tensor(first.x, float64)
    below = oracle.onlstm(*first, chunk_size=2)
    above = oracle.onlstm(below.outputs, *second[1:], chunk_size=3)
    output, *last = layer(x, initial_state=states)
    assert_close(output, above.outputs, EXACT, "outputs")
    for found, result, name in zip(last, (below, above), ("below", "above"), strict=True):
        assert_all_close(found, [result.h, result.c], EXACT, [f"h {name}", f"c {name}"])


@pytest.fixture
def draws(monkeypatch):
    """The cells that have drawn masks, in order."""
    cells = []
    draw = ONLSTMCell.draw_masks

    def counted(cell, batch_size):
        cells.append(cell)
        return draw(cell, batch_size)

    monkeypatch.setattr(ONLSTMCell, "draw_masks", counted)
    return cells


def test_rnn_draws_dropout_masks_before_its_loop(draws):
    """Keras does so for instances of the class that `keras_private` imports, and for no others."""
    cells = [ONLSTMCell(UNITS, 2, dropout=0.4) for _ in range(2)]
    for layer in (keras.layers.RNN(cells[0]), keras.layers.RNN(cells)):
        layer(np.zeros((2, 4, 3), "float32"), training=True)
    assert draws == [cells[0], *cells]
