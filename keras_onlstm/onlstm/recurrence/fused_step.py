"""The fast recurrence's step and its gradients: the equations that all its versions share.

Three things make it fast. The inputs of all steps are multiplied with the kernel at once. The
states lie with the features first, so that the product with the recurrent kernel streams that
kernel in the order in which it is stored, and the master gates, one value a chunk, broadcast over
whole rows. And its gradients are derived here by hand: the loop back through time carries the
gradients of the two states alone and writes down those of the gate pre-activations, from which the
gradients of the weights and of the inputs follow in one large product each, where automatic
differentiation would add up a whole kernel's gradient at every step.

For the way back each step keeps its gates, (K, B), and the cell state before it, (N, C, B). Of half
precision it keeps the pre-activations in their place, which are exact at half the size, and
activates them again.

Axes as in `keras_onlstm.onlstm.step`, features first.
"""

from typing import NamedTuple

from keras import activations, ops

from keras_onlstm.onlstm.step import GATES, LSTM_GATES, MASTER_GATES, gate_offsets, lstm_offset
from keras_onlstm.utils.numerics import exact_activation, largest, mean, triangle, wide_dtype
from keras_onlstm.utils.types import Tensor

__all__ = ["NOT_FUSED", "Given", "Sizes", "Step", "advance", "large_products", "retreat"]

# In these words, with a NotImplementedError, every version refuses what it does not have.
NOT_FUSED = (
    "The fused recurrence has no forward-mode derivatives, no torch.vmap and, except on JAX, no "
    "second derivatives: ONLSTM(fused=False) has them."
)


class Sizes(NamedTuple):
    """What the shapes follow from. Hashable: compiled functions are kept by it."""

    units: int
    chunk_size: int
    dtype: str  # of inputs, hidden states and weights

    @property
    def chunks(self) -> int:
        return self.units // self.chunk_size

    @property
    def wide(self) -> str:
        return wide_dtype(self.dtype)

    @property
    def offsets(self) -> dict[str, slice]:
        return gate_offsets(self.units, self.chunk_size)

    @property
    def lstm_offset(self) -> slice:
        return lstm_offset(self.units, self.chunk_size)


class Given(NamedTuple):
    """The tensors of a `Problem`, in the dtypes that the fused recurrence computes in."""

    inputs: Tensor  # (B, T, D)
    h: Tensor  # (B, U)
    c: Tensor  # (B, U), wide
    kernel: Tensor  # (D, K)
    recurrent_kernel: Tensor  # (U, K)
    bias: Tensor | None  # (K,)
    mask: Tensor | None  # (B, T)
    recurrent_mask: Tensor | None  # (B, U)


class Step(NamedTuple):
    """One step of the recurrence."""

    h: Tensor  # (U, B)
    c: Tensor  # (N, C, B), wide
    saved: Tensor  # (K, B) what the way back needs beside the cell states
    forget_distance: Tensor  # (B,), wide
    input_distance: Tensor  # (B,), wide


def _rise(weights):
    """Running sum over the chunks of (N, B), to exactly 1 as `cumax` has it."""
    total = triangle(weights.shape[0], weights.dtype) @ weights
    end = total[-1:]
    return ops.where(total < end, total / end, ops.ones_like(total))


def _activate(z, sizes):
    """Gate pre-activations -> gates, (K, B); for the master gates the weights that they sum up."""
    z = ops.cast(z, sizes.wide)
    weights = []
    for name in MASTER_GATES:
        pre = z[sizes.offsets[name]]  # (N, B)
        exponentials = ops.exp(pre - largest(pre, 0))
        weights.append(exponentials / ops.sum(exponentials, 0, keepdims=True))
    # sigmoid(x) = (1 + tanh(x / 2)) / 2: all gates in one pass of one function.
    scale = [[[1.0 if name == "candidate" else 0.5]] for name in LSTM_GATES]
    scale = ops.convert_to_tensor(scale, dtype=sizes.wide)  # (4, 1, 1)
    tanh = exact_activation(activations.tanh, sizes.wide)
    pre = ops.reshape(z[sizes.lstm_offset], (len(LSTM_GATES), sizes.units, -1))
    gates = scale * tanh(scale * pre) + (1.0 - scale)
    return ops.concatenate([*weights, ops.reshape(gates, (len(LSTM_GATES) * sizes.units, -1))], 0)


