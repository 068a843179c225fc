"""TreeLSTM over a grid of words of many trees: its gradients are derived here by hand.

A step of the loop takes for each of its rows the states of a row of the step before, and multiplies
the rows of each edge type with the kernel of that type. The way back takes for each row the
gradients of the rows that follow from it, of which there are few, so nothing is ever scattered. It
writes down the gradients of the products, from which those of each kernel follow in one product.
The LSTM over left dependents is the same loop with one edge type.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras import backend, ops

from keras_onlstm.tree_lstm.step import INITIAL, Layer, Weights, advance, retreat
from keras_onlstm.utils.backend_tensorflow import compiled
from keras_onlstm.utils.differentiable import scan, with_gradient
from keras_onlstm.utils.numerics import matmul, take_rows
from keras_onlstm.utils.types import Tensor

__all__ = ["hidden"]

_EDGES = ("left", "right", "next_left", "next_right")  # the names of grids, in the order of `Edge`


class _Problem(NamedTuple):
    """What the loop is given."""

    x: Tensor  # (K, R, 4 U) products of the first layer's inputs
    layers: tuple[tuple[Layer, ...], ...]  # of every edge type; the first kernels are not used
    source: Tensor  # (K, R) row of the step before, R: the initial state
    followers: Tensor  # (K, R, F) rows of the step after that follow from a row, R: none
    rooms: tuple[Any, ...]  # rows of every edge type: integers, or tensors where none knows yet

    @property
    def units(self) -> int:
        return self.layers[0][0].recurrent_kernel.shape[0]

    @property
    def depth(self) -> int:
        return len(self.layers[0])


class _Steps(NamedTuple):
    """What all steps leave for the way back. States are h, c of the first layer, the second, ..."""

    states: Tensor  # (K, R, 2 U L)
    taken: Tensor  # (K, R, 2 U L) the states of the sources
    gates: Tensor  # (K, R, 4 U L)


def _room(grid):
    """The rows of a grid; TensorFlow may trace for any number of them."""
    return ops.shape(grid)[1]


def _known(size):
    return size if isinstance(size, int) else None


def _spans(rooms):
    start = 0
    for room in rooms:
        yield slice(start, start + room)
        start += room


def _by_edge(x, kernels, rooms):
    """The rows of each edge type times its kernel."""
    parts = [
        x[span] @ kernel
        for span, kernel in zip(_spans(rooms), kernels, strict=True)
        if _known(span.start) is None or _known(span.stop) is None or span.start < span.stop
    ]
    return ops.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _piece(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled(function) if backend.backend() == "tensorflow" else function


def _row_after(x, value):
    """A last row of a value."""
    return ops.concatenate([x, value * ops.ones_like(x[:1])], 0)


def _forward(problem):
    units, depth, rooms = problem.units, problem.depth, problem.rooms
    update = _piece(advance)
    kernels = [[edge[place].kernel for edge in problem.layers] for place in range(depth)]
    recurrent = [
        [edge[place].recurrent_kernel for edge in problem.layers] for place in range(depth)
    ]
    rows = sum(rooms)
    biases = [None] + [
        ops.concatenate(
            [
                ops.broadcast_to(edge[place].bias, (room, 4 * units))
                for edge, room in zip(problem.layers, rooms, strict=True)
            ],
            0,
        )
        for place in range(1, depth)
    ]

    def body(carry, row):
        x, source = row
        taken = ops.take(_row_after(carry[0], INITIAL), source, axis=0)  # (R, 2 U L)
        states: list[Tensor] = []
        gates = []
        for place in range(depth):
            h = taken[:, 2 * place * units : (2 * place + 1) * units]
            c = taken[:, (2 * place + 1) * units : (2 * place + 2) * units]
            if place:
                x = _by_edge(states[-2], kernels[place], rooms) + biases[place]
            new, c, opened = update(x + _by_edge(h, recurrent[place], rooms), c)
            states += [new, c]
            gates.append(opened)
        states = ops.concatenate(states, -1)
        return (states,), (states, taken, ops.concatenate(gates, -1))

    width = 2 * units * depth
    start = INITIAL * ops.ones((rows, width), problem.x.dtype)
    specs = [((_known(rows), size), problem.x.dtype) for size in (width, width, 2 * width)]
    return _Steps(*scan(body, (start,), (problem.x, problem.source), specs)[1])


def _backward(problem, steps, d_h):
    """The gradients of x, and of every `Layer` of every edge type, by those of the last h."""
    units, depth, rooms = problem.units, problem.depth, problem.rooms
    update = _piece(retreat)
    turned = [
        [[ops.transpose(matrix) for matrix in edge[place][:2]] for edge in problem.layers]
        for place in range(depth)
    ]
    followers = problem.followers.shape[-1]

    def body(carry, row):
        d_h, states, taken, gates, rows = row
        above = _row_after(carry[0], 0.0)
        d_states = sum(ops.take(above, rows[:, place], axis=0) for place in range(followers))
        d_taken, dz = [None] * (2 * depth), [None] * depth
        for place in reversed(range(depth)):
            first = slice(2 * place * units, (2 * place + 1) * units)
            second = slice((2 * place + 1) * units, (2 * place + 2) * units)
            dh = d_states[:, first] + d_h
            opened = gates[:, 4 * place * units : 4 * (place + 1) * units]
            of_cell = states[:, second], taken[:, second], opened
            dz[place], d_taken[2 * place + 1] = update(dh, d_states[:, second], *of_cell)
            d_taken[2 * place] = _by_edge(dz[place], [edge[1] for edge in turned[place]], rooms)
            if place:
                d_h = _by_edge(dz[place], [edge[0] for edge in turned[place]], rooms)
        return (ops.concatenate(d_taken, -1),), (ops.concatenate(dz, -1),)

    rows, width = sum(rooms), 2 * units * depth
    specs = [((_known(rows), 2 * width), problem.x.dtype)]
    given = (d_h, steps.states, steps.taken, steps.gates, problem.followers)
    _, (dz,) = scan(body, (ops.zeros((rows, width), d_h.dtype),), given, specs, reverse=True)

    def flat(x, span, place):
        part = x[:, span, place * units : (place + 1) * units]
        return ops.reshape(part, (-1, units))

    gradients = []
    for span, edge in zip(_spans(rooms), problem.layers, strict=True):
        for place in range(len(edge)):
            by_gate = dz[:, span, 4 * place * units : 4 * (place + 1) * units]
            by_gate = ops.reshape(by_gate, (-1, 4 * units))
            kernel = bias = None
            if place:
                kernel = ops.transpose(flat(steps.states, span, 2 * place - 2)) @ by_gate
                bias = ops.sum(by_gate, 0)
            taken = ops.transpose(flat(steps.taken, span, 2 * place))
            gradients += [kernel, taken @ by_gate, bias]
    return [dz[..., : 4 * units], *gradients]


def _run(problem):
    """The hidden states of the last layer, (K, R, U)."""
    units = problem.units
    tensors = [problem.x, *(x for edge in problem.layers for layer in edge for x in layer)]

    def forward(x, *values):
        pieces = iter(values)
        layers = tuple(
            tuple(Layer(next(pieces), next(pieces), next(pieces)) for _ in edge)
            for edge in problem.layers
        )
        whole = problem._replace(x=x, layers=layers)
        steps = _forward(whole)

        def backward(d_h):
            return _backward(whole, steps, d_h)

        return steps.states[..., -2 * units : -units], backward

    return with_gradient(forward, tensors, "keras_onlstm.tree_lstm.step.readable")


def _left(weights, grids, vectors):
    """What is known of left dependents where the right ones begin, (K, room of `right`, U)."""
    layers, words = weights.left, grids["left_words"]
    x = matmul(vectors(words), layers[0].kernel) + layers[0].bias
    source = grids["left_source"]
    followers = ops.expand_dims(grids["left_followers"], -1)
    h = _run(_Problem(x, (layers,), source, followers, (_room(words),)))
    rows = ops.reshape(h, (-1, h.shape[-1]))
    return ops.take(_row_after(rows, INITIAL), grids["left_rows"], axis=0)


def hidden(
    weights: Weights,
    grids: Mapping[str, Tensor],
    drop: Callable[[Tensor], Tensor] = lambda x: x,
) -> Tensor:
    """The hidden states (N, U) from which the words of a batch are predicted.

    `grids` are those of `plan.Plan`, `drop` is a dropout of word vectors (..., E).
    """

    def vectors(words: Tensor) -> Tensor:
        return drop(take_rows(weights.embeddings, words))

    products: list[Tensor] = []
    used: Sequence[tuple[int, str]] = [
        (edge, name)
        for edge, name in enumerate(_EDGES)
        if weights.generators[edge] and grids[name].shape[1] != 0
    ]
    for edge, name in used:
        inputs = vectors(grids[name])  # (K, room, E)
        if weights.left and name == "right":
            inputs = ops.concatenate([inputs, _left(weights, grids, vectors)], -1)
        first = weights.generators[edge][0]
        products.append(matmul(inputs, first.kernel) + first.bias)
    x = ops.concatenate(products, 1)  # (K, R, 4 U)
    h = _run(
        _Problem(
            x,
            tuple(weights.generators[edge] for edge, _ in used),
            grids["source"],
            grids["followers"],
            tuple(_room(grids[name]) for _, name in used),
        )
    )
    return ops.take(ops.reshape(h, (-1, h.shape[-1])), grids["rows"], axis=0)
