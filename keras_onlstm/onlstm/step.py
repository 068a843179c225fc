"""One step of ON-LSTM, written as its equations (Shen et al. 2019, Eq. 6 to 15).

The cell and the reference recurrence use it; the fused step combines the gates in another way.
`keras_onlstm.onlstm.gates` defines the slices of the gates and the axes.
"""

from typing import NamedTuple

from keras import ops

from keras_onlstm.onlstm.cumax import cumax
from keras_onlstm.onlstm.gates import (
    GATES,
    LSTM_GATES,
    MASTER_GATES,
    gate_offsets,
    gate_width,
    lstm_offset,
)
from keras_onlstm.utils.numerics import exact_activation, matmul, wide_dtype
from keras_onlstm.utils.types import Activation, Tensor

__all__ = [
    "GATES",
    "LSTM_GATES",
    "MASTER_GATES",
    "StepOutput",
    "gate_offsets",
    "gate_width",
    "lstm_offset",
    "project",
    "step",
]


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
    """Equations 6 to 15 for one time step, from the pre-activations.

    Args:
        z: (B, K) gate pre-activations `x W + h_tm1 R + b`, in the order of `GATES`.
        c_tm1: (B, U) cell state before the step.
        chunk_size: integer, C.
        activation: function of the candidate and of the new cell state (tanh in the paper).
        recurrent_activation: function of the output, input and forget gates (sigmoid in the paper).

    Returns:
        `StepOutput`, in float32 or, where `z` is float64, in float64.
    """
    dtype = wide_dtype(z.dtype)
    z, c_tm1 = ops.cast(z, dtype), ops.cast(c_tm1, dtype)
    activation = exact_activation(activation, dtype)
    recurrent_activation = exact_activation(recurrent_activation, dtype)
    units = c_tm1.shape[-1]
    starts = [place.start for place in gate_offsets(units, chunk_size).values()]
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