class _Gates(NamedTuple):
    input_weights: Tensor  # (N, B) softmax of which the master input gate is 1 - the running sum
    forget_weights: Tensor  # (N, B) softmax of which the master forget gate is the running sum
    i_master: Tensor  # (N, B)
    f_master: Tensor  # (N, B)
    i_tilde: Tensor  # (N, 1, B)
    f_tilde: Tensor  # (N, 1, B)
    omega: Tensor  # (N, 1, B)
    output: Tensor  # (N, C, B), as the next three
    candidate: Tensor
    input: Tensor
    forget: Tensor


def _unpack(gates, sizes):
    input_weights = gates[sizes.offsets["master_input"]]
    forget_weights = gates[sizes.offsets["master_forget"]]
    i_master = 1.0 - _rise(input_weights)
    f_master = _rise(forget_weights)
    i_tilde, f_tilde = ops.expand_dims(i_master, 1), ops.expand_dims(f_master, 1)
    shape = (len(LSTM_GATES), sizes.chunks, sizes.chunk_size, -1)
    by_unit = ops.reshape(gates[sizes.lstm_offset], shape)
    return _Gates(
        input_weights,
        forget_weights,
        i_master,
        f_master,
        i_tilde,
        f_tilde,
        i_tilde * f_tilde,
        **{name: by_unit[place] for place, name in enumerate(LSTM_GATES)},
    )


def advance(z: Tensor, h_tm1: Tensor, c_tm1: Tensor, keep: Tensor | None, sizes: Sizes) -> Step:
    """One step, from the gate pre-activations on: equations 6 to 15.

    Args:
        z: (K, B).
        h_tm1: (U, B).
        c_tm1: (N, C, B), wide.
        keep: (B,) boolean, `False` where the step is skipped, or `None`.
        sizes: `Sizes`.

    Returns:
        `Step`.
    """
    gates = _activate(z, sizes)
    g = _unpack(gates, sizes)
    f_hat = g.forget * g.omega + (g.f_tilde - g.omega)
    i_hat = g.input * g.omega + (g.i_tilde - g.omega)
    c = f_hat * c_tm1 + i_hat * g.candidate
    h = g.output * exact_activation(activations.tanh, sizes.wide)(c)
    h = ops.cast(ops.reshape(h, (sizes.units, -1)), sizes.dtype)
    forget_distance = 1.0 - mean(ops.transpose(g.f_master))
    input_distance = mean(ops.transpose(g.i_master))
    if keep is not None:
        h, c = ops.where(keep, h, h_tm1), ops.where(keep, c, c_tm1)
        forget_distance = ops.where(keep, forget_distance, 0.0)
        input_distance = ops.where(keep, input_distance, 0.0)
    saved = gates if sizes.dtype == sizes.wide else z
    return Step(h, c, saved, forget_distance, input_distance)


