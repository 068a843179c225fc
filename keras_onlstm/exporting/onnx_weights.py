"""The constants of an ONNX model: removal of duplicates, quantization, numerical accuracy."""

import collections
import hashlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_onlstm.utils.libraries import not_installed

GraphProto = Any  # of `onnx`, which is imported where it is used
ModelProto = Any  # also of `onnx`

_LONGEST_SUM = 128  # terms
_LARGE = 1024  # entries; smaller constants are left unchanged


def subgraphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yields a graph and the graphs inside its operators, outermost first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from subgraphs(attribute.g)


def _names_read(graph: GraphProto) -> set[str]:
    """The names that the operators of a graph and its subgraphs read."""
    return {name for part in subgraphs(graph) for node in part.node for name in node.input}


def _large_weights(graph):
    """The large float32 constants of one graph."""
    from onnx import TensorProto

    return [
        constant
        for constant in graph.initializer
        if constant.data_type == TensorProto.FLOAT and np.prod(constant.dims) >= _LARGE
    ]


def _rename_inputs(graph, names):
    """Renames inputs of the operators of a graph and its subgraphs, by a dictionary of names."""
    for part in subgraphs(graph):
        for node in part.node:
            for index, name in enumerate(node.input):
                node.input[index] = names.get(name, name)


def merge_equal_constants(model: ModelProto) -> None:
    """Stores large equal constants only once, outside loops.

    A layer that reads two sentences has its weights in each of two loops. If embedding and softmax
    are tied, embeddings are gathered from the columns of the softmax matrix.
    """
    from onnx import numpy_helper

    groups = collections.defaultdict(list)
    for graph in subgraphs(model.graph):
        for constant in _large_weights(graph):
            content = hashlib.sha256(numpy_helper.to_array(constant).tobytes()).digest()
            groups[*constant.dims, content].append((graph, constant))
    names: dict[str, str] = {}
    for group in [group for group in groups.values() if len(group) > 1]:
        shared = group[0][1]
        for graph, constant in group:
            names[constant.name] = shared.name
            graph.initializer.remove(constant)
        model.graph.initializer.append(shared)
    _rename_inputs(model.graph, names)
    _merge_transposed_embedding(model)


def _merge_transposed_embedding(model):
    from onnx import helper, numpy_helper

    nodes, constants = model.graph.node, {c.name: c for c in _large_weights(model.graph)}
    multiplied = {node.input[1] for node in nodes if node.op_type == "MatMul"} & constants.keys()
    for gather in [n for n in nodes if n.op_type == "Gather" and n.input[0] in constants]:
        table = numpy_helper.to_array(constants[gather.input[0]])  # (V, E)
        for name in multiplied:
            matrix = numpy_helper.to_array(constants[name])
            if matrix.shape != table.shape[::-1] or not np.array_equal(matrix.T, table):
                continue
            columns = f"{gather.output[0]}/columns"
            axes = [*range(1, _rank(model, gather.input[1]) + 1), 0]
            by_column = helper.make_node("Gather", [name, gather.input[1]], [columns], axis=1)
            transpose = helper.make_node("Transpose", [columns], gather.output[:], perm=axes)
            _replace_node(nodes, gather, [by_column, transpose])
            break
    used = _names_read(model.graph)
    for constant in constants.values():
        if constant.name not in used:
            model.graph.initializer.remove(constant)


def _replace_node(nodes, node, replacement):
    index = list(nodes).index(node)
    nodes.remove(node)
    for new in reversed(replacement):
        nodes.insert(index, new)


