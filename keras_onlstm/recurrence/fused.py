"""The fast recurrence: what its versions for the backends have in common.

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

Axes as in `keras_onlstm.step`, features first.
"""

from typing import Any, NamedTuple

from keras import activations, backend, ops

from keras_onlstm.numerics import exact_activation, largest, mean, triangle, wide_dtype
from keras_onlstm.recurrence.reference import Recurrence
from keras_onlstm.step import GATES

__all__ = [
    "NOT_FUSED",
    "Sizes",
    "Step",
    "advance",
    "column_groups",
    "large_products",
    "refusal",
    "retreat",
    "run",
]

# In these words, with a NotImplementedError, every version refuses what it does not have.
NOT_FUSED = (
    "The fused recurrence has no forward-mode derivatives, no torch.vmap and, except on JAX, no "
    "second derivatives: ONLSTM(fused=False) has them."
)
_LSTM_GATES = GATES[2:]  # those with one value a unit


class Sizes(NamedTuple):
    """What the shapes follow from. Hashable: compiled functions are kept by it."""

    units: int
    chunk_size: int
    dtype: str  # of inputs, hidden states and weights

    @property
    def chunks(self):
        return self.units // self.chunk_size

    @property
    def wide(self):
        return wide_dtype(self.dtype)


class Step(NamedTuple):
    """One step of the recurrence."""

    h: Any  # (U, B)
    c: Any  # (N, C, B), wide
    saved: Any  # (K, B) what the way back needs beside the cell states
    forget_distance: Any  # (B,), wide
    input_distance: Any  # (B,), wide


def refusal(activation, recurrent_activation):
    """Why these activations cannot be fused, or `None`: the gradients of one pair are derived."""
    for name, given, wanted in (
        ("activation", activation, activations.tanh),
        ("recurrent_activation", recurrent_activation, activations.sigmoid),
    ):
        if given is not wanted:
            shown = getattr(given, "__name__", None) or repr(given)
            return f"{name} is {shown}, and only {wanted.__name__} is fused"
    return None


def column_groups(batch):
    """How to cut the columns of a batch for XLA's products on processors: list of slices.

    They take columns by eights. What is over costs as much as a whole eight more, unless it comes
    by itself: 70 products of (4830, 1150) and (1150, 20) took 141 ms on two cores, and cut in 16
    and 4 columns 125 ms. Sequences of a batch have nothing to do with each other, so the groups run
    side by side and only their results meet.

    Args:
        batch: integer, B, or `None` where it is not known.

    Returns:
        List of slices that cover the columns.
    """
    over = 0 if batch is None else batch % 8
    if not over or batch < 8:
        return [slice(None)]
    return [slice(0, batch - over), slice(batch - over, batch)]


def _rise(weights):
    """Running sum over the chunks of (N, B), to exactly 1 as `cumax` has it."""
    total = triangle(weights.shape[0], weights.dtype) @ weights
    end = total[-1:]
    return ops.where(total < end, total / end, ops.ones_like(total))


def _activate(z, sizes):
    """Gate pre-activations -> gates, (K, B); for the master gates the weights that they sum up."""
    n, units = sizes.chunks, sizes.units
    z = ops.cast(z, sizes.wide)
    weights = []
    for pre in (z[:n], z[n : 2 * n]):
        exponentials = ops.exp(pre - largest(pre, 0))
        weights.append(exponentials / ops.sum(exponentials, 0, keepdims=True))
    # sigmoid(x) = (1 + tanh(x / 2)) / 2: all gates in one pass of one function.
    scale = [[[1.0 if name == "candidate" else 0.5]] for name in _LSTM_GATES]
    scale = ops.convert_to_tensor(scale, dtype=sizes.wide)  # (4, 1, 1)
    tanh = exact_activation(activations.tanh, sizes.wide)
    gates = scale * tanh(scale * ops.reshape(z[2 * n :], (4, units, -1))) + (1.0 - scale)
    return ops.concatenate([*weights, ops.reshape(gates, (4 * units, -1))], 0)


class _Gates(NamedTuple):
    input_weights: Any  # (N, B) softmax of which the master input gate is 1 - the running sum
    forget_weights: Any  # (N, B) softmax of which the master forget gate is the running sum
    i_master: Any  # (N, B)
    f_master: Any  # (N, B)
    i_tilde: Any  # (N, 1, B)
    f_tilde: Any  # (N, 1, B)
    omega: Any  # (N, 1, B)
    output: Any  # (N, C, B), as the next three
    candidate: Any
    input: Any
    forget: Any


