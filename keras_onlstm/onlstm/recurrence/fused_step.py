"""The fast recurrence's step and its gradients: the equations that all its versions share.

Four things make it fast. The inputs of all steps are multiplied with the kernel at once. The states
lie with the features first, so that the product with the recurrent kernel streams that kernel in
the order in which it is stored, and the master gates, one value a chunk, broadcast over whole rows.
The gradients are derived here by hand: the loop back through time carries the gradients of the two
states alone and writes down those of the gate pre-activations, from which the gradients of the
weights and of the inputs follow in one large product each, where automatic differentiation would
add up a whole kernel's gradient at every step. And a step back is linear in the gradients that it
is given: what they are multiplied with, the `Slopes`, can be had of all steps at once.

For the way back each step keeps the cell state before it, (N, C, B), and its pre-activations,
(K, B): a large step in place of those of the LSTM's gates the gates, where they are no wider. To
compute these again takes a large step longer than to write them down, and a small one less.

Axes as in `keras_onlstm.onlstm.step`, features first; `...` is nothing or T.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

from keras import activations, backend

from keras_onlstm.onlstm.step import LSTM_GATES, MASTER_GATES, gate_width, lstm_offset
from keras_onlstm.utils.keras_private import direct as ops
from keras_onlstm.utils.numerics import (
    exact_activation,
    largest,
    precise,
    triangle,
    wide_dtype,
)
from keras_onlstm.utils.types import Tensor

__all__ = [
    "NOT_FUSED",
    "Constants",
    "Given",
    "Sizes",
    "Slopes",
    "Step",
    "advance",
    "constants",
    "distances",
    "is_small",
    "large_products",
    "retreat",
    "slopes",
    "through_distances",
]

# In these words, with a NotImplementedError, every version refuses what it does not have.
NOT_FUSED = (
    "The fused recurrence has no forward-mode derivatives, no torch.vmap and, except on JAX, no "
    "second derivatives: ONLSTM(fused=False) has them."
)

# Below this many entries of the recurrent kernel, what counts is how many operations a step has,
# not how long each takes: what can be done outside the loop is. In TensorFlow compiled steps, which
# are one operation, are faster, but a small layer does not earn what their compilation takes.
_SMALL = {"tensorflow": 2**12, "jax": 2**17, "torch": 2**17}


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


def is_small(sizes: Sizes) -> bool:
    """Whether operations of one step take less time than it takes to start them."""
    entries = sizes.units * gate_width(sizes.units, sizes.chunk_size)
    return entries < _SMALL[backend.backend()]


def _saves_gates(sizes):
    return sizes.dtype == sizes.wide and not is_small(sizes)


class Constants(NamedTuple):
    """What every step multiplies with, made once."""

    rise: Tensor  # (N, N), a product with it is a running sum
    scale: Tensor  # (4, 1, 1, 1), by which `_gates` turns tanh into the gates of the LSTM


class Step(NamedTuple):
    """One step of the recurrence."""

    h: Tensor  # (U, B)
    c: Tensor  # (N, C, B), wide
    rises: Tensor  # (2, N, B), wide: cumax of both master gates
    saved: Tensor | None  # (K, B), kept for the way back as the cell states are


class Slopes(NamedTuple):
    """What a step back multiplies the gradients with that it is given. All wide."""

    by_h: Tensor  # (..., 2, N, C, B) to the output gate, and to the cell state after the step
    by_c: Tensor  # (..., 6, N, C, B) to candidate, input, forget, both rises, and c before
    weights: Tensor  # (..., 2, N, B) of which the rises are the running sums
    passed: Tensor | None  # (..., B) 1 where the step is skipped, else 0


def constants(sizes: Sizes) -> Constants:
    """`Constants` for one call of the recurrence."""
    # sigmoid(x) = (1 + tanh(x / 2)) / 2: all gates in one pass of one function.
    scale = [[[[1.0 if name == "candidate" else 0.5]]] for name in LSTM_GATES]
    return Constants(
        triangle(sizes.chunks, sizes.wide), ops.convert_to_tensor(scale, dtype=sizes.wide)
    )


def _exponentials(z, sizes):
    """Those of the master gates' pre-activations, (..., 2, N, B); the largest is 1."""
    shape = (*ops.shape(z)[:-2], len(MASTER_GATES), sizes.chunks, ops.shape(z)[-1])
    pre = ops.reshape(z[..., : lstm_offset(sizes.units, sizes.chunk_size).start, :], shape)
    return ops.exp(pre - largest(pre, -2))