def retreat(
    dh: Tensor,
    dc: Tensor,
    saved: Tensor,
    c_tm1: Tensor,
    c: Tensor,
    d_forget_distance: Tensor,
    d_input_distance: Tensor,
    keep: Tensor | None,
    sizes: Sizes,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The gradients of `advance`.

    Args:
        dh: (U, B) gradient with respect to the new hidden state, wide.
        dc: (N, C, B) gradient with respect to the new cell state.
        saved: (K, B) as `advance` left it.
        c_tm1: (N, C, B) cell state before the step.
        c: (N, C, B) cell state after it.
        d_forget_distance: (B,), wide.
        d_input_distance: (B,), wide.
        keep: as in `advance`.
        sizes: `Sizes`.

    Returns:
        Gradients with respect to z (K, B), to h_tm1 around the product (U, B), which is `None`
        without `keep`, and to c_tm1.
    """
    n = sizes.chunks
    passed_h = passed_c = None
    if keep is not None:
        passed_h, passed_c = ops.where(keep, 0.0, dh), ops.where(keep, 0.0, dc)
        dh, dc = ops.where(keep, dh, 0.0), ops.where(keep, dc, 0.0)
        d_forget_distance = ops.where(keep, d_forget_distance, 0.0)
        d_input_distance = ops.where(keep, d_input_distance, 0.0)
    g = _unpack(saved if sizes.dtype == sizes.wide else _activate(saved, sizes), sizes)
    dh = ops.reshape(dh, (n, sizes.chunk_size, -1))  # (N, C, B)
    tanh_c = exact_activation(activations.tanh, sizes.wide)(c)
    d_output = dh * tanh_c * g.output * (1.0 - g.output)
    dc = dc + dh * g.output * (1.0 - tanh_c * tanh_c)

    f_hat = g.forget * g.omega + (g.f_tilde - g.omega)
    i_hat = g.input * g.omega + (g.i_tilde - g.omega)
    d_f_hat, d_i_hat = dc * c_tm1, dc * g.candidate
    d_candidate = dc * i_hat * (1.0 - g.candidate * g.candidate)
    d_forget = d_f_hat * g.omega * g.forget * (1.0 - g.forget)
    d_input = d_i_hat * g.omega * g.input * (1.0 - g.input)

    # To the master gates, over the units of a chunk: (N, B).
    from_f_hat, from_i_hat = ops.sum(d_f_hat, 1), ops.sum(d_i_hat, 1)
    d_omega = (
        ops.sum(d_f_hat * g.forget, 1) - from_f_hat + ops.sum(d_i_hat * g.input, 1) - from_i_hat
    )
    d_f_master = from_f_hat + d_omega * g.i_master - d_forget_distance / n
    d_i_master = from_i_hat + d_omega * g.f_master + d_input_distance / n
    down = ops.transpose(triangle(n, sizes.wide))

    def through_cumax(gradient, weights):
        gradient = down @ gradient  # each weight counts in its own value and in all after it
        return weights * (gradient - ops.sum(weights * gradient, 0, keepdims=True))

    by_unit = {"output": d_output, "candidate": d_candidate, "input": d_input, "forget": d_forget}
    d_gates = {name: ops.reshape(d, (sizes.units, -1)) for name, d in by_unit.items()}
    d_gates["master_input"] = through_cumax(-d_i_master, g.input_weights)
    d_gates["master_forget"] = through_cumax(d_f_master, g.forget_weights)
    dz = ops.concatenate([d_gates[name] for name in GATES], 0)
    dc_tm1 = dc * f_hat
    return dz, passed_h, dc_tm1 if passed_c is None else dc_tm1 + passed_c


def large_products(
    dz: Tensor, x: Tensor, h: Tensor, tensors: Given
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What follows from the gradients of all pre-activations at once.

    Args:
        dz: (T, B, K).
        x: (T, B, D) the inputs, time first.
        h: (T, B, U) hidden state after every step.
        tensors: `Given`.

    Returns:
        Gradients with respect to the inputs (B, T, D), the kernel (D, K), the recurrent kernel
        (U, K) and the bias (K,).
    """
    first = ops.expand_dims(tensors.h, 0)[: ops.shape(h)[0]]  # no row where there is no step
    read = ops.concatenate([first, h[:-1]], 0)  # (T, B, U)
    if tensors.recurrent_mask is not None:
        read = read * tensors.recurrent_mask
    shape = ops.shape(x)
    dz, x, read = (ops.reshape(rows, (-1, rows.shape[-1])) for rows in (dz, x, read))
    d_x = ops.reshape(dz @ ops.transpose(tensors.kernel), shape)
    d_inputs = ops.transpose(d_x, (1, 0, 2))
    return d_inputs, ops.transpose(x) @ dz, ops.transpose(read) @ dz, ops.sum(dz, 0)
