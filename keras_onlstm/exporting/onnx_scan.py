"""The recurrence as an ONNX Scan, with as little as possible inside the loop.

A step costs about as much for every operator as for the numbers it computes, so the body is written
for few of them, none of which broadcasts over the units of a chunk: that takes ONNX Runtime three
times as long as plain arithmetic. The input product is outside. Gates are in the order: master
forget, master input, candidate, output, forget, input; the weights of the last two are negated,
since s = 1 - sigmoid(z) = sigmoid(-z) is what is needed of them. With m = (f~, i~), w = f~ i~ and
the pair (c_tm1, c^),

    c = sum of (m - w s) (c_tm1, c^)

which is equation 14 with equations 12 and 13 put in. The sum over the chunks above each unit's, e,
comes from one product with a triangle, a row a chunk and a column a unit: i~ = e and f~ = 1 - e,
which is exactly 1 in the last chunk.
"""

import numpy as np

from keras_onlstm.step import gate_offsets

__all__ = ["CUMAX", "arranged", "scan_body"]

CUMAX = "cumax"  # ends the names of the products that must stay in float32

_ORDER = ("master_forget", "master_input", "candidate", "output", "forget", "input")
_NEGATED = ("forget", "input")


def arranged(weights, units, chunk_size):
    """Columns of a weight in the order of the body.

    Args:
        weights: array (..., K).
        units: integer, U.
        chunk_size: integer, C.

    Returns:
        Array of the same shape.
    """
    offsets = gate_offsets(units, chunk_size)
    parts = [weights[..., offsets[name]] for name in _ORDER]
    return np.concatenate(
        [-part if name in _NEGATED else part for name, part in zip(_ORDER, parts, strict=True)], -1
    )


def scan_body(recurrent_kernel, units, chunk_size, prefix, masked):
    """The graph of one step.

    Args:
        recurrent_kernel: array (U, K), arranged.
        units: integer, U.
        chunk_size: integer, C.
        prefix: string, in front of all names.
        masked: whether a boolean for every row says if the step counts.

    Returns:
        `onnx.GraphProto` with inputs h (B, U), c (B, U), z (B, K) and, if masked, keep (B, 1);
        outputs h, c, h again as the row (B, U), and the distances (B, 2), forget and input.

    Raises:
        ImportError: if onnx is not installed: the extra `keras-onlstm[onnx]` brings it.
    """
    from onnx import TensorProto, helper, numpy_helper

    chunks = units // chunk_size
    nodes, constants = [], []

    def name(text):
        return f"{prefix}/{text}"

    def constant(text, value, dtype="int64"):
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), name(text)))
        return name(text)

    def add(kind, inputs, *outputs, **attributes):
        outputs = [name(output) for output in outputs]
        nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def number(text, *values):
        return constant(text, np.reshape(values, (1, -1, 1)), "float32")

    h, c, z, keep = (name(text) for text in ("h", "c", "z", "keep"))
    kernel = constant("recurrent_kernel", recurrent_kernel, "float32")
    gates = add("Add", [add("MatMul", [h, kernel], "recurrent"), z], "gates")
    sizes = constant("sizes", [2 * chunks, units, 3 * units])
    masters, candidate, rest = add("Split", [gates, sizes], "masters", "candidate", "rest", axis=1)
    by_gate = add("Reshape", [masters, constant("by_gate_shape", [-1, 2, chunks])], "by_gate")
    shares = add("Softmax", [by_gate], "shares", axis=-1)  # (B, 2, N)
    above = np.repeat(np.tril(np.ones((chunks, chunks)), -1), chunk_size, axis=1)  # (N, U)
    triangle = constant("triangle", above, "float32")
    above = add("MatMul", [shares, triangle], "above", name=name(CUMAX))  # (B, 2, U)
    last = constant("last", [-1])
    means = add("ReduceMean", [above, last], "distances", keepdims=0)  # (B, 2)
    turned = add("Mul", [above, number("sign", -1.0, 1.0)], "turned")
    master = add("Add", [turned, number("start", 1.0, 0.0)], "master")  # (B, 2, U): f~, i~
    halves = constant("halves", [1, 1])
    f_tilde, i_tilde = add("Split", [master, halves], "f_tilde", "i_tilde", axis=1)
    omega = add("Mul", [f_tilde, i_tilde], "omega")  # (B, 1, U)
    sizes = constant("more_sizes", [units, 2 * units])
    opened = add("Sigmoid", [rest], "opened")
    output, closed = add("Split", [opened, sizes], "output", "closed", axis=1)
    pair_shape = constant("pair_shape", [-1, 2, units])
    closed = add("Reshape", [closed, pair_shape], "closed_pair")  # (B, 2, U)
    share = add("Sub", [master, add("Mul", [omega, closed], "given_up")], "share")
    pair = add("Concat", [c, add("Tanh", [candidate], "squashed")], "pair", axis=1)
    pair = add("Reshape", [pair, pair_shape], "cells")  # (B, 2, U): c_tm1, c^
    parts = add("Mul", [share, pair], "parts")
    new_c = add("ReduceSum", [parts, constant("axis", [1])], "new_c", keepdims=0)
    new_h = add("Mul", [output, add("Tanh", [new_c], "shown")], "new_h")
    if masked:
        new_h = add("Where", [keep, new_h, h], "kept_h")
        new_c = add("Where", [keep, new_c, c], "kept_c")
        zero = constant("zero", 0.0, "float32")
        means = add("Where", [keep, means, zero], "kept_distances")
    row = add("Identity", [new_h], "row")

    def value(text, width, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(text, kind, [None, width])

    width = recurrent_kernel.shape[1]
    inputs = [value(h, units), value(c, units), value(z, width)]
    inputs += [value(keep, 1, TensorProto.BOOL)] if masked else []
    outputs = [value(new_h, units), value(new_c, units), value(row, units), value(means, 2)]
    return helper.make_graph(nodes, prefix, inputs, outputs, constants)
