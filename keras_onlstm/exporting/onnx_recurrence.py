"""The recurrence in ONNX operators, with as few as possible inside its loop.

Starting an operator takes about as long as its arithmetic. No operator broadcasts over the units of
a chunk, because that takes ONNX Runtime three times as long. The input product is outside the loop,
a Scan. The weights of the forget and input gates are negated, because the step needs
s = 1 - sigmoid(z) = sigmoid(-z): with w = f~ i~,

    c = (f~ - w s_f) c_tm1 + (i~ - w s_i) c^

which is equation 14 with equations 12 and 13 inserted. Master gates are computed per unit: softmax
probabilities times a triangular matrix (a row per chunk, a column per unit) give e, the sum over
higher chunks. Then i~ = e and f~ = 1 - e, which is exactly 1 in the last chunk.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.onlstm.gates import MASTER_GATES, gate_offsets

_ORDER = ("master_forget", "master_input", "candidate", "output", "forget", "input")
_NEGATED = ("forget", "input")


class Weights(NamedTuple):
    """The weights of a layer: (D, K), (U, K) and (K,)."""

    kernel: np.ndarray
    recurrent_kernel: np.ndarray
    bias: np.ndarray | None
    chunk_size: int

    @property
    def units(self) -> int:
        return self.recurrent_kernel.shape[0]

    def arranged(self) -> list[np.ndarray]:
        """Kernel, recurrent kernel and bias with gates in the order of `_ORDER`, float32."""
        offsets = gate_offsets(self.units, self.chunk_size)
        bias = np.zeros(self.kernel.shape[1]) if self.bias is None else self.bias

        def arrange(w):
            gates = [-w[..., offsets[g]] if g in _NEGATED else w[..., offsets[g]] for g in _ORDER]
            return np.concatenate(gates, axis=-1).astype("float32")

        return [arrange(w) for w in (self.kernel, self.recurrent_kernel, bias)]


class _Writer:
    """Collects operators and constants under names with a common prefix."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.nodes, self.constants = [], []

    def name(self, text):
        return f"{self.prefix}/{text}"

    def constant(self, text, value, dtype="int64"):
        from onnx import numpy_helper

        name = self.name(text)
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, kind, inputs, *outputs, **attributes):
        """Adds an operator. Output names get the prefix, unless given as a list of one name."""
        from onnx import helper

        names = [o[0] if isinstance(o, list) else self.name(o) for o in outputs]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if len(names) == 1 else names

    def projection(self, x, kernel, bias):
        """Adds the input product x (..., D) @ kernel + bias. Returns its name (..., K)."""
        product = self.add("MatMul", [x, self.constant("kernel", kernel, "float32")], "product")
        return self.add("Add", [product, self.constant("bias", bias, "float32")], "projected")

    def step(self, h, c, z, mask, recurrent_kernel, units, chunk_size):
        """Adds one step for the projected inputs z (B, K).

        All arguments and results are names: results of h, c (B, U) and the distances (B, 1).
        """
        add, chunks, masters = self.add, units // chunk_size, ("forget", "input")
        gates = add("Add", [add("MatMul", [h, recurrent_kernel], "recurrent"), z], "gates")
        sizes = [chunks if name in MASTER_GATES else units for name in _ORDER]
        names = [f"gate_{name}" for name in _ORDER]
        split = add("Split", [gates, self.constant("sizes", sizes)], *names, axis=1)
        pre = dict(zip(_ORDER, split, strict=True))
        probabilities = [
            add("Softmax", [pre[f"master_{name}"]], f"shares_{name}", axis=-1)  # (B, N)
            for name in masters
        ]
        above = np.tril(np.ones((chunks, chunks), "float32"), -1)  # (N, N)
        triangle = self.constant("triangle", np.repeat(above, chunk_size, axis=1), "float32")
        one = self.constant("one", [1.0], "float32")
        f_tilde = add("Gemm", [probabilities[0], triangle, one], "f_tilde", alpha=-1.0)  # (B, U)
        # Without a third input beta has no effect, but as_int8 would treat a Gemm with alpha and
        # beta 1 as a MatMul.
        i_tilde = add("Gemm", [probabilities[1], triangle], "i_tilde", beta=0.0)
        means = self.constant("means", above.mean(1, keepdims=True), "float32")  # (N, 1)
        distances = [
            add("Gemm", [p, means], f"distance_{name}", beta=0.0)  # (B, 1)
            for p, name in zip(probabilities, masters, strict=True)
        ]
        # The forget and input gates are those of negated weights: 1 minus the gates of the paper.
        output_gate, forget_complement, input_complement = (
            add("Sigmoid", [pre[name]], f"sigmoid_{name}") for name in ("output", "forget", "input")
        )
        omega = add("Mul", [f_tilde, i_tilde], "omega")
        f_hat = add("Sub", [f_tilde, add("Mul", [omega, forget_complement], "not_kept")], "f_hat")
        i_hat = add("Sub", [i_tilde, add("Mul", [omega, input_complement], "not_taken")], "i_hat")
        old = add("Mul", [f_hat, c], "old")
        new = add("Mul", [i_hat, add("Tanh", [pre["candidate"]], "squashed")], "new")
        new_c = add("Add", [old, new], "new_c")
        new_h = add("Mul", [output_gate, add("Tanh", [new_c], "shown")], "new_h")
        if mask is not None:
            zero = self.constant("zero", 0.0, "float32")
            new_h = add("Where", [mask, new_h, h], "kept_h")
            new_c = add("Where", [mask, new_c, c], "kept_c")
            distances = [add("Where", [mask, d, zero], f"{d}/kept") for d in distances]
        return new_h, new_c, *distances


