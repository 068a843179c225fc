"""The step of ON-LSTM for the engine: its equations with their derivatives.

The equations are those of `keras_onlstm.onlstm.step`, in the layout of `GatedStep`: features first.
The master gates, one value per chunk, broadcast over the units of a chunk. Axes as in
`keras_onlstm.onlstm.gates`; `...` is T or empty.
"""

from dataclasses import dataclass

from keras_onlstm.onlstm.gates import LSTM_GATES, gate_width, lstm_offset
from keras_onlstm.recurrence.gated_step import GatedStep
from keras_onlstm.recurrence.lstm import hidden_state, output_derivatives
from keras_onlstm.utils.keras_private import direct as ops
from keras_onlstm.utils.numerics import max_keepdims, precise_matmul, tanh, triangle


@dataclass(frozen=True)
class ONLSTMStep(GatedStep):
    """One step of ON-LSTM.

    Its second output is the cumax of both master gates' pre-activations, (T, 2, N, B), float32 or
    wider: 1 - the master input gate, and the master forget gate.
    """

    chunk_size: int

    @property
    def chunks(self) -> int:
        """The number of chunks, N."""
        return self.units // self.chunk_size

    @property
    def width(self) -> int:
        return gate_width(self.units, self.chunk_size)

    @property
    def cell_shape(self) -> tuple[int, int]:
        return self.chunks, self.chunk_size

    def _other_specs(self, batch):
        return [((2, self.chunks, batch), self.wide)]

    def _constants(self):
        """A matrix (N, N) for running sums, and scale and shift (4, 1, 1, 1) of `_gates`."""
        scales = [[[[1.0 if name == "candidate" else 0.5]]] for name in LSTM_GATES]
        scale = ops.convert_to_tensor(scales, dtype=self.wide)
        return triangle(self.chunks, self.wide), scale, 1.0 - scale

    def _exponentials(self, z):
        """exp(x - max(x)) of the master gates' pre-activations x, (..., 2, N, B)."""
        rows = z[..., : lstm_offset(self.units, self.chunk_size).start, :]
        pre = ops.reshape(rows, (*ops.shape(z)[:-2], 2, self.chunks, ops.shape(z)[-1]))
        return ops.exp(pre - max_keepdims(pre, -2))

    def _cumax(self, exponentials, running_sum):
        """cumax along the chunks. It ends with exactly 1, as `keras_onlstm.cumax` does."""
        total = precise_matmul(running_sum, exponentials)
        end = total[..., -1:, :]
        return ops.where(total < end, total / end, 1.0)

    @property
    def _saves_gates(self):
        # The LSTM's gates are saved instead of their pre-activations, unless that would round them.
        return self.dtype == self.wide

    def _lstm_rows(self, z):
        """The rows of the LSTM's gates, (..., 4, N, C, B)."""
        rows = z[..., lstm_offset(self.units, self.chunk_size), :]
        return ops.reshape(rows, (*ops.shape(z)[:-2], 4, *self.cell_shape, ops.shape(z)[-1]))

    def _gates(self, z, scale, shift):
        """The gates of the LSTM, (..., 4, N, C, B), with a single tanh.

        sigmoid(x) = (1 + tanh(x / 2)) / 2.
        """
        return scale * tanh(scale * self._lstm_rows(z)) + shift

    def _merged(self, cumax, i, f):
        """Both master gates, their overlap, and input and forget gate merged with them."""
        by_chunk = cumax[..., :, None, :]  # (..., 2, N, 1, B)
        i_tilde, f_tilde = 1.0 - by_chunk[..., 0, :, :, :], by_chunk[..., 1, :, :, :]  # Eq. 10, 9
        omega = i_tilde * f_tilde  # Eq. 11
        f_hat = f * omega + (f_tilde - omega)  # Eq. 12
        i_hat = i * omega + (i_tilde - omega)  # Eq. 13
        return i_tilde, f_tilde, omega, i_hat, f_hat

    def _update(self, z, c_tm1, constants, save):
        running_sum, *scales = constants
        cumax = self._cumax(self._exponentials(z), running_sum)
        gates = self._gates(z, *scales)
        output, candidate, i, f = ops.unstack(gates, 4)  # Eq. 1 to 4
        _, _, _, i_hat, f_hat = self._merged(cumax, i, f)
        c = f_hat * c_tm1 + i_hat * candidate  # Eq. 14
        h = ops.reshape(hidden_state(output, c), (self.units, -1))
        if save and self._saves_gates:
            masters = z[: lstm_offset(self.units, self.chunk_size).start]
            z = ops.concatenate([masters, ops.reshape(gates, (4 * self.units, -1))], 0)
        return h, c, (cumax,), z

    def _local_derivatives(self, saved, c_tm1, constants):
        """Derivatives of h; those of the new cell state with respect to candidate, input gate,
        forget gate, both cumax and old cell state; and the master gates' softmax (..., 2, N, B).
        """
        running_sum, *scales = constants
        exponentials = self._exponentials(saved)
        softmax = exponentials / ops.sum(exponentials, -2, keepdims=True)
        cumax = self._cumax(exponentials, running_sum)
        gates = self._lstm_rows(saved) if self._saves_gates else self._gates(saved, *scales)
        output, candidate, i, f = (gates[..., index, :, :, :] for index in range(4))
        i_tilde, f_tilde, omega, i_hat, f_hat = self._merged(cumax, i, f)
        h_derivatives = output_derivatives(output, f_hat * c_tm1 + i_hat * candidate)
        # c = omega * (f * c_tm1 + i * candidate) + (f_tilde - omega) * c_tm1
        #     + (i_tilde - omega) * candidate, with omega = i_tilde * f_tilde.
        # The derivative with respect to omega, negated.
        closed = c_tm1 * (1.0 - f) + candidate * (1.0 - i)
        c_derivatives = [
            i_hat * (1.0 - candidate * candidate),
            candidate * omega * i * (1.0 - i),
            c_tm1 * omega * f * (1.0 - f),
            f_tilde * closed - candidate,  # i_tilde is 1 - cumax, hence the signs
            c_tm1 - i_tilde * closed,
            f_hat,
        ]
        return h_derivatives, c_derivatives, softmax

    def _gates_grad(self, d_output, d_gates, d_others, others, constants):
        (softmax,), (d_cumax,), (*d_gates, d_input, d_forget) = others, d_others, d_gates
        # Sums over a chunk's units. Each softmax value contributes to its own and all later cumax.
        d_cumax = ops.stack([ops.sum(d_input, 1), ops.sum(d_forget, 1)]) + d_cumax  # (2, N, B)
        d_softmax = precise_matmul(ops.transpose(constants[0]), d_cumax)
        mean = ops.sum(softmax * d_softmax, 1, keepdims=True)
        d_masters = softmax * (d_softmax - mean)
        # The order of the gates in every kernel.
        rows = [ops.reshape(x, (self.units, -1)) for x in (d_output, *d_gates)]
        return ops.concatenate([ops.reshape(d_masters, (2 * self.chunks, -1)), *rows], 0)
