"""Weights of the authors' implementation: what goes where, and what is refused."""

import numpy as np
import pytest

import oracle
from checks import SINGLE, assert_close, loaded, tensor
from keras_onlstm import ONLSTM, convert

UNITS, CHUNK, INPUTS = 4, 2, 3
K = 4 * UNITS + 2 * UNITS // CHUNK


def arrays(**replaced):
    rng = np.random.default_rng(0)
    shapes = {"ih_weight": (K, INPUTS), "ih_bias": (K,), "hh_weight": (K, UNITS), "hh_bias": (K,)}
    return {name: rng.normal(size=replaced.get(name, shape)) for name, shape in shapes.items()}


def test_values():
    given = arrays()
    kernel, recurrent_kernel, bias = convert.from_torch(**given, chunk_size=CHUNK)
    assert_close(kernel, given["ih_weight"].T, 0.0, "kernel")
    assert_close(recurrent_kernel, given["hh_weight"].T, 0.0, "recurrent kernel")
    assert_close(bias, given["ih_bias"] + given["hh_bias"], 0.0, "bias")
    assert {w.dtype for w in (kernel, recurrent_kernel, bias)} == {np.dtype("float64")}


def test_the_weights_are_copies():
    given = arrays()
    for weight in convert.from_torch(**given, chunk_size=CHUNK):
        weight[:] = 0.0
    for name, array in arrays().items():
        assert_close(given[name], array, 0.0, name)


def test_a_layer_takes_them():
    weights = convert.from_torch(**arrays(), chunk_size=CHUNK)
    problem = oracle.draw(UNITS, CHUNK, input_dim=INPUTS)
    names = ("kernel", "recurrent_kernel", "bias")
    problem = problem._replace(**dict(zip(names, weights, strict=True)))
    problem = problem._replace(h=0 * problem.h, c=0 * problem.c)
    found = loaded(ONLSTM(UNITS, CHUNK), problem)(tensor(problem.x, "float32"))
    assert_close(found, oracle.onlstm(*problem, chunk_size=CHUNK).h, SINGLE, "output")


@pytest.mark.parametrize("chunk_size", [0, -1, 3, True])
def test_a_chunk_size_that_does_not_divide_is_refused(chunk_size):
    with pytest.raises(ValueError, match=f"chunk_size={chunk_size} does not divide the 4 units"):
        convert.from_torch(**arrays(), chunk_size=chunk_size)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ih_weight", (K + 1, INPUTS)),
        ("ih_bias", (K - 1,)),
        ("ih_bias", (K, 1)),
        ("hh_weight", (INPUTS, UNITS)),
        ("hh_bias", ()),
    ],
)
def test_wrong_shapes_are_refused_by_name(name, shape):
    with pytest.raises(ValueError, match=rf"{name} has .* rows; 4 units with chunk_size=2 have 20"):
        convert.from_torch(**arrays(**{name: shape}), chunk_size=CHUNK)


@pytest.mark.parametrize("name", ["ih_weight", "hh_weight"])
def test_weights_that_are_no_matrices_are_refused(name):
    with pytest.raises(ValueError, match=r"are matrices, \(K, input_dim\) and \(K, units\)"):
        convert.from_torch(**arrays(**{name: (K,)}), chunk_size=CHUNK)
