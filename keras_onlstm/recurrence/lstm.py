"""The LSTM: its equations, their derivatives, and its recurrence.

The functions are pointwise: the gates may have any shape and layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keras import backend, ops

from keras_onlstm.recurrence.gated_step import GatedStep, GatedWeights, run_gated
from keras_onlstm.utils import Tensor
from keras_onlstm.utils.numerics import tanh


class Gates(NamedTuple):
    """The activated gates of an LSTM, each (...)."""

    input: Tensor
    forget: Tensor
    candidate: Tensor
    output: Tensor


def activated(input: Tensor, forget: Tensor, candidate: Tensor, output: Tensor) -> Gates:
    """The gates, from their pre-activations."""
    return Gates(ops.sigmoid(input), ops.sigmoid(forget), tanh(candidate), ops.sigmoid(output))


def cell_state(gates: Gates, c_tm1: Tensor) -> Tensor:
    """The new cell state."""
    return gates.forget * c_tm1 + gates.input * gates.candidate


def cell_derivatives(gates: Gates, c_tm1: Tensor) -> list[Tensor]:
    """The derivatives of the new cell state with respect to the input gate's, the forget gate's and
    the candidate's pre-activations, and to the old cell state.
    """
    i, f, candidate, _ = gates
    return [candidate * i * (1.0 - i), c_tm1 * f * (1.0 - f), i * (1.0 - candidate * candidate), f]


def hidden_state(output: Tensor, c: Tensor) -> Tensor:
    """The new hidden state, from the output gate and the cell state."""
    return output * tanh(c)


def output_derivatives(output: Tensor, c: Tensor) -> list[Tensor]:
    """The derivatives of the hidden state with respect to the output gate's pre-activation and to
    the cell state.
    """
    tanh_c = tanh(c)
    return [tanh_c * output * (1.0 - output), output * (1.0 - tanh_c * tanh_c)]


@dataclass(frozen=True)
class _LSTMStep(GatedStep):
    """The order of the gates in the kernels is Keras's: input, forget, candidate, output."""

    @property
    def width(self) -> int:
        return 4 * self.units

    def _gates(self, z):
        z = ops.reshape(z, (*ops.shape(z)[:-2], 4, self.units, ops.shape(z)[-1]))
        return activated(*(z[..., index, :, :] for index in range(4)))

    def _update(self, z, c_tm1, constants, save):
        gates = self._gates(z)
        c = cell_state(gates, c_tm1)
        return hidden_state(gates.output, c), c, (), z

    def _local_derivatives(self, saved, c_tm1, constants):
        gates = self._gates(saved)
        h_derivatives = output_derivatives(gates.output, cell_state(gates, c_tm1))
        return h_derivatives, cell_derivatives(gates, c_tm1)

    def _gates_grad(self, d_output, d_gates, *_):
        return ops.concatenate([*d_gates, d_output], 0)


def lstm(
    inputs: Tensor,
    states: Sequence[Tensor],
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor | None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """An LSTM with tanh and sigmoid over whole sequences, for training.

    `inputs` are (B, T, D), `states` h and c, each (B, U), the kernels (D, 4 U) and (U, 4 U), with
    the gates in the order of Keras, and `bias` is (4 U,). `mask` is boolean (B, T), `False` where a
    step keeps the states; masked inputs must be finite.

    Returns h of every step, (B, T, U), and the last c, (B, U), in float32 or wider.
    """
    dtype = backend.standardize_dtype(recurrent_kernel.dtype)
    step = _LSTMStep(recurrent_kernel.shape[0], dtype)
    weights = GatedWeights(kernel, recurrent_kernel, bias)
    rows, _, c, _ = run_gated(step, weights, inputs, states, mask, training=True)
    return ops.transpose(rows, (1, 0, 2)), c
