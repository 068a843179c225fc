"""The few functions of `keras.ops` that lose precision, in the precision that ON-LSTM needs.

Two reasons. A running sum of many small terms loses its tail in the 8 or 11 bits of a half, so half
precision is widened. And Keras 3.15 resolves 64-bit results to 32 bits on JAX and PyTorch: there
`keras.ops.cumsum`, `matmul`, `mean`, `minimum` and `tanh` of float64 are float32, or pass through
it. Operators of the tensors themselves (`@`, `*`, `+`) keep float64, so these functions are built
of them.
"""

import math
import zlib

import numpy as np
from keras import activations, backend, ops

from keras_onlstm.utils.keras_private import direct
from keras_onlstm.utils.types import Activation, DType, Tensor

__all__ = [
    "cumsum",
    "derived",
    "exact_activation",
    "largest",
    "matmul",
    "mean",
    "precise",
    "take_rows",
    "tanh",
    "triangle",
    "wide_dtype",
]


def wide_dtype(dtype: DType) -> str:
    """The dtype in which master gates and cell states are computed: float32 or float64."""
    return "float64" if backend.standardize_dtype(dtype) == "float64" else "float32"


def _is_float64(x):
    return backend.standardize_dtype(x.dtype) == "float64"


def triangle(size: int, dtype: DType) -> Tensor:
    """(size, size): ones on and below the diagonal. A product with it is a running sum."""
    return ops.tril(ops.ones((size, size), dtype=dtype))


def cumsum(x: Tensor) -> Tensor:
    """Running sum along the last axis."""
    if not _is_float64(x):
        return ops.cumsum(x, -1)
    return x @ ops.transpose(triangle(x.shape[-1], "float64"))  # (..., n) @ (n, n)


def precise(x: Tensor, y: Tensor) -> Tensor:
    """(..., M, K) times (..., K, N); on JAX no accelerator rounds them to fewer bits."""
    if backend.backend() != "jax":
        return x @ y
    from keras_onlstm.utils.backend_jax import product

    return product(x, y)


def largest(x: Tensor, axis: int) -> Tensor:
    """The largest value along an axis, which is kept. Keras refuses tensors without a value."""
    return ops.max(x, axis, keepdims=True, initial=-math.inf if 0 in x.shape else None)


def mean(x: Tensor) -> Tensor:
    """Mean over the last axis."""
    return ops.sum(x, -1) / x.shape[-1]


def matmul(x: Tensor, kernel: Tensor) -> Tensor:
    """(..., D) times (D, K), as one product of two matrices."""
    kernel = ops.convert_to_tensor(kernel, dtype=x.dtype)
    rows = ops.reshape(x, (-1, kernel.shape[0]))
    return ops.reshape(rows @ kernel, (*ops.shape(x)[:-1], kernel.shape[1]))


def _tanh64(x):
    return 2.0 * ops.sigmoid(2.0 * x) - 1.0


def exact_activation(activation: Activation, dtype: str) -> Activation:
    """The function to call for `activation` on tensors of `dtype`: itself, but for float64 tanh."""
    if activation is activations.tanh and dtype == "float64":
        return _tanh64
    return activation


def tanh(x: Tensor) -> Tensor:
    """tanh, exact in float64 too."""
    return _tanh64(x) if _is_float64(x) else direct.tanh(x)


def take_rows(table: Tensor, ids: Tensor) -> Tensor:
    """The rows (..., E) of a table (V, E) by ids (...), whose gradient is a whole table.

    TensorFlow's gradient of `take` lists the rows that were taken, those that were taken twice
    twice. Keras 3.15's optimizers square them one by one where they should square their sum: Adam
    then steps further than its rate, and a norm to clip at comes out wrong. With a reshape in
    between the gradient is a whole table.
    """
    return ops.take(ops.reshape(table, (-1, table.shape[1])), ids, axis=0)


def derived(seed: int | None, *places: str | int) -> int | None:
    """A seed for one of the things that are drawn, as equal seeds would draw equal numbers."""
    if seed is None:
        return None
    words = [seed, *(zlib.crc32(str(place).encode()) for place in places)]
    return int(np.random.SeedSequence(words).generate_state(1)[0]) >> 1
