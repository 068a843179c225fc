"""The recurrence of TreeLSTM over a grid of words of many trees.

Each row of a step takes the states of a row of the step before, and the rows of each edge type are
multiplied with the kernels of that type. In the backward pass a row gathers the gradients of the
few rows that took its states, without a scatter. The LSTM over left dependents is the same loop
with one edge type.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keras import ops, tree

from keras_onlstm.recurrence.engine import Specs, Step, run, stacked
from keras_onlstm.recurrence.lstm import Gates, cell_derivatives, cell_state, output_derivatives
from keras_onlstm.tree_lstm.step import INITIAL, Weights, update
from keras_onlstm.utils import Tensor, Tensors
from keras_onlstm.utils.numerics import embedding_lookup, matmul

_EDGES = ("left", "right", "next_left", "next_right")  # the names of grids, in the order of `Edge`


def _spans(inputs):
    """The rows of each edge type, of inputs (K, rows, size)."""
    ends = list(itertools.accumulate((ops.shape(part)[1] for part in inputs), initial=0))
    return [slice(*span) for span in itertools.pairwise(ends)]


def _by_edge(x, kernels, spans):
    """The rows of each edge type times its kernel."""
    parts = [x[span] @ kernel for span, kernel in zip(spans, kernels, strict=True)]
    return ops.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _append_row(x, value):
    return ops.concatenate([x, value * ops.ones_like(x[:1])], 0)


@dataclass(frozen=True)
class TreeStep(Step):
    """One step of a grid, of L layers with U units.

    - `weights`: `Layer` of all edge types, one edge type after the other.
    - `carry`: h and c of all layers in one tensor (R, 2 U L), so that one gather takes them all.
    - `xs`: inputs (K, rows, size) for each edge type; the source of each row (K, R), a row of the
      step before, or R for `INITIAL`; and its followers (K, R, F), the rows of the next step that
      take its states, or R for none.
    - The output is h of the last layer, (K, R, U).
    """

    units: int  # U
    depth: int  # L

    is_launch_bound = False  # compiled parts are faster for small layers, too

    def _layers(self, weights):
        """The kernels, recurrent kernels and biases of each layer, as tuples over edge types."""
        layers = [weights[start : start + 3] for start in range(0, len(weights), 3)]
        return [list(zip(*layers[i :: self.depth], strict=True)) for i in range(self.depth)]

    def specs(self, carry: Tensors, xs: Tensors) -> tuple[Specs, Specs]:
        rows, units, depth, dtype = xs[-2].shape[1], self.units, self.depth, xs[0].dtype
        saved = [2 * units * depth, *[4 * units] * depth, *[units] * (depth - 1)]
        return [((rows, units), dtype)], [((rows, size), dtype) for size in saved]

    def rows(self, weights: Tensors, xs: Tensors) -> Tensors:
        *inputs, source, _ = xs
        kernels, _, biases = self._layers(weights)[0]
        edges = zip(inputs, kernels, biases, strict=True)
        return ops.concatenate([matmul(x, kernel) + bias for x, kernel, bias in edges], 1), source

    def prepare(self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Any = None) -> Tensors:
        layers = self._layers(weights)
        if ys is not None:
            layers = [[list(map(ops.transpose, x)) for x in layer[:2]] for layer in layers]
            return _spans(xs[:-2]), layers
        shapes = [(ops.shape(x)[1], 4 * self.units) for x in xs[:-2]]
        for layer in layers:
            layer[2] = ops.concatenate(list(map(ops.broadcast_to, layer[2], shapes)), 0)
        return _spans(xs[:-2]), layers

    def _update(self, z, c_tm1):
        h, c, gates = update(z, c_tm1)
        return h, c, ops.concatenate(gates, -1)

    def forward(self, prepared: Tensors, carry: Tensors, row: Tensors, save: bool) -> Tensors:
        (spans, layers), (x, source) = prepared, row
        compiled = self.compiled(self._update)
        taken = ops.take(_append_row(carry[0], INITIAL), source, axis=0)  # (R, 2 U L)
        states_tm1 = ops.split(taken, 2 * self.depth, axis=-1)
        states: list[Tensor] = []
        saved = [taken]
        for index, (kernels, recurrent_kernels, bias) in enumerate(layers):
            h, c = states_tm1[2 * index : 2 * index + 2]
            if index:
                x = _by_edge(states[-2], kernels, spans) + bias
            *new, gates = compiled(x + _by_edge(h, recurrent_kernels, spans), c)
            states += new
            saved.append(gates)
        saved += states[:-2:2]  # h of the layers below the last
        return (ops.concatenate(states, -1),), (states[-2],), tuple(saved) if save else ()

    def backward_rows(self, xs: Tensors) -> Tensors:
        return xs[-1:]

    def backward(self, prepared: Tensors, d_carry: Tensors, d_ys: Tensors, row: Tensors) -> Tensors:
        (spans, layers), (d_h,), (followers, taken, *gates) = prepared, d_ys, row
        compiled = self.compiled(self._gates_grad)
        later = _append_row(d_carry[0], 0.0)
        d_states = sum(ops.take(later, rows, axis=0) for rows in ops.unstack(followers, axis=-1))
        d_states = ops.split(d_states, 2 * self.depth, axis=-1)
        rows: list[Tensor] = []
        d_taken: list[Tensor] = []
        for index in reversed(range(self.depth)):
            kernels_t, recurrent_kernels_t = layers[index]
            dh, dc = d_states[2 * index : 2 * index + 2]
            c_tm1 = taken[:, (2 * index + 1) * self.units : (2 * index + 2) * self.units]
            dz, dc = compiled(dh + d_h, dc, gates[index], c_tm1)
            rows.insert(0, dz)
            d_taken[:0] = _by_edge(dz, recurrent_kernels_t, spans), dc
            if index:
                d_h = _by_edge(dz, kernels_t, spans)
        return (ops.concatenate(d_taken, -1),), tuple(rows)

    def _gates_grad(self, dh, dc, gates, c_tm1):
        """The gradients of the pre-activations and of the old cell state."""
        gates = Gates(*ops.split(gates, 4, axis=-1))
        by_output, by_c = output_derivatives(gates.output, cell_state(gates, c_tm1))
        dc = dc + dh * by_c
        i, f, candidate, dc = (dc * x for x in cell_derivatives(gates, c_tm1))
        return ops.concatenate([i, f, dh * by_output, candidate], -1), dc

    def backward_specs(self, carry: Tensors, xs: Tensors) -> Specs:
        return [((xs[-2].shape[1], 4 * self.units), xs[0].dtype)] * self.depth

    def gradients(self, arguments: Tensors, ys: Tensors, saved: Any, rows: Tensors) -> Tensors:
        weights, _, xs = arguments
        taken = stacked(saved[0])
        lower = list(map(stacked, saved[1 + self.depth :]))
        kernels_t = map(ops.transpose, self._layers(weights)[0][0])
        d_weights, d_inputs = [], []
        for inputs, kernel_t, span in zip(xs, kernels_t, _spans(xs[:-2]), strict=False):
            d_inputs.append(matmul(rows[0][:, span], kernel_t))
            for index, x in enumerate([inputs, *(h[:, span] for h in lower)]):
                h_tm1 = taken[:, span, 2 * index * self.units : (2 * index + 1) * self.units]
                dz = ops.reshape(rows[index][:, span], (-1, 4 * self.units))
                x, h_tm1 = ops.reshape(x, (-1, x.shape[-1])), ops.reshape(h_tm1, (-1, self.units))
                d_weights += [ops.transpose(x) @ dz, ops.transpose(h_tm1) @ dz, ops.sum(dz, 0)]
        return d_weights, (*d_inputs, None, None)


def _last_hidden(layers, inputs, source, followers, training):
    """The hidden states (K R, U) of the last layer, from inputs (K, rows, size) per edge type."""
    step = TreeStep(layers[0][0].recurrent_kernel.shape[0], len(layers[0]))
    shape = ops.shape(source)[1], 2 * step.units * step.depth
    carry = (INITIAL * ops.ones(shape, inputs[0].dtype),)
    xs = (*inputs, *map(ops.convert_to_tensor, (source, followers)))
    _, (h,) = run(step, tuple(tree.flatten(layers)), carry, xs, training)
    return ops.reshape(h, (-1, step.units))


def hidden(
    weights: Weights,
    grids: Mapping[str, Tensor],
    drop: Callable[[Tensor], Tensor] = lambda x: x,
    training: bool = False,
) -> Tensor:
    """The hidden states (N, U) from which the words of a batch are predicted.

    `grids` are those of `BatchSchedule`, `drop` applies dropout to word vectors (..., E), and
    `training` is whether gradients will probably be needed.
    """

    def vectors(words):
        return drop(embedding_lookup(weights.embeddings, words))

    def left():
        """h after the left dependents, for the rows of `right`: (K, rows, U)."""
        inputs = [vectors(grids["left_words"])]
        followers = ops.expand_dims(grids["left_followers"], -1)
        h = _last_hidden([weights.left], inputs, grids["left_source"], followers, training)
        return ops.take(_append_row(h, INITIAL), grids["left_rows"], axis=0)

    layers, inputs = [], []
    for edge, name in zip(weights.generators, _EDGES, strict=True):
        if edge and grids[name].shape[1] != 0:
            x = vectors(grids[name])  # (K, rows, E)
            if weights.left and name == "right":
                x = ops.concatenate([x, left()], -1)
            layers.append(edge)
            inputs.append(x)
    h = _last_hidden(layers, inputs, grids["source"], grids["followers"], training)
    return ops.take(h, grids["rows"], axis=0)
