"""The numbers of the authors' implementation, reproduced in float64: a stack of three layers."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import assert_all_close, assert_close, gradients, tensor
from keras_onlstm import ONLSTM, ONLSTMCell, convert

TOLERANCE = 1e-9
PARTS = ("ih.0.weight", "ih.0.bias", "hh.weight", "hh.bias")


@pytest.fixture(scope="module")
def reference(shared_reference):
    with np.load(shared_reference / "onlstm_stack.npz") as file:
        return dict(file)


def batch_first(array):
    """(T, B, ...) -> (B, T, ...)"""
    return np.swapaxes(array, 0, 1)


def converted(reference, index):
    arrays = [reference[f"cells.{index}.{part}"] for part in PARTS]
    return convert.from_torch(*arrays, chunk_size=int(reference["chunk_size"]))


def initial_states(reference, dtype):
    return [[tensor(reference[f"{n}0.{i}"], dtype) for n in "hc"] for i in range(3)]


def stack_of_layers(reference, dtype, fused):
    chunk_size = int(reference["chunk_size"])
    layers = []
    for index, units in enumerate(reference["layer_sizes"][1:]):
        layer = ONLSTM(
            int(units),
            chunk_size,
            return_sequences=True,
            return_state=True,
            return_distances=True,
            fused=fused,
            dtype=dtype,
        )
        layer.build((None, None, int(reference["layer_sizes"][index])))
        layer.set_weights(converted(reference, index))
        layers.append(layer)
    return layers


def stack_of_cells(reference, dtype):
    chunk_size, (inputs, *sizes) = int(reference["chunk_size"]), reference["layer_sizes"]
    cells = [ONLSTMCell(int(units), chunk_size, dtype=dtype) for units in sizes]
    # RNN would make a list of cells one that computes in the default dtype.
    cell = keras.layers.StackedRNNCells(cells, dtype=dtype)
    layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=dtype)
    layer.build((None, None, int(inputs)))
    layer.set_weights([w for index in range(3) for w in converted(reference, index)])
    return layer


@pytest.mark.parametrize("fused", [True, False])
def test_values(fused, reference, float64):
    sequence = tensor(batch_first(reference["x"]), float64)
    states = initial_states(reference, float64)
    for index, layer in enumerate(stack_of_layers(reference, float64, fused)):
        sequence, *rest = layer(sequence, initial_state=states[index])
        expected = [
            reference[f"hT.{index}"],
            reference[f"cT.{index}"],
            batch_first(reference["distance_forget"][index]),
            batch_first(reference["distance_in"][index]),
        ]
        names = [f"{name} of layer {index}" for name in ("h", "c", "forget", "input")]
        assert_all_close(rest, expected, TOLERANCE, names)
        raw_output = batch_first(reference[f"raw_output.{index}"])
        assert_close(sequence, raw_output, TOLERANCE, f"outputs of layer {index}")
    assert_close(sequence, batch_first(reference["output"]), TOLERANCE, "outputs")


def test_values_of_stacked_cells(reference, float64):
    x = tensor(batch_first(reference["x"]), float64)
    states = initial_states(reference, float64)
    output, *last = stack_of_cells(reference, float64)(x, initial_state=states)
    assert_close(output, batch_first(reference["output"]), TOLERANCE, "outputs")
    for index, found in enumerate(last):
        expected = [reference[f"hT.{index}"], reference[f"cT.{index}"]]
        assert_all_close(found, expected, TOLERANCE, [f"h of {index}", f"c of {index}"])


def as_layers(reference, dtype, fused=True):
    layers = stack_of_layers(reference, dtype, fused)
    states = initial_states(reference, dtype)

    def call(sequence):
        for layer, state in zip(layers, states, strict=True):
            sequence = layer(sequence, initial_state=state)[0]
        return sequence

    return call, [v for layer in layers for v in layer.trainable_variables]


def as_readable_layers(reference, dtype):
    return as_layers(reference, dtype, fused=False)


def as_cells(reference, dtype):
    layer = stack_of_cells(reference, dtype)
    states = initial_states(reference, dtype)
    return lambda sequence: layer(sequence, initial_state=states)[0], layer.trainable_variables


@pytest.mark.parametrize("make", [as_layers, as_readable_layers, as_cells])
def test_gradients(make, reference, float64):
    call, variables = make(reference, float64)
    weight = batch_first(reference["loss_weight"])
    found = gradients(
        lambda x: ops.sum(call(x) * tensor(weight, float64)),
        [batch_first(reference["x"])],
        variables,
    )
    assert_close(found[0], batch_first(reference["x_grad"]), TOLERANCE, "gradient by the inputs")
    for index in range(3):
        kernel, recurrent_kernel, bias = found[1 + 3 * index : 4 + 3 * index]
        expected = {part: reference[f"cells.{index}.{part}.grad"] for part in PARTS}
        assert_all_close(
            [kernel.T, bias, recurrent_kernel.T, bias],
            expected.values(),
            TOLERANCE,
            [f"gradient by {part} of layer {index}" for part in expected],
        )
