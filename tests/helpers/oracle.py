"""ON-LSTM in float64 NumPy, written from equations 6 to 15 of Shen et al. 2019.

It shares no code with the package. The columns of the weights are, in this order: master input gate
(N), master forget gate (N), output gate (U), candidate (U), input gate (U), forget gate (U), where
N = U / C and unit j belongs to chunk j // C.

Masks work like in Keras: a masked step does not change the states. Its output is the previous one,
or zeros in the first step or with `zero_output_for_mask`. Its distances are 0.
"""

from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    outputs: np.ndarray  # (B, T, U)
    h: np.ndarray  # (B, U)
    c: np.ndarray  # (B, U)
    forget_distance: np.ndarray  # (B, T)
    input_distance: np.ndarray  # (B, T)


class Problem(NamedTuple):
    """Random inputs, states and weights, which are all different."""

    x: np.ndarray  # (B, T, D)
    h: np.ndarray  # (B, U)
    c: np.ndarray  # (B, U)
    kernel: np.ndarray  # (D, K)
    recurrent_kernel: np.ndarray  # (U, K)
    bias: np.ndarray  # (K,)

    @property
    def states(self):
        return [self.h, self.c]

    @property
    def weights(self):
        return [self.kernel, self.recurrent_kernel, self.bias]


def draw(units, chunk_size, batch=4, time=5, input_dim=3, seed=0):
    """Draws a `Problem`."""
    rng = np.random.default_rng(seed)
    width = 4 * units + 2 * (units // chunk_size)
    shapes = [(batch, time, input_dim), (batch, units), (batch, units)]
    shapes += [(input_dim, width), (units, width), (width,)]
    scales = [1.0, 0.7, 0.9, 0.6, 0.5, 0.4]
    return Problem(*(rng.normal(0.1, s, shape) for s, shape in zip(scales, shapes, strict=True)))


def masks(batch, time):
    """Boolean masks (B, T) by name. Their rows differ where possible."""
    steps, rows = np.arange(time)[None, :], np.arange(batch)[:, None]
    holes = (steps + rows) % 3 != 1
    return {
        "left": steps >= np.minimum(rows, time - 1),
        "right": steps < np.maximum(time - rows, 1),
        "holes": holes,
        "a row without any": holes & (rows != 1),
        "all": np.zeros((batch, time), bool),
    }


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def cumax(x):
    """Eq. 6, along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.cumsum(e / e.sum(-1, keepdims=True), -1)


def step(z, c_tm1, chunk_size, activation=np.tanh, recurrent_activation=sigmoid):
    """Computes h, c (B, U) and both master gates (B, N) from pre-activations (B, K)."""
    units = c_tm1.shape[1]
    chunks = units // chunk_size
    master_input = 1.0 - cumax(z[:, :chunks])
    master_forget = cumax(z[:, chunks : 2 * chunks])
    start = 2 * chunks
    o = recurrent_activation(z[:, start : start + units])
    c_hat = activation(z[:, start + units : start + 2 * units])
    i = recurrent_activation(z[:, start + 2 * units : start + 3 * units])
    f = recurrent_activation(z[:, start + 3 * units : start + 4 * units])
    f_tilde = np.repeat(master_forget, chunk_size, -1)
    i_tilde = np.repeat(master_input, chunk_size, -1)
    omega = f_tilde * i_tilde
    f_hat = f * omega + (f_tilde - omega)
    i_hat = i * omega + (i_tilde - omega)
    c = f_hat * c_tm1 + i_hat * c_hat
    return o * activation(c), c, master_forget, master_input


def onlstm(
    x,
    h,
    c,
    kernel,
    recurrent_kernel,
    bias,
    *,
    chunk_size,
    mask=None,
    go_backwards=False,
    zero_output_for_mask=False,
    input_factors=1.0,
    recurrent_factors=1.0,
    recurrent_kernel_factors=1.0,
    activation=np.tanh,
    recurrent_activation=sigmoid,
):
    """Processes a sequence: a `Result`. The factors are scaled dropout masks."""
    batch, time, _ = x.shape
    if mask is None:
        mask = np.ones((batch, time), bool)
    order = range(time)[::-1] if go_backwards else range(time)
    output = np.zeros_like(h)
    outputs, forget_distances, input_distances = [], [], []
    for t in order:
        z = (x[:, t] * input_factors) @ kernel + bias
        z = z + (h * recurrent_factors) @ (recurrent_kernel * recurrent_kernel_factors)
        new_h, new_c, master_forget, master_input = step(
            z, c, chunk_size, activation, recurrent_activation
        )
        counts = mask[:, t, None]
        h, c = np.where(counts, new_h, h), np.where(counts, new_c, c)
        output = np.where(counts, new_h, 0.0 if zero_output_for_mask else output)
        outputs.append(output)
        forget_distances.append(np.where(mask[:, t], 1.0 - master_forget.mean(-1), 0.0))
        input_distances.append(np.where(mask[:, t], master_input.mean(-1), 0.0))
    distances = np.stack(forget_distances, 1), np.stack(input_distances, 1)
    return Result(np.stack(outputs, 1), h, c, *distances)
