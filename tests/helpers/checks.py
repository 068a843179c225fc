"""The comparisons that the tests share: one measure of error, one way to gradients.

Tolerances, unless a test says why it has another:

- `EXACT` where both sides are float64: rounding alone, far below any mistake.
- `SINGLE` where one side is float32: its unit roundoff is 6e-8, values and their sums here are of
  order 1 to 10, and a few dozen roundings add up.
"""

import functools

import keras
import numpy as np
from keras import ops

EXACT = 1e-11
SINGLE = 1e-5

# Arguments of a LanguageModel that drops nothing.
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
    """A tensor of any backend as a NumPy array, widened so that nothing is compared in halves."""
    return np.asarray(ops.convert_to_numpy(x)).astype("float64")


def dtype_of(x):
    return keras.backend.standardize_dtype(x.dtype)


def assert_close(actual, expected, tolerance, what):
    """Fails unless `actual` is finite, of the shape of `expected`, and nowhere further from it."""
    actual, expected = as_array(actual), as_array(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    assert np.isfinite(actual).all(), f"{what}: not finite"
    error = np.max(np.abs(actual - expected), initial=0.0)
    assert error <= tolerance, f"{what}: largest absolute error {error:.3g}, above {tolerance:.3g}"


def assert_all_close(actual, expected, tolerance, what):
    """`assert_close`, one by one; `what` has a name for each."""
    for one, other, name in zip(actual, expected, what, strict=True):
        assert_close(one, other, tolerance, name)


def assert_differ(actual, expected, distance, what):
    """Fails unless the two are somewhere further apart than `distance`."""
    error = np.max(np.abs(as_array(actual) - as_array(expected)), initial=0.0)
    assert error > distance, f"{what}: nowhere further apart than {error:.3g}"


def gradients(function, arrays, variables=(), compiled=True):
    """Gradients of a scalar on whatever backend runs.

    Args:
        function: maps as many tensors as there are `arrays` to a scalar tensor.
        arrays: NumPy arrays, at which to differentiate.
        variables: variables that `function` reads, to differentiate by as well.
        compiled: whether JAX compiles it. Not if it is thousands of operations without a loop:
            XLA takes longer for these than they do one by one.

    Returns:
        List of NumPy arrays, those of the `arrays` before those of the `variables`.
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
    found = torch.autograd.grad(scalar(*tensors), tensors, allow_unused=True)
    zeros = map(torch.zeros_like, tensors)
    return [zero if one is None else one for one, zero in zip(found, zeros, strict=True)]


def finite_differences(function, arrays, step=1e-6):
    """Central differences of a function of float64 NumPy arrays: list of gradients.

    Their error is about `step` squared plus rounding over `step`: 1e-9 where values are of order 1.
    """
    arrays = [np.array(array, "float64") for array in arrays]
    found = []
    for array in arrays:
        gradient = np.empty_like(array)
        for at in np.ndindex(array.shape):
            value = array[at]
            array[at] = value + step
            above = function(*arrays)
            array[at] = value - step
            gradient[at] = (above - function(*arrays)) / (2 * step)
            array[at] = value
        found.append(gradient)
    return found


def loaded(layer, problem):
    """`layer`, built for the inputs of an `oracle.Problem` and with its weights."""
    layer.build(problem.x.shape)
    layer.set_weights(problem.weights[: len(layer.get_weights())])
    return layer


def tensor(array, dtype):
    return ops.convert_to_tensor(array, dtype=dtype)
