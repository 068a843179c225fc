"""The recurrence of a reading layer: its inputs, its step with the derivative, and both loops.

Axes as in `keras_onlstm.prpn.step`, but time comes first, and slots are ordered from the oldest to
the newest: a step drops the first row of its memory and appends one. Axes of 2 are the hidden state
and the cell state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras import ops

from keras_onlstm.prpn.normalization import normalized, standardized, standardized_grad
from keras_onlstm.prpn.step import EPSILON, attention
from keras_onlstm.recurrence import engine
from keras_onlstm.recurrence.engine import Specs, Step, stacked
from keras_onlstm.recurrence.lstm import (
    Gates,
    activated,
    cell_derivatives,
    cell_state,
    output_derivatives,
)
from keras_onlstm.utils.numerics import largest, tanh
from keras_onlstm.utils.substitution import Substitution
from keras_onlstm.utils.types import Tensor, Tensors

__all__ = ["ReadingInputs", "ReadingStep", "fused", "reference", "run", "substituted"]


class ReadingInputs(NamedTuple):
    """The recurrence of a reading layer over whole sequences.

    Without attention there are no keys and no gates, and S is 1. Masks have no gradients.
    """

    kernel: Tensor  # (U, 4 U), of hidden states
    bias: Tensor  # (4 U,)
    gamma: Tensor  # (4 U,), of the layer normalization of the product with the kernel
    beta: Tensor  # (4 U,)
    cell_gamma: Tensor  # (U,), of the layer normalization of the cell state
    cell_beta: Tensor  # (U,)
    key_kernel: Tensor | None  # (U, U), of hidden states
    recurrent_mask: Tensor | None  # (1, U) factors of the hidden states that the gates read
    memory: Tensor  # (2, S, B, U) states before the first step
    x: Tensor  # (T, B, 4 U) normalized products of the inputs
    keys: Tensor | None  # (T, B, U) terms of the keys that depend on the inputs
    gates: Tensor | None  # (T, B, S)
    read_mask: Tensor | None  # (T, B, U) factors of the hidden states that the keys read
    key_mask: Tensor | None  # (T, B, U) factors of the keys
    training: bool = False  # whether gradients will probably be needed

    @property
    def of_engine(self) -> tuple[Tensors, Tensors, Tensors]:
        """Weights, carry and rows."""
        return self[:8], (self.memory,), self[9:14]


# A context in which every reading layer runs another function of `ReadingInputs`.
substituted = Substitution("reading")


def run(inputs: ReadingInputs, fuse: bool) -> Tensor:
    """The states after every step, (T, 2, B, U), with the engine if `fuse`."""
    other = substituted.function
    if other is not None:  # a model is exported, or compared with an exported one
        return other(inputs)
    return fused(inputs) if fuse else reference(inputs)


def fused(inputs: ReadingInputs) -> Tensor:
    """The fast implementation."""
    step = ReadingStep(inputs.memory.shape[-1])
    return engine.run(step, *inputs.of_engine, inputs.training)[1][0]


def reference(inputs: ReadingInputs) -> Tensor:
    """Reference implementation, with automatic gradients. The fast one is tested against it."""
    weights, carry, xs = inputs.of_engine
    step = _ReferenceStep(inputs.memory.shape[-1])

    def body(carry, row):
        return step.forward(weights, carry, row, save=False)

    return engine.scan(body, carry, xs, step.specs(weights, carry, xs)[0])[1][0]


@dataclass(frozen=True)
class ReadingStep(Step):
    """One step of a reading layer.

    Its weights, carry and `xs` are those of `ReadingInputs`, its output the states, (T, 2, B, U).
    The carry of the backward loop is the memory, the gradients of its hidden states but the newest,
    (S - 1, B, U), and of its cell states, and those of the newest states, (B, U) each.

    Args:
        units: positive integer, U.
    """

    units: int

    @property
    def entries(self) -> int:
        return 4 * self.units**2

    def specs(self, weights: Tensors, carry: Tensors, xs: Tensors) -> tuple[Specs, Specs]:
        (_, slots, batch, units), dtype = carry[0].shape, carry[0].dtype
        states, row, wide = (2, batch, units), (batch, units), (batch, 4 * units)
        saved = [states, row, row, wide, wide, (batch, 1)]
        if xs[1] is not None:
            saved += [row, (slots, batch)]
        return [(states, dtype)], [(shape, dtype) for shape in saved]

    def forward(
        self, prepared: Tensors, carry: Tensors, row: Tensors, save: bool
    ) -> tuple[Tensors, Tensors, Tensors]:
        (kernel, *scales, key_kernel, mask), (memory,), (x, *keyed, read_mask, key_mask) = (
            prepared,
            carry,
            row,
        )
        h, c = memory[0, -1], memory[1, -1]
        attended: Tensors = ()
        if key_kernel is None:
            h = h if mask is None else h * mask
        else:
            product = (h if read_mask is None else h * read_mask) @ key_kernel
            attend = self.compiled(self._attend)
            h, c, *attended = attend(product, *keyed, key_mask, memory, mask)
        update = self.compiled(self._update)
        memory, states, *saved = update(h @ kernel, x, c, memory, scales)
        return (memory,), (states,), (*saved[:1], h, c, *saved[1:], *attended) if save else ()

    def _attend(self, product, keys, gates, key_mask, memory, mask):
        """The states (B, U) from which the step continues, its key (B, U) and logits (S, B)."""
        key = keys + product if key_mask is None else (keys + product) * key_mask
        logits = ops.sum(memory[0] * key, -1) / self.units**0.5
        share = attention(ops.cast(ops.transpose(logits), gates.dtype), gates)  # (B, S)
        share = ops.expand_dims(ops.cast(ops.transpose(share), key.dtype), -1)
        h, c = ops.sum(share * memory[0], 0), ops.sum(share * memory[1], 0)
        return h if mask is None else h * mask, c, key, logits

    def _update(self, product, x, c_tm1, memory, scales):
        """The new memory, the new states, and what is saved: first the row that is dropped."""
        bias, gamma, beta, cell_gamma, cell_beta = scales
        standard, deviation = standardized(product + bias)
        gates = activated(*ops.split(x + gamma * standard + beta, 4, axis=-1))
        c = cell_state(gates, c_tm1)
        states = ops.stack([gates.output * tanh(normalized(c, cell_gamma, cell_beta)), c])
        new = ops.concatenate([memory[:, 1:], ops.expand_dims(states, 1)], 1)
        return new, states, memory[:, 0], ops.concatenate(gates, -1), standard, deviation

    def prepare(
        self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Tensors | None = None
    ) -> Tensors:
        if ys is None:
            return weights
        kernel, *scales, key_kernel, mask = weights
        key_kernel_t = None if key_kernel is None else ops.transpose(key_kernel)
        return ops.transpose(kernel), *scales, key_kernel_t, mask

    def backward_rows(self, xs: Tensors) -> Tensors:
        return xs[2:]

    def backward_specs(self, weights: Tensors, carry: Tensors, xs: Tensors) -> Specs:
        (_, slots, batch, units), dtype = carry[0].shape, carry[0].dtype
        specs = [((batch, size), dtype) for size in (4 * units, 4 * units, units)]
        if xs[1] is not None:
            specs += [((batch, slots), xs[2].dtype), ((batch, units), dtype)]
        return specs

    def begin_backward(self, last: Tensors, d_last: Tensors) -> Tensors:
        dh, dc = ops.unstack(d_last[0], 2)
        return *last, dh[:-1], dc[:-1], dh[-1], dc[-1]

    def end_backward(self, d_carry: Tensors) -> Tensors:
        _, d_hs, d_cs, dh, dc = d_carry
        pairs = (d_hs, dh), (d_cs, dc)
        return (ops.stack([ops.concatenate([rows, row[None]], 0) for rows, row in pairs]),)

    def backward(
        self, prepared: Tensors, d_carry: Tensors, d_ys: Tensors, row: Tensors, derived: bool
    ) -> tuple[Tensors, Tensors]:
        kernel_t, *scales, key_kernel_t, mask = prepared
        memory, d_hs, d_cs, dh, dc = d_carry
        opened, read_mask, key_mask, oldest, _, *saved = row
        update_grad = self.compiled(self._update_grad)
        memory, dc, *d_row = update_grad(dh, dc, *d_ys, memory, oldest, *saved[:4], scales)
        dh = d_row[1] @ kernel_t
        if key_kernel_t is None:
            return (memory, d_hs, d_cs, dh if mask is None else dh * mask, dc), tuple(d_row)
        attend_grad = self.compiled(self._attend_grad)
        attended = opened, key_mask, memory, *saved[4:], mask
        d_hs, d_cs, dh, dc, d_gates, d_key = attend_grad(dh, dc, d_hs, d_cs, *attended)
        d_read = d_key @ key_kernel_t
        dh = dh + (d_read if read_mask is None else d_read * read_mask)
        return (memory, d_hs, d_cs, dh, dc), (*d_row, d_gates, d_key)

    def _update_grad(self, dh, dc, d_y, memory, oldest, c_tm1, gates, standard, deviation, scales):
        """The memory before the step; the gradients of `c_tm1`, x, the product, the scaled cell."""
        _, gamma, _, cell_gamma, cell_beta = scales
        gates = Gates(*ops.split(gates, 4, axis=-1))
        cell, cell_deviation = standardized(memory[1, -1])
        by_output, by_scaled = output_derivatives(gates, cell_gamma * cell + cell_beta)
        dh, dc = dh + d_y[0], dc + d_y[1]
        d_scaled = dh * by_scaled
        dc = dc + standardized_grad(d_scaled * cell_gamma, cell, cell_deviation)
        *by_gates, by_cell = cell_derivatives(gates, c_tm1)
        dz = ops.concatenate([*(dc * by_gate for by_gate in by_gates), dh * by_output], -1)
        memory = ops.concatenate([ops.expand_dims(oldest, 1), memory[:, :-1]], 1)
        return (
            memory,
            dc * by_cell,
            dz,
            standardized_grad(dz * gamma, standard, deviation),
            d_scaled,
        )

    def _attend_grad(self, dh, dc, d_hs, d_cs, gates, key_mask, memory, key, logits, mask):
        """The gradients of the memory, of the gates, and of the product that the key reads."""
        dh = dh if mask is None else dh * mask
        gates = ops.transpose(gates)  # (S, B)
        logits = ops.cast(logits, gates.dtype)
        highest = largest(logits, 0)
        exponentials = ops.exp(logits - highest)
        total = ops.sum(exponentials * gates, 0) + EPSILON
        open_share = exponentials / total
        share = open_share * gates
        d_share = ops.cast(ops.sum(memory[0] * dh + memory[1] * dc, -1), gates.dtype)
        mean = ops.sum(share * d_share, 0)
        d_gates = open_share * (d_share - mean)
        # Because of EPSILON the shares depend on the largest logit, which all are compared with.
        top = ops.cast(logits == highest, gates.dtype)
        d_logits = share * (d_share - mean) - top / ops.sum(top, 0) * (EPSILON / total * mean)
        d_logits = ops.expand_dims(ops.cast(d_logits, key.dtype) / self.units**0.5, -1)
        share = ops.expand_dims(ops.cast(share, key.dtype), -1)
        d_key = ops.sum(d_logits * memory[0], 0)
        if key_mask is not None:
            d_key = d_key * key_mask
        # The memory after the step has all rows but the first.
        d_hs, d_cs = (
            ops.concatenate([d[:1], d[1:] + d_after], 0)
            for d, d_after in ((share * dh + d_logits * key, d_hs), (share * dc, d_cs))
        )
        return d_hs[:-1], d_cs[:-1], d_hs[-1], d_cs[-1], ops.transpose(d_gates), d_key

    def gradients(
        self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Tensors, saved: Any, rows: Tensors
    ) -> tuple[Sequence[Tensor | None], Sequence[Tensor | None]]:
        (memory,), (states,), read_mask, (dz, d_product, d_scaled, *d_keyed) = (
            carry,
            ys,
            xs[3],
            rows,
        )
        read, standard = stacked(saved[1]), stacked(saved[4])

        def flat(x):
            return ops.reshape(x, (-1, x.shape[-1]))

        d_weights = [
            ops.transpose(flat(read)) @ flat(d_product),
            ops.sum(flat(d_product), 0),
            ops.sum(flat(dz * standard), 0),
            ops.sum(flat(dz), 0),
            ops.sum(flat(d_scaled * standardized(states[:, 1])[0]), 0),
            ops.sum(flat(d_scaled), 0),
        ]
        if not d_keyed:
            return [*d_weights, None, None], [dz, None, None, None, None]
        d_gates, d_keys = d_keyed
        h_tm1 = ops.concatenate([memory[:1, -1], states[:, 0]], 0)[:-1]
        h_tm1 = h_tm1 if read_mask is None else h_tm1 * read_mask
        d_key_kernel = ops.transpose(flat(h_tm1)) @ flat(d_keys)
        return [*d_weights, d_key_kernel, None], [dz, d_keys, d_gates, None, None]


class _ReferenceStep(ReadingStep):
    is_launch_bound = True  # nothing is compiled
