"""The recurrence in ONNX's operators, with as little as possible inside its loop.

A step costs about as much for every operator as for the numbers it computes, so it is written for
few of them, none of which broadcasts over the units of a chunk: that takes ONNX Runtime three times
as long as plain arithmetic. The input product is outside the loop, a Scan. Gates are in the order:
master forget, master input, candidate, output, forget, input; the weights of the last two are
negated, since s = 1 - sigmoid(z) = sigmoid(-z) is what is needed of them. With m = (f~, i~),
w = f~ i~ and the pair (c_tm1, c^),

    c = sum of (m - w s) (c_tm1, c^)

which is equation 14 with equations 12 and 13 put in. The sum over the chunks above each unit's, e,
comes from one product with a triangle, a row a chunk and a column a unit: i~ = e and f~ = 1 - e,
which is exactly 1 in the last chunk.
"""

from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.step import gate_offsets

__all__ = ["CUMAX", "Weights", "loop", "one_step"]

CUMAX = "cumax"  # ends the names of the products that must stay in float32
_ORDER = ("master_forget", "master_input", "candidate", "output", "forget", "input")
_NEGATED = ("forget", "input")


class Weights(NamedTuple):
    """The weights of a layer.

    Attributes:
        kernel: array (D, K).
        recurrent_kernel: array (U, K).
        bias: array (K,), or `None`.
        chunk_size: integer, C.
    """

    kernel: Any
    recurrent_kernel: Any
    bias: Any
    chunk_size: int

    @property
    def units(self):
        return self.recurrent_kernel.shape[0]

    def arranged(self):
        """Kernel, recurrent kernel and bias in the order of the step, float32."""
        offsets = gate_offsets(self.units, self.chunk_size)
        bias = self.bias
        if bias is None:
            bias = np.zeros(self.kernel.shape[1])
        return [
            np.concatenate(
                [
                    -w[..., offsets[name]] if name in _NEGATED else w[..., offsets[name]]
                    for name in _ORDER
                ],
                axis=-1,
            ).astype("float32")
            for w in (self.kernel, self.recurrent_kernel, bias)
        ]


