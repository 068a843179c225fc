"""The recurrence of a reading layer: its inputs, its step with derivatives, and both loops.

Axes as in `keras_onlstm.prpn.step`, but time comes first, and slots are ordered from the oldest to
the newest: a step drops the first row of its memory and appends one.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from keras import ops

from keras_onlstm.prpn.parsing_network import normalized, standardized, standardized_grad
from keras_onlstm.prpn.step import EPSILON, attention
from keras_onlstm.recurrence import engine, lstm
from keras_onlstm.recurrence.engine import Specs, Step, stacked
from keras_onlstm.utils import Tensor, Tensors
from keras_onlstm.utils.numerics import max_keepdims


class ReadingInputs(NamedTuple):
    """Inputs of a reading layer's recurrence over whole sequences.

    Without attention, keys and gates are `None`, and S is 1. Masks have no gradients.
    """

    kernel: Tensor  # (U, 4 U), of hidden states
    bias: Tensor  # (4 U,)
    gamma: Tensor  # (4 U,), of the layer normalization of the product with the kernel
    beta: Tensor  # (4 U,)
    cell_gamma: Tensor  # (U,), of the layer normalization of the cell state
    cell_beta: Tensor  # (U,)
    key_kernel: Tensor | None  # (U, U), of hidden states
    recurrent_mask: Tensor | None  # (1, U) factors of the hidden states that the gates read
    h: Tensor  # (S, B, U) hidden states before the first step
    c: Tensor  # (S, B, U) cell states before the first step
    x: Tensor  # (T, B, 4 U) normalized products of the inputs
    keys: Tensor | None  # (T, B, U) terms of the keys that depend on the inputs
    gates: Tensor | None  # (T, B, S)
    read_mask: Tensor | None  # (T, B, U) factors of the hidden states that the keys read
    key_mask: Tensor | None  # (T, B, U) factors of the keys
    training: bool = False  # whether gradients will probably be needed

    @property
    def engine_arguments(self) -> tuple[Tensors, Tensors, Tensors]:
        """Weights, carry and `xs`."""
        return self[:8], self[8:10], self[10:15]


# A context in which every reading layer runs another function of `ReadingInputs`: for exports, and
# for comparisons with an exported model.
substituted = engine.Substitution("reading")


def run(inputs: ReadingInputs, fuse: bool) -> Tensors:
    """Hidden and cell states after every step, each (T, B, U), with the engine if `fuse`."""
    return (substituted.function.get() or (fused if fuse else reference))(inputs)


def fused(inputs: ReadingInputs) -> Tensors:
    """The fast implementation."""
    step = ReadingStep(inputs.h.shape[-1])
    return engine.run(step, *inputs.engine_arguments, inputs.training)[1]


def reference(inputs: ReadingInputs) -> Tensors:
    """Reference implementation, with automatic gradients. The fast one is tested against it."""
    weights, carry, xs = inputs.engine_arguments
    step = _ReferenceStep(inputs.h.shape[-1])

    def body(carry, row):
        return step.forward(weights, carry, row, save=False)

    return engine.scan(body, carry, xs, step.specs(carry, xs)[0])[1]


@dataclass(frozen=True)
class ReadingStep(Step):
    """One step of a reading layer, with the weights, carry and `xs` of `ReadingInputs`.

    Its outputs are h and c, each (T, B, U). The backward loop carries the gradients of h and of c
    in the memory without the newest rows, (S - 1, B, U), and those of the newest rows, (B, U).
    """

    units: int

    @property
    def entries(self) -> int:
        return 4 * self.units**2

    def specs(self, carry: Tensors, xs: Tensors) -> tuple[Specs, Specs]:
        (slots, batch, units), dtype = carry[0].shape, carry[0].dtype
        row, wide = (batch, units), (batch, 4 * units)
        saved = [row, row, wide, wide, (batch, 1)]
        if xs[1] is not None:
            saved += [row, (slots, batch)]
        return [(row, dtype)] * 2, [(shape, dtype) for shape in saved]

    def forward(self, prepared: Tensors, carry: Tensors, row: Tensors, save: bool) -> Tensors:
        (kernel, *scales, key_kernel, mask), (hs, cs) = prepared, carry
        x, *keyed, read_mask, key_mask = row
        h, c = hs[-1], cs[-1]
        attended: Tensors = ()
        if key_kernel is None:
            h = h if mask is None else h * mask
        else:
            product = (h if read_mask is None else h * read_mask) @ key_kernel
            attend = self.compiled(self._attend)
            h, c, *attended = attend(product, *keyed, key_mask, hs, cs, mask)
        update = self.compiled(self._update)
        carry, ys, saved = update(h @ kernel, x, c, hs, cs, scales)
        return carry, ys, (h, c, *saved, *attended) if save else ()

    def _attend(self, product, keys, gates, key_mask, hs, cs, mask):
        """The states (B, U) from which the step continues, its key (B, U) and logits (S, B)."""
        key = keys + product if key_mask is None else (keys + product) * key_mask
        logits = ops.sum(hs * key, -1) / self.units**0.5
        share = attention(ops.cast(ops.transpose(logits), gates.dtype), gates)  # (B, S)
        share = ops.expand_dims(ops.cast(ops.transpose(share), key.dtype), -1)
        h, c = ops.sum(share * hs, 0), ops.sum(share * cs, 0)
        return h if mask is None else h * mask, c, key, logits

    def _update(self, product, x, c_tm1, hs, cs, scales):
        """The memory after the step, the new states, and what is saved."""
        bias, gamma, beta, cell_gamma, cell_beta = scales
        standard, deviation = standardized(product + bias)
        gates = lstm.activated(*ops.split(x + gamma * standard + beta, 4, axis=-1))
        c = lstm.cell_state(gates, c_tm1)
        h = lstm.hidden_state(gates.output, normalized(c, cell_gamma, cell_beta))
        pairs = (hs, h), (cs, c)
        memory = [ops.concatenate([rows[1:], ops.expand_dims(row, 0)], 0) for rows, row in pairs]
        return memory, (h, c), (ops.concatenate(gates, -1), standard, deviation)

    def prepare(self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Any = None) -> Tensors:
        if ys is None:
            return weights
        kernel, *scales, key_kernel, mask = weights
        key_kernel_t = None if key_kernel is None else ops.transpose(key_kernel)
        series = [ops.concatenate(x, 0) for x in zip(carry, ys, strict=True)]  # (S + T, B, U)
        return ops.transpose(kernel), *scales, key_kernel_t, mask, series

    def backward_rows(self, xs: Tensors) -> Tensors:
        return ops.arange(ops.shape(xs[0])[0], dtype="int32"), *xs[2:]

    def backward_specs(self, carry: Tensors, xs: Tensors) -> Specs:
        (slots, batch, units), dtype = carry[0].shape, carry[0].dtype
        specs = [((batch, size), dtype) for size in (4 * units, 4 * units, units)]
        if xs[1] is not None:
            specs += [((batch, slots), xs[2].dtype), ((batch, units), dtype)]
        return specs

    def begin_backward(self, d_last: Tensors) -> Tensors:
        dh, dc = d_last
        return dh[:-1], dc[:-1], dh[-1], dc[-1]

    def end_backward(self, d_carry: Tensors) -> Tensors:
        pairs = zip(d_carry[:2], d_carry[2:], strict=True)
        return tuple(ops.concatenate([rows, row[None]], 0) for rows, row in pairs)

    def backward(self, prepared: Tensors, d_carry: Tensors, d_ys: Tensors, row: Tensors) -> Tensors:
        kernel_t, *scales, key_kernel_t, mask, series = prepared
        d_hs, d_cs, dh, dc = d_carry
        index, opened, read_mask, key_mask, _, *saved = row
        update_grad = self.compiled(self._update_grad)
        dc, *d_row = update_grad(dh, dc, *d_ys, *saved[:4], scales)
        dh = d_row[1] @ kernel_t
        if key_kernel_t is None:
            return (d_hs, d_cs, dh if mask is None else dh * mask, dc), tuple(d_row)
        start = index, *[ops.zeros_like(index) for _ in range(2)]
        shape = d_hs.shape[0] + 1, *ops.shape(dh)
        hs, cs = (ops.slice(x, start, shape) for x in series)  # (S, B, U) before the step
        attend_grad = self.compiled(self._attend_grad)
        attended = opened, key_mask, hs, cs, *saved[4:], mask
        d_hs, d_cs, dh, dc, d_gates, d_key = attend_grad(dh, dc, d_hs, d_cs, *attended)
        d_read = d_key @ key_kernel_t
        dh = dh + (d_read if read_mask is None else d_read * read_mask)
        return (d_hs, d_cs, dh, dc), (*d_row, d_gates, d_key)

    def _update_grad(self, dh, dc, d_h, d_c, c_tm1, gates, standard, deviation, scales):
        """The gradients of `c_tm1`, x, the product, and the scaled cell state."""
        _, gamma, _, cell_gamma, cell_beta = scales
        gates = lstm.Gates(*ops.split(gates, 4, axis=-1))
        cell, cell_deviation = standardized(lstm.cell_state(gates, c_tm1))
        by_output, by_scaled = lstm.output_derivatives(gates.output, cell_gamma * cell + cell_beta)
        dh, dc = dh + d_h, dc + d_c
        d_scaled = dh * by_scaled
        dc = dc + standardized_grad(d_scaled * cell_gamma, cell, cell_deviation)
        *by_gates, by_cell = lstm.cell_derivatives(gates, c_tm1)
        dz = ops.concatenate([*(dc * by_gate for by_gate in by_gates), dh * by_output], -1)
        d_product = standardized_grad(dz * gamma, standard, deviation)
        return dc * by_cell, dz, d_product, d_scaled

    def _attend_grad(self, dh, dc, d_hs, d_cs, gates, key_mask, hs, cs, key, logits, mask):
        """The gradients of the memory, of the gates, and of the product that the key reads."""
        dh = dh if mask is None else dh * mask
        gates = ops.transpose(gates)  # (S, B)
        logits = ops.cast(logits, gates.dtype)
        highest = max_keepdims(logits, 0)
        exponentials = ops.exp(logits - highest)
        total = ops.sum(exponentials * gates, 0) + EPSILON
        open_share = exponentials / total
        share = open_share * gates
        d_share = ops.cast(ops.sum(hs * dh + cs * dc, -1), gates.dtype)
        mean = ops.sum(share * d_share, 0)
        d_gates = open_share * (d_share - mean)
        # Because of EPSILON, the shares depend on the subtracted maximum of the logits.
        top = ops.cast(logits == highest, gates.dtype)
        d_logits = share * (d_share - mean) - top / ops.sum(top, 0) * (EPSILON / total * mean)
        d_logits = ops.expand_dims(ops.cast(d_logits, key.dtype) / self.units**0.5, -1)
        share = ops.expand_dims(ops.cast(share, key.dtype), -1)
        d_key = ops.sum(d_logits * hs, 0)
        d_key = d_key if key_mask is None else d_key * key_mask
        # The memory after the step has all rows but the first.
        zero = ops.zeros_like(hs[:1])
        d_hs = ops.concatenate([zero, d_hs], 0) + share * dh + d_logits * key
        d_cs = ops.concatenate([zero, d_cs], 0) + share * dc
        return d_hs[:-1], d_cs[:-1], d_hs[-1], d_cs[-1], ops.transpose(d_gates), d_key

    def gradients(self, arguments: Tensors, ys: Tensors, saved: Any, rows: Tensors) -> Tensors:
        (_, (hs, _), (*_, read_mask, _)), (h, c) = arguments, ys
        dz, d_product, d_scaled, *d_keyed = rows
        read, standard = stacked(saved[0]), stacked(saved[3])

        def flat(x):
            return ops.reshape(x, (-1, x.shape[-1]))

        d_weights = [
            ops.transpose(flat(read)) @ flat(d_product),
            ops.sum(flat(d_product), 0),
            ops.sum(flat(dz * standard), 0),
            ops.sum(flat(dz), 0),
            ops.sum(flat(d_scaled * standardized(c)[0]), 0),
            ops.sum(flat(d_scaled), 0),
        ]
        if not d_keyed:
            return [*d_weights, None, None], [dz, None, None, None, None]
        d_gates, d_keys = d_keyed
        h_tm1 = ops.concatenate([hs[-1:], h], 0)[:-1]
        h_tm1 = h_tm1 if read_mask is None else h_tm1 * read_mask
        d_key_kernel = ops.transpose(flat(h_tm1)) @ flat(d_keys)
        return [*d_weights, d_key_kernel, None], [dz, d_keys, d_gates, None, None]


class _ReferenceStep(ReadingStep):
    is_launch_bound = True  # nothing is compiled