def _unpack(gates, sizes):
    n = sizes.chunks
    input_weights, forget_weights = gates[:n], gates[n : 2 * n]
    i_master = 1.0 - _rise(input_weights)
    f_master = _rise(forget_weights)
    i_tilde, f_tilde = ops.expand_dims(i_master, 1), ops.expand_dims(f_master, 1)
    by_unit = ops.reshape(gates[2 * n :], (4, n, sizes.chunk_size, -1))
    return _Gates(
        input_weights,
        forget_weights,
        i_master,
        f_master,
        i_tilde,
        f_tilde,
        i_tilde * f_tilde,
        **{name: by_unit[place] for place, name in enumerate(_LSTM_GATES)},
    )


def advance(z, h_tm1, c_tm1, keep, sizes):
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


def retreat(dh, dc, saved, c_tm1, c, d_forget_distance, d_input_distance, keep, sizes):
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

    by_unit = {
        "output": d_output,
        "candidate": d_candidate,
        "input": d_input,
        "forget": d_forget,
    }
    dz = ops.concatenate(
        [
            through_cumax(-d_i_master, g.input_weights),
            through_cumax(d_f_master, g.forget_weights),
            *(ops.reshape(by_unit[name], (sizes.units, -1)) for name in _LSTM_GATES),
        ],
        0,
    )
    dc_tm1 = dc * f_hat
    return dz, passed_h, dc_tm1 if passed_c is None else dc_tm1 + passed_c


def large_products(dz, inputs, h, h_0, recurrent_mask, kernel):
    """What follows from the gradients of all pre-activations at once.

    Args:
        dz: (T, B, K).
        inputs: (T, B, D).
        h: (T, B, U) hidden state after every step.
        h_0: (B, U) hidden state before the first.
        recurrent_mask: (B, U) or `None`.
        kernel: (D, K).

    Returns:
        Gradients with respect to the inputs (T, B, D), the kernel (D, K), the recurrent kernel
        (U, K) and the bias (K,).
    """
    first = ops.expand_dims(h_0, 0)[: ops.shape(h)[0]]  # no row where there is no step
    read = ops.concatenate([first, h[:-1]], 0)  # (T, B, U)
    if recurrent_mask is not None:
        read = read * recurrent_mask
    dz, x, read = (ops.reshape(rows, (-1, rows.shape[-1])) for rows in (dz, inputs, read))
    d_inputs = ops.reshape(dz @ ops.transpose(kernel), ops.shape(inputs))
    return d_inputs, ops.transpose(x) @ dz, ops.transpose(read) @ dz, ops.sum(dz, 0)


def run(
    inputs,
    h,
    c,
    kernel,
    recurrent_kernel,
    bias=None,
    *,
    mask=None,
    recurrent_mask=None,
    chunk_size,
    training=False,
):
    """The whole recurrence, with tanh and sigmoid.

    Args:
        inputs: (B, T, D).
        h: (B, U) initial hidden state.
        c: (B, U) initial cell state.
        kernel: (D, K).
        recurrent_kernel: (U, K).
        bias: (K,) or `None`.
        mask: as in `keras_onlstm.recurrence.reference.run`, as the next two.
        recurrent_mask: (B, U) or `None`.
        chunk_size: integer, C.
        training: whether gradients are to be expected. TensorFlow cannot tell: without, it keeps
            nothing for them and runs the recurrence once more where they are asked for all the
            same.

    Returns:
        `Recurrence`.
    """
    dtype = backend.standardize_dtype(h.dtype)
    sizes = Sizes(h.shape[-1], chunk_size, dtype)
    if backend.backend() == "tensorflow":
        from keras_onlstm.recurrence import fused_tensorflow as fused_backend
    elif backend.backend() == "jax":
        from keras_onlstm.recurrence import fused_jax as fused_backend
    else:
        from keras_onlstm.recurrence import fused_torch as fused_backend
    results = fused_backend.run(
        ops.cast(inputs, dtype),
        h,
        ops.cast(c, sizes.wide),
        ops.cast(kernel, dtype),
        ops.cast(recurrent_kernel, dtype),
        None if bias is None else ops.cast(bias, dtype),
        mask,
        recurrent_mask,
        sizes,
        training,
    )
    return Recurrence(*results)
