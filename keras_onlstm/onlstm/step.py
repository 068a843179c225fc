"""cumax, and one step of ON-LSTM, written as its equations (Shen et al. 2019, Eq. 6 to 15)."""

from typing import NamedTuple

from keras import backend, ops

from keras_onlstm.onlstm.gates import GATES, gate_offsets
from keras_onlstm.utils import Activation, Tensor
from keras_onlstm.utils.numerics import cumsum, exact_activation, matmul, max_keepdims, wide_dtype


def cumax(x: Tensor, axis: int = -1) -> Tensor:
    """Cumulative sum of a softmax: `cumax(x)[k] = softmax(x)[0] + ... + softmax(x)[k]`.

    The result rises along `axis` from above 0 to exactly 1. It is the probability that a split
    point lies at or before position `k`: a soft, differentiable `(0, ..., 0, 1, ..., 1)`. Adding a
    constant to `x` changes nothing. Half precision is computed in float32.

    Source: Shen et al. 2019, "Ordered Neurons", Eq. 6 to 8, https://arxiv.org/abs/1810.09536.

    Args:
        x: tensor of rank 1 or more. Integers are cast to the default float dtype.
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
        raise ValueError(f"axis={axis} is out of bounds for a tensor of rank {rank}.")
    dtype = backend.standardize_dtype(x.dtype)
    if not backend.is_float_dtype(dtype):
        dtype = backend.floatx()
    x = ops.cast(x, wide_dtype(dtype))
    last = axis in (-1, rank - 1)
    if not last:
        x = ops.moveaxis(x, axis, -1)
    total = cumsum(ops.exp(x - ops.stop_gradient(max_keepdims(x, -1))))
    end = total[..., -1:]
    # The value 1 is set, not computed, to be exact and the maximum: XLA divides by multiplying with
    # a reciprocal, and a parallel sum may exceed its last value by one rounding.
    ratio = ops.where(total < end, total / end, ops.ones_like(total))
    if not last:
        ratio = ops.moveaxis(ratio, -1, axis)
    return ops.cast(ratio, dtype)


class StepOutput(NamedTuple):
    """The results of one step, in float32 or wider."""

    h: Tensor  # (B, U) hidden state, the output
    c: Tensor  # (B, U) cell state
    master_forget: Tensor  # (B, N) rises along the chunks to 1
    master_input: Tensor  # (B, N) falls along the chunks to 0


def project(inputs: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """The inputs' part of the gate pre-activations, `x W + b`: (..., D) -> (..., K)."""
    projected = matmul(inputs, kernel)
    return projected if bias is None else projected + ops.convert_to_tensor(bias, projected.dtype)


def step(
    z: Tensor,
    c_tm1: Tensor,
    *,
    chunk_size: int,
    activation: Activation,
    recurrent_activation: Activation,
) -> StepOutput:
    """Equations 6 to 15 for one time step, in float32, or in float64 if `z` is float64.

    `z`, (B, K), are the pre-activations `x W + h_tm1 R + b`. In the paper `activation` is tanh and
    `recurrent_activation` is sigmoid.
    """
    dtype = wide_dtype(z.dtype)
    z, c_tm1 = ops.cast(z, dtype), ops.cast(c_tm1, dtype)
    activation = exact_activation(activation, dtype)
    recurrent_activation = exact_activation(recurrent_activation, dtype)
    units = c_tm1.shape[-1]
    starts = [offset.start for offset in gate_offsets(units, chunk_size).values()]
    pre = dict(zip(GATES, ops.split(z, starts[1:], axis=-1), strict=True))

    def by_chunk(x):
        return ops.reshape(x, (-1, units // chunk_size, chunk_size))  # (B, N, C)

    # Eq. 9 and 10, the master gates: one value per chunk.
    f_master = cumax(pre["master_forget"])  # (B, N)
    i_master = 1.0 - cumax(pre["master_input"])  # (B, N)
    f_tilde = ops.expand_dims(f_master, -1)  # (B, N, 1)
    i_tilde = ops.expand_dims(i_master, -1)  # (B, N, 1)

    # Eq. 1 to 4, the gates of the LSTM.
    f = by_chunk(recurrent_activation(pre["forget"]))
    i = by_chunk(recurrent_activation(pre["input"]))
    o = recurrent_activation(pre["output"])
    c_hat = by_chunk(activation(pre["candidate"]))

    # Eq. 11 to 14: the LSTM's gates apply where the master gates overlap, elsewhere only the master
    # gates.
    omega = f_tilde * i_tilde
    f_hat = f * omega + (f_tilde - omega)
    i_hat = i * omega + (i_tilde - omega)
    c = ops.reshape(f_hat * by_chunk(c_tm1) + i_hat * c_hat, (-1, units))  # (B, U)
    h = o * activation(c)  # (B, U)
    return StepOutput(h, c, f_master, i_master)