def _rises(exponentials, fixed):
    """Running sums along the chunks, to exactly 1 as `cumax` has it."""
    total = precise(fixed.rise, exponentials)
    end = total[..., -1:, :]
    return ops.where(total < end, total / end, 1.0)


def _of_lstm(z, sizes):
    """The rows of the LSTM's gates, (..., 4, N, C, B)."""
    shape = (len(LSTM_GATES), sizes.chunks, sizes.chunk_size)
    return ops.reshape(z[..., sizes.lstm_offset, :], (*ops.shape(z)[:-2], *shape, ops.shape(z)[-1]))


def _gates(z, fixed, sizes):
    """The gates of the LSTM, (..., 4, N, C, B)."""
    tanh = exact_activation(activations.tanh, sizes.wide)
    return fixed.scale * tanh(fixed.scale * _of_lstm(z, sizes)) + (1.0 - fixed.scale)


def advance(
    z: Tensor,
    h_tm1: Tensor,
    c_tm1: Tensor,
    keep: Tensor | None,
    fixed: Constants,
    *,
    sizes: Sizes,
    save: bool,
) -> Step:
    """One step, from the gate pre-activations on: equations 6 to 15.

    Args:
        z: (K, B).
        h_tm1: (U, B).
        c_tm1: (N, C, B), wide.
        keep: (B,) boolean, `False` where the step is skipped, or `None`.
        fixed: `Constants`.
        sizes: `Sizes`.
        save: whether there is a way back.

    Returns:
        `Step`, whose `saved` is `None` without one.
    """
    wide = ops.cast(z, sizes.wide)
    rises = _rises(_exponentials(wide, sizes), fixed)
    by_chunk = ops.expand_dims(rises, 2)  # (2, N, 1, B)
    i_tilde, f_tilde = 1.0 - by_chunk[0], by_chunk[1]
    omega = i_tilde * f_tilde
    gates = _gates(wide, fixed, sizes)
    output, candidate, i, f = ops.unstack(gates, 4)
    f_hat = f * omega + (f_tilde - omega)
    i_hat = i * omega + (i_tilde - omega)
    c = f_hat * c_tm1 + i_hat * candidate
    h = output * exact_activation(activations.tanh, sizes.wide)(c)
    h = ops.cast(ops.reshape(h, (sizes.units, -1)), sizes.dtype)
    if keep is not None:
        h, c = ops.where(keep, h, h_tm1), ops.where(keep, c, c_tm1)
    saved = z if save else None
    if save and _saves_gates(sizes):
        masters = z[: sizes.lstm_offset.start]
        saved = ops.concatenate([masters, ops.reshape(gates, (4 * sizes.units, -1))], 0)
    return Step(h, c, rises, saved)