class _Writer:
    """Collects operators and constants under names that begin alike."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.nodes, self.constants = [], []

    def name(self, text):
        return f"{self.prefix}/{text}"

    def constant(self, text, value, dtype="int64"):
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), self.name(text)))
        return self.name(text)

    def add(self, kind, inputs, *outputs, **attributes):
        """Adds an operator; its outputs are named, or where these are lists, have the names."""
        from onnx import helper

        outputs = [o[0] if isinstance(o, list) else self.name(o) for o in outputs]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def step(self, h, c, z, keep, recurrent_kernel, units, chunk_size):
        """One step: names of h, c (B, U) and of the distances (B, 2), forget and input.

        Args:
            h: name of (B, U).
            c: name of (B, U).
            z: name of (B, K), the input's share of the pre-activations.
            keep: name of (B, 1), whether the step counts, or `None`.
            recurrent_kernel: name of (U, K).
            units: integer, U.
            chunk_size: integer, C.
        """
        add, constant, chunks = self.add, self.constant, units // chunk_size

        def number(text, *values):
            return constant(text, np.reshape(values, (1, -1, 1)), "float32")

        gates = add("Add", [add("MatMul", [h, recurrent_kernel], "recurrent"), z], "gates")
        sizes = constant("sizes", [2 * chunks, units, 3 * units])
        masters, candidate, rest = add(
            "Split", [gates, sizes], "masters", "candidate", "rest", axis=1
        )
        by_gate = add("Reshape", [masters, constant("by_gate_shape", [-1, 2, chunks])], "by_gate")
        shares = add("Softmax", [by_gate], "shares", axis=-1)  # (B, 2, N)
        above = np.repeat(np.tril(np.ones((chunks, chunks)), -1), chunk_size, axis=1)  # (N, U)
        triangle = constant("triangle", above, "float32")
        above = add("MatMul", [shares, triangle], "above", name=self.name(CUMAX))  # (B, 2, U)
        last = constant("last", [-1])
        distances = add("ReduceMean", [above, last], "distances", keepdims=0)  # (B, 2)
        turned = add("Mul", [above, number("sign", -1.0, 1.0)], "turned")
        master = add("Add", [turned, number("start", 1.0, 0.0)], "master")  # (B, 2, U): f~, i~
        halves = constant("halves", [1, 1])
        f_tilde, i_tilde = add("Split", [master, halves], "f_tilde", "i_tilde", axis=1)
        omega = add("Mul", [f_tilde, i_tilde], "omega")  # (B, 1, U)
        opened = add("Sigmoid", [rest], "opened")
        sizes = constant("more_sizes", [units, 2 * units])
        output, closed = add("Split", [opened, sizes], "output", "closed", axis=1)
        pair_shape = constant("pair_shape", [-1, 2, units])
        closed = add("Reshape", [closed, pair_shape], "closed_pair")  # (B, 2, U)
        share = add("Sub", [master, add("Mul", [omega, closed], "given_up")], "share")
        pair = add("Concat", [c, add("Tanh", [candidate], "squashed")], "pair", axis=1)
        pair = add("Reshape", [pair, pair_shape], "cells")  # (B, 2, U): c_tm1, c^
        parts = add("Mul", [share, pair], "parts")
        new_c = add("ReduceSum", [parts, constant("axis", [1])], "new_c", keepdims=0)
        new_h = add("Mul", [output, add("Tanh", [new_c], "shown")], "new_h")
        if keep is not None:
            new_h = add("Where", [keep, new_h, h], "kept_h")
            new_c = add("Where", [keep, new_c, c], "kept_c")
            zero = constant("zero", 0.0, "float32")
            distances = add("Where", [keep, distances, zero], "kept_distances")
        return new_h, new_c, distances


def one_step(prefix, x, h, c, keep, outputs, weights):
    """The recurrence over one row of time, without a loop.

    Args:
        prefix: string, in front of all names.
        x: name of (B, D).
        h: name of (B, U).
        c: name of (B, U).
        keep: name of (B, 1), whether the step counts, or `None`.
        outputs: names for h, c and the distances, in this order.
        weights: `Weights`.

    Returns:
        Operators and constants: two lists.
    """
    to = _Writer(prefix)
    kernel, recurrent_kernel, bias = weights.arranged()
    product = to.add("MatMul", [x, to.constant("kernel", kernel, "float32")], "product")
    z = to.add("Add", [product, to.constant("bias", bias, "float32")], "projected")
    matrix = to.constant("recurrent_kernel", recurrent_kernel, "float32")
    found = to.step(h, c, z, keep, matrix, weights.units, weights.chunk_size)
    for name, output in zip(found, outputs, strict=True):
        to.add("Identity", [name], [output])
    return to.nodes, to.constants


def loop(prefix, x, h, c, keep, outputs, weights):
    """The recurrence over time.

    Args:
        prefix: string, in front of all names.
        x: name of (B, T, D).
        h: name of (B, U).
        c: name of (B, U).
        keep: name of (B, T, 1), whether steps count, or `None`.
        outputs: names for the rows (B, T, U), the last h and c, and the distances (B, T, 2).
        weights: `Weights`.

    Returns:
        Operators and constants: two lists.
    """
    from onnx import TensorProto, helper

    units, body = weights.units, _Writer(f"{prefix}/step")
    to = _Writer(prefix)
    kernel, recurrent_kernel, bias = weights.arranged()
    product = to.add("MatMul", [x, to.constant("kernel", kernel, "float32")], "product")
    z = to.add("Add", [product, to.constant("bias", bias, "float32")], "projected")
    matrix = to.constant("recurrent_kernel", recurrent_kernel, "float32")

    names = [body.name(text) for text in ("h", "c", "z", "keep")]
    if keep is None:
        names[3] = None
    new_h, new_c, distances = body.step(*names, matrix, units, weights.chunk_size)
    row = body.add("Identity", [new_h], "row")

    def value(name, width, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, [None, width])

    widths = (units, units, kernel.shape[1])
    inputs = [value(*both) for both in zip(names, widths, strict=False)]
    if keep is not None:
        inputs.append(value(names[3], 1, TensorProto.BOOL))
    results = [
        value(n, w) for n, w in ((new_h, units), (new_c, units), (row, units), (distances, 2))
    ]
    rows, last_h, last_c, both_distances = outputs
    to.add(
        "Scan",
        [h, c, z, *([] if keep is None else [keep])],
        *([name] for name in (last_h, last_c, rows, both_distances)),
        body=helper.make_graph(body.nodes, body.prefix, inputs, results, body.constants),
        num_scan_inputs=1 if keep is None else 2,
        scan_input_axes=[1] if keep is None else [1, 1],
        scan_output_axes=[1, 1],
    )
    return to.nodes, to.constants