def one_step(
    prefix: str, x: str, h: str, c: str, mask: str | None, outputs: Sequence[str], weights: Weights
) -> tuple[list[Any], list[Any]]:
    """The recurrence over one time step, without a loop: lists of operators and constants.

    `x`, `h`, `c` and `mask` name tensors (B, D), (B, U), (B, U) and (B, 1). `outputs` are names for
    h, c and the two distances (B, 1).
    """
    writer = _Writer(prefix)
    kernel, recurrent_kernel, bias = weights.arranged()
    z = writer.projection(x, kernel, bias)
    matrix = writer.constant("recurrent_kernel", recurrent_kernel, "float32")
    results = writer.step(h, c, z, mask, matrix, weights.units, weights.chunk_size)
    for name, output in zip(results, outputs, strict=True):
        writer.add("Identity", [name], [output])
    return writer.nodes, writer.constants


def loop(
    prefix: str, x: str, h: str, c: str, mask: str | None, outputs: Sequence[str], weights: Weights
) -> tuple[list[Any], list[Any]]:
    """The recurrence over time: lists of operators and constants.

    `x`, `h`, `c` and `mask` name tensors (B, T, D), (B, U), (B, U) and (B, T, 1). `outputs` are
    names for all h (B, T, U), the last h and c, and the distances (B, T, 1).
    """
    from onnx import TensorProto, helper

    units, writer, body = weights.units, _Writer(prefix), _Writer(f"{prefix}/step")
    kernel, recurrent_kernel, bias = weights.arranged()
    # Scan reads time-major tensors. Transposing x is cheaper than transposing its wider product.
    rows = writer.add("Transpose", [x], "rows", perm=[1, 0, 2])
    z = writer.projection(rows, kernel, bias)  # (T, B, K)
    matrix = body.constant("recurrent_kernel", recurrent_kernel, "float32")

    h_t, c_t, z_t = (body.name(text) for text in ("h", "c", "z"))
    mask_t = None if mask is None else body.name("keep")
    new_h, new_c, *distances = body.step(h_t, c_t, z_t, mask_t, matrix, units, weights.chunk_size)
    # The state h is also an output of every step. A graph's outputs need different names.
    row = body.add("Identity", [new_h], "row")

    def value(name, width, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, [None, width])

    inputs = [value(h_t, units), value(c_t, units), value(z_t, kernel.shape[1])]
    if mask is not None:
        inputs.append(value(mask_t, 1, TensorProto.BOOL))
    results = [value(name, units) for name in (new_h, new_c, row)]
    results += [value(name, 1) for name in distances]
    all_h, *last_states = outputs[:3]
    writer.add(
        "Scan",
        [h, c, z, *([] if mask is None else [mask])],
        *([name] for name in (*last_states, all_h, *outputs[3:])),
        body=helper.make_graph(body.nodes, body.prefix, inputs, results, body.constants),
        num_scan_inputs=1 if mask is None else 2,
        scan_input_axes=[0] if mask is None else [0, 1],
        scan_output_axes=[1, 1, 1],
    )
    return writer.nodes, writer.constants
