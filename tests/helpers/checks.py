"""Comparison of arrays, and gradients on any backend.

Default tolerances:

- `EXACT` for float64: rounding errors only.
- `SINGLE` for float32: its unit roundoff is 6e-8, values are of order 1 to 10, and a few dozen
  rounding errors add up.
"""

import functools

import keras
import numpy as np
from keras import ops

EXACT = 1e-11
SINGLE = 1e-5

# Arguments of a LanguageModel without dropout.
NO_DROPOUT = dict.fromkeys(
    (
        "word_dropout",
        "input_dropout",
        "hidden_dropout",
        "output_dropout",
        "recurrent_weight_dropout",
    ),
    0.0,
)


def as_array(x):
    """Converts a tensor of any backend to a float64 array."""
    return np.asarray(ops.convert_to_numpy(x)).astype("float64")


def dtype_of(x):
    return keras.backend.standardize_dtype(x.dtype)


def assert_close(actual, expected, tolerance, what):
    """Checks that `actual` is finite, and has the shape and values of `expected`."""
    actual, expected = as_array(actual), as_array(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    assert np.isfinite(actual).all(), f"{what}: not finite"
    error = np.max(np.abs(actual - expected), initial=0.0)
    assert error <= tolerance, f"{what}: largest absolute error {error:.3g}, above {tolerance:.3g}"


def assert_all_close(actual, expected, tolerance, what):
    """Calls `assert_close` for each pair of arrays; `what` contains their names."""
    for value, expected_value, name in zip(actual, expected, what, strict=True):
        assert_close(value, expected_value, tolerance, name)


def assert_differ(actual, expected, distance, what):
    """Checks that the largest difference is above `distance`."""
    error = np.max(np.abs(as_array(actual) - as_array(expected)), initial=0.0)
    assert error > distance, f"{what}: the largest difference is only {error:.3g}"


def gradients(function, arrays, variables=(), compiled=True):
    """Computes gradients of a scalar on the current backend.

    Args:
        function: maps tensors, one for each of `arrays`, to a scalar tensor.
        arrays: NumPy arrays.
        variables: variables that `function` reads, whose gradients are also computed.
        compiled: whether JAX compiles it. XLA is slow for thousands of operations without a loop.

    Returns:
        List of NumPy arrays: gradients of `arrays`, then of `variables`.
    """
    values = [*map(np.asarray, arrays), *(ops.convert_to_numpy(v) for v in variables)]

    def scalar(*tensors):
        mapping = list(zip(variables, tensors[len(arrays) :], strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*tensors[: len(arrays)])

    by_jax = functools.partial(_jax, compiled=compiled)
    backend = {"tensorflow": _tensorflow, "jax": by_jax, "torch": _torch}[keras.backend.backend()]
    return [ops.convert_to_numpy(gradient) for gradient in backend(scalar, values)]


def _tensorflow(scalar, values):
    import tensorflow as tf

    tensors = [tf.convert_to_tensor(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = scalar(*tensors)
    return tape.gradient(result, tensors, unconnected_gradients="zero")


def _jax(scalar, values, compiled):
    import jax

    derived = jax.grad(scalar, argnums=tuple(range(len(values))))
    return (jax.jit(derived) if compiled else derived)(*values)


def _torch(scalar, values):
    import torch

    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    result = torch.autograd.grad(scalar(*tensors), tensors, allow_unused=True)
    zeros = map(torch.zeros_like, tensors)
    return [zero if grad is None else grad for grad, zero in zip(result, zeros, strict=True)]


def finite_differences(function, arrays, step=1e-6):
    """Central differences of a function of float64 NumPy arrays: list of gradients.

    The error is about `step` squared plus the rounding error divided by `step`: 1e-9 for values of
    order 1.
    """
    arrays = [np.array(array, "float64") for array in arrays]
    gradients = []
    for array in arrays:
        gradient = np.empty_like(array)
        for at in np.ndindex(array.shape):
            value = array[at]
            array[at] = value + step
            above = function(*arrays)
            array[at] = value - step
            gradient[at] = (above - function(*arrays)) / (2 * step)
            array[at] = value
        gradients.append(gradient)
    return gradients


def loaded(layer, problem):
    """Builds a layer for an `oracle.Problem` and sets its weights."""
    layer.build(problem.x.shape)
    layer.set_weights(problem.weights[: len(layer.get_weights())])
    return layer


def tensor(array, dtype):
    return ops.convert_to_tensor(array, dtype=dtype)