def distances(rises: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
    """The distances of all steps.

    Args:
        rises: (T, 2, N, B), of `Step`.
        keep: (T, B) boolean, or `None`.

    Returns:
        Forget distance and input distance, both (T, B); 0 where the step is skipped.
    """
    means = ops.sum(rises, 2) / rises.shape[2]  # (T, 2, B)
    results = 1.0 - means[:, 1], 1.0 - means[:, 0]
    if keep is None:
        return results
    forget, input = (ops.where(keep, x, 0.0) for x in results)
    return forget, input


def through_distances(
    d_forget: Tensor, d_input: Tensor, keep: Tensor | None, sizes: Sizes
) -> Tensor:
    """The gradients of `distances` with respect to every value of the rises, (T, 2, 1, B)."""
    gradient = ops.stack([d_input, d_forget], 1) / -sizes.chunks  # (T, 2, B)
    if keep is not None:
        gradient = ops.where(ops.expand_dims(keep, 1), gradient, 0.0)
    return ops.expand_dims(gradient, 2)


def slopes(
    saved: Tensor, c_tm1: Tensor, c: Tensor, keep: Tensor | None, fixed: Constants, sizes: Sizes
) -> Slopes:
    """What `retreat` needs of one step, or of all.

    Args:
        saved: (..., K, B), as `advance` left it.
        c_tm1: (..., N, C, B) cell state before the step.
        c: (..., N, C, B) cell state after it.
        keep: (..., B) boolean, or `None`.
        fixed: `Constants`.
        sizes: `Sizes`.

    Returns:
        `Slopes`.
    """
    wide = ops.cast(saved, sizes.wide)
    exponentials = _exponentials(wide, sizes)
    weights = exponentials / ops.sum(exponentials, -2, keepdims=True)
    masters = ops.expand_dims(_rises(exponentials, fixed), -2)  # (..., 2, N, 1, B)
    i_tilde, f_tilde = 1.0 - masters[..., 0, :, :, :], masters[..., 1, :, :, :]
    omega = i_tilde * f_tilde
    gates = _of_lstm(wide, sizes) if _saves_gates(sizes) else _gates(wide, fixed, sizes)
    output, candidate, i, f = (gates[..., place, :, :, :] for place in range(len(LSTM_GATES)))
    tanh_c = exact_activation(activations.tanh, sizes.wide)(c)
    f_hat = f * omega + (f_tilde - omega)
    i_hat = i * omega + (i_tilde - omega)
    by_h = [tanh_c * output * (1.0 - output), output * (1.0 - tanh_c * tanh_c)]
    by_c = [
        i_hat * (1.0 - candidate * candidate),
        candidate * omega * i * (1.0 - i),
        c_tm1 * omega * f * (1.0 - f),
        f_tilde * (c_tm1 * (1.0 - f) + candidate * (1.0 - i)) - candidate,  # i_tilde falls with it
        c_tm1 - i_tilde * (c_tm1 * (1.0 - f) + candidate * (1.0 - i)),
        f_hat,
    ]
    passed = None
    if keep is not None:
        wide_keep = keep[..., None, None, :]
        by_h = [ops.where(wide_keep, x, 0.0) for x in by_h]
        *by_gates, f_hat = by_c
        by_c = [ops.where(wide_keep, x, 0.0) for x in by_gates]
        by_c.append(ops.where(wide_keep, f_hat, 1.0))
        passed = 1.0 - ops.cast(keep, sizes.wide)
    return Slopes(ops.stack(by_h, -4), ops.stack(by_c, -4), weights, passed)


def retreat(
    dh: Tensor, dc: Tensor, slope: Slopes, d_rises: Tensor, fixed: Constants, sizes: Sizes
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The gradients of `advance`, and of the distances.

    Args:
        dh: (U, B) gradient with respect to the new hidden state, wide.
        dc: (N, C, B) gradient with respect to the new cell state.
        slope: `Slopes` of the step.
        d_rises: (2, 1, B) gradient with respect to every value of the rises.
        fixed: `Constants`.
        sizes: `Sizes`.

    Returns:
        Gradients with respect to z (K, B), to h_tm1 around the product (U, B), which is `None`
        where no step is skipped, and to c_tm1.
    """
    by_chunk = ops.reshape(dh, (sizes.chunks, sizes.chunk_size, -1))  # (N, C, B)
    d_output, through_h = ops.unstack(slope.by_h * by_chunk, 2)
    from_c = slope.by_c * (dc + through_h)  # (6, N, C, B)
    # To the master gates, over the units of a chunk; each weight counts in its own value of the
    # rise and in all after it.
    d_masters = ops.sum(from_c[3:5], 2) + d_rises  # (2, N, B)
    gradient = precise(ops.transpose(fixed.rise), d_masters)
    mean = ops.sum(slope.weights * gradient, 1, keepdims=True)
    d_pre = slope.weights * (gradient - mean)
    # In the order of the gates in every kernel.
    rows = [(d_pre, 2 * sizes.chunks), (d_output, sizes.units), (from_c[:3], 3 * sizes.units)]
    dz = ops.concatenate([ops.reshape(x, (width, -1)) for x, width in rows], 0)
    return dz, None if slope.passed is None else dh * slope.passed, from_c[5]


def large_products(
    dz: Tensor,
    x: Tensor,
    h: Tensor,
    tensors: Given,
    product: Callable[[Tensor, Tensor], Tensor] = operator.matmul,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What follows from the gradients of all pre-activations at once.

    Args:
        dz: (T, B, K).
        x: (T, B, D) the inputs, time first.
        h: (T, B, U) hidden state after every step.
        tensors: `Given`.
        product: of two matrices.

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
    d_x = ops.reshape(product(dz, ops.transpose(tensors.kernel)), shape)
    d_inputs = ops.transpose(d_x, (1, 0, 2))
    d_kernel, d_recurrent_kernel = (product(ops.transpose(rows), dz) for rows in (x, read))
    return d_inputs, d_kernel, d_recurrent_kernel, ops.sum(dz, 0)
