"""cumax, the cumulative softmax that orders the neurons (Shen et al. 2019, Eq. 6).

It is the one new function of the paper: everything else in ON-LSTM is an LSTM. It uses only
`keras.ops`, so that it runs and has gradients on every backend.
"""

from keras import backend, ops

from keras_onlstm.utils.numerics import cumsum, largest, wide_dtype
from keras_onlstm.utils.types import Tensor

__all__ = ["cumax"]


def cumax(x: Tensor, axis: int = -1) -> Tensor:
    """Cumulative sum of a softmax: `cumax(x)[k] = softmax(x)[0] + ... + softmax(x)[k]`.

    The result rises along `axis` from above 0 to exactly 1. It is the probability that a split
    point lies at or before position `k`: a soft, differentiable `(0, ..., 0, 1, ..., 1)`. Adding a
    constant to `x` changes nothing. Computed in float32 if `x` has half precision.

    Source: Shen et al. 2019, "Ordered Neurons", Eq. 6 to 8, https://arxiv.org/abs/1810.09536.

    Args:
        x: floating-point tensor of rank 1 or more, any shape. Integers are cast to the default
            float dtype.
        axis: integer, the axis along which to accumulate.

    Returns:
        Tensor of the shape and dtype of `x`, with values in [0, 1].

    Raises:
        ValueError: if `x` is a scalar or `axis` is not one of its axes.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm import cumax
    >>> gate = cumax(np.log([[1.0, 2.0, 5.0]]))
    >>> [round(float(value), 3) for value in gate[0]]
    [0.125, 0.375, 1.0]
    """
    x = ops.convert_to_tensor(x)
    rank = len(x.shape)
    if not -rank <= axis < rank:  # scalars have no axis
        raise ValueError(
            f"cumax sums along one axis: axis={axis} is none of those of a tensor of rank {rank}."
        )
    dtype = backend.standardize_dtype(x.dtype)
    if not backend.is_float_dtype(dtype):
        dtype = backend.floatx()
    x = ops.cast(x, wide_dtype(dtype))
    last = axis in (-1, rank - 1)
    if not last:
        x = ops.moveaxis(x, axis, -1)
    total = cumsum(ops.exp(x - ops.stop_gradient(largest(x, -1))))
    end = total[..., -1:]
    # Values of 1 are set, not computed, to be exact and the largest: XLA divides by multiplying
    # with a reciprocal, and a parallel sum may exceed its last value by one rounding.
    ratio = ops.where(total < end, total / end, ops.ones_like(total))
    if not last:
        ratio = ops.moveaxis(ratio, -1, axis)
    return ops.cast(ratio, dtype)