def _rank(model, name):
    """The rank of a tensor."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = {value.name: value for value in [*inferred.value_info, *inferred.input]}
    return len(values[name].type.tensor_type.shape.dim)


def split_logit_sums(model: ModelProto) -> None:
    """Sums the logits in parts, which reduces the rounding error of log-probabilities to a third.

    ONNX Runtime adds the terms of a product one after the other.
    """
    from onnx import helper

    nodes, matrices = model.graph.node, {c.name: c for c in _large_weights(model.graph)}
    producers = {name: node for node in nodes for name in node.output}
    for softmax in [node for node in nodes if node.op_type == "LogSoftmax"]:
        product = producers.get(softmax.input[0])
        while product is not None and product.op_type in ("Add", "Reshape"):
            product = producers.get(product.input[0])
        if product is None or product.op_type != "MatMul" or product.input[1] not in matrices:
            continue
        features = matrices[product.input[1]].dims[0]
        count = -(-features // _LONGEST_SUM)
        if count == 1:
            continue
        rows, matrix, sums = (
            [f"{product.output[0]}/{text}_{part}" for part in range(count)]
            for text in ("rows", "matrix", "sum")
        )
        replacement = [
            helper.make_node("Split", [product.input[0]], rows, axis=-1, num_outputs=count),
            helper.make_node("Split", [product.input[1]], matrix, axis=0, num_outputs=count),
            *(
                helper.make_node("MatMul", operands[:2], operands[2:])
                for operands in zip(rows, matrix, sums, strict=True)
            ),
            helper.make_node("Sum", sums, product.output[:]),
        ]
        _replace_node(nodes, product, replacement)


def _cast_to_float32(model, values, name, output):
    """Adds a constant, and an operator at the beginning that casts it to float32."""
    from onnx import TensorProto, helper, numpy_helper

    model.graph.initializer.append(numpy_helper.from_array(values, name))
    model.graph.node.insert(0, helper.make_node("Cast", [name], [output], to=TensorProto.FLOAT))


def to_float16(model: ModelProto) -> None:
    """Stores large constants in float16. They are cast to float32 for computing."""
    from onnx import numpy_helper

    largest = float(np.finfo("float16").max)
    for graph in list(subgraphs(model.graph)):
        for constant in _large_weights(graph):
            name = constant.name
            values = np.clip(numpy_helper.to_array(constant), -largest, largest)
            graph.initializer.remove(constant)
            _cast_to_float32(model, values.astype("float16"), f"{name}/float16", name)


def to_int8_weights(model: ModelProto) -> None:
    """Stores matrices in int8 with a scale per column. They are cast to float32 for computing.

    Lossless for files of `save_eight_bit`. Skips `Gemm`s, which sum the softmax of master gates.
    """
    from onnx import helper, numpy_helper

    graphs = list(subgraphs(model.graph))
    sums = {name for g in graphs for n in g.node if n.op_type == "Gemm" for name in n.input}
    for graph in graphs:
        for constant in _large_weights(graph):
            name = constant.name
            if len(constant.dims) != 2 or name in sums:
                continue
            floats, factors = f"{name}/float32", f"{name}/factors"
            values = numpy_helper.to_array(constant)
            factor = (np.maximum(np.abs(values).max(axis=0), 1e-12) / 127).astype("float32")
            integers = np.rint(values / factor).astype("int8")
            graph.initializer.remove(constant)
            _cast_to_float32(model, integers, f"{name}/int8", floats)
            model.graph.initializer.append(numpy_helper.from_array(factor, factors))
            model.graph.node.insert(1, helper.make_node("Mul", [floats, factors], [name]))


def to_dynamic_int8(model: ModelProto) -> ModelProto:
    """A model with 8-bit matrices, which are multiplied with inputs rounded to 8 bits.

    Skips `Gemm`s, which compute `cumax`: 8 bits are not enough for a running sum.
    """
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise not_installed("quantize='dynamic'", "onnx", "onnxruntime", error=error) from error
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it logs a recommendation
    try:
        with tempfile.TemporaryDirectory() as directory:
            before, after = Path(directory, "before.onnx"), Path(directory, "after.onnx")
            onnx.save(model, before)
            quantize_dynamic(
                before,
                after,
                op_types_to_quantize=["MatMul", "Gather"],
                per_channel=True,
                weight_type=QuantType.QUInt8,  # signed ones overflow on processors without VNNI
                extra_options={"EnableSubgraph": True, "MatMulConstBOnly": True},
            )
            return onnx.load(after)
    finally:
        root.setLevel(level)


_BEFORE = 2  # inputs of a Loop before its states; its body has one output before them


def remove_constant_states(model: ModelProto) -> None:
    """Removes constant states from loops, and moves constants into the loop bodies.

    tf2onnx turns every tensor that a Loop reads into a state, and ONNX Runtime copies states at
    every step. A body can read outer tensors directly instead, and contain constants, where
    quantization finds them.
    """
    for graph in subgraphs(model.graph):
        for node in graph.node:
            if node.op_type == "Loop":
                body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
                _remove_constant_states(graph, node, body)
                _move_constants_into(graph, body)


def _remove_constant_states(graph, node, body):
    for state in reversed(range(len(node.input) - _BEFORE)):
        index = state + _BEFORE
        inner, outer = body.input[index].name, node.input[index]
        if body.output[index - 1].name == inner:  # the step returns the state unchanged
            _rename_inputs(body, {inner: outer})
            _rename_inputs(graph, {node.output[state]: outer})
            del body.input[index], body.output[index - 1], node.input[index], node.output[state]


def _move_constants_into(graph, body):
    """Moves constants that only the loop body reads into it."""
    outside = {value.name for value in graph.output}
    for node in graph.node:
        outside.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g") and attribute.g is not body:
                outside |= _names_read(attribute.g)
    names = _names_read(body) - outside
    for constant in [constant for constant in graph.initializer if constant.name in names]:
        body.initializer.append(constant)
        graph.initializer.remove(constant)
