"""Functions that lose precision in `keras.ops`, in the precision that ON-LSTM needs.

A running sum of many small terms is inaccurate with the 8 or 11 significant bits of bfloat16 and
float16, so these are widened to float32. On JAX and PyTorch, `keras.ops.cumsum`, `matmul`, `mean`,
`minimum` and `tanh` of float64 return float32 or pass through it (Keras 3.15). The operators of
tensors (`@`, `*`, `+`) keep float64, so these functions use them.
"""

import math
import zlib

import numpy as np
from keras import activations, backend, ops

from keras_onlstm.utils import Activation, DType, Tensor
from keras_onlstm.utils.keras_private import direct


def wide_dtype(dtype: DType) -> str:
    """The dtype in which master gates and cell states are computed: float32 or float64."""
    return "float64" if backend.standardize_dtype(dtype) == "float64" else "float32"


def _is_float64(x):
    return backend.standardize_dtype(x.dtype) == "float64"


def triangle(size: int, dtype: DType) -> Tensor:
    """Lower triangle of ones (size, size). Multiplying by it computes a running sum."""
    return ops.tril(ops.ones((size, size), dtype=dtype))


def cumsum(x: Tensor) -> Tensor:
    """Running sum along the last axis."""
    if not _is_float64(x):
        return ops.cumsum(x, -1)
    return x @ ops.transpose(triangle(x.shape[-1], "float64"))  # (..., n) @ (n, n)


def precise_matmul(x: Tensor, y: Tensor) -> Tensor:
    """(..., M, K) times (..., K, N); not rounded by GPUs and TPUs on JAX."""
    if backend.backend() != "jax":
        return x @ y
    from keras_onlstm.utils.backends_tensorflow_jax import product

    return product(x, y)


def max_keepdims(x: Tensor, axis: int) -> Tensor:
    """The maximum along an axis, which gets size 1. Works for empty tensors, unlike Keras."""
    return ops.max(x, axis, keepdims=True, initial=-math.inf if 0 in x.shape else None)


def mean(x: Tensor) -> Tensor:
    """Mean over the last axis."""
    return ops.sum(x, -1) / x.shape[-1]


def matmul(x: Tensor, kernel: Tensor) -> Tensor:
    """The product of (..., D) and (D, K), computed as one product of matrices."""
    kernel = ops.convert_to_tensor(kernel, dtype=x.dtype)
    rows = ops.reshape(x, (-1, kernel.shape[0]))
    return ops.reshape(rows @ kernel, (*ops.shape(x)[:-1], kernel.shape[1]))


def _tanh64(x):
    return 2.0 * ops.sigmoid(2.0 * x) - 1.0


def exact_activation(activation: Activation, dtype: str) -> Activation:
    """The activation itself, or, for tanh in float64, a function that is exact there."""
    if activation is activations.tanh and dtype == "float64":
        return _tanh64
    return activation


def tanh(x: Tensor) -> Tensor:
    """tanh, also exact in float64."""
    return _tanh64(x) if _is_float64(x) else direct.tanh(x)


def embedding_lookup(table: Tensor, ids: Tensor) -> Tensor:
    """Embedding lookup of ids (...) in a table (V, E), with a dense gradient. Returns (..., E).

    TensorFlow's gradient of `take` is sparse, with one row per lookup. Keras 3.15's optimizers
    square repeated rows one by one instead of their sum: Adam's steps get too large, and the norm
    for clipping is wrong. A reshape in between makes the gradient dense.
    """
    return ops.take(ops.reshape(table, (-1, table.shape[1])), ids, axis=0)


def fold_in(seed: int | None, *data: str | int) -> int | None:
    """A seed for one of several uses, which must not draw the same random numbers."""
    if seed is None:
        return None
    words = [seed, *(zlib.crc32(str(item).encode()) for item in data)]
    return int(np.random.SeedSequence(words).generate_state(1)[0]) >> 1
