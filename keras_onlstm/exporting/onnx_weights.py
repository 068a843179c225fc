"""The constants of an ONNX model: removal of duplicates, quantization, numerical accuracy."""

import hashlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_onlstm.utils.libraries import not_installed

__all__ = ["as_float16", "as_int8", "release", "share", "sharpen", "subgraphs", "with_int8_weights"]

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


def _weights(graph):
    """The large float32 constants of one graph."""
    from onnx import TensorProto

    return [
        constant
        for constant in graph.initializer
        if constant.data_type == TensorProto.FLOAT and np.prod(constant.dims) >= _LARGE
    ]


def rename(graph: GraphProto, names: dict[str, str]) -> None:
    """Renames inputs of the operators of a graph and its subgraphs."""
    for inner in subgraphs(graph):
        for node in inner.node:
            for place, name in enumerate(node.input):
                if name in names:
                    node.input[place] = names[name]


def share(model: ModelProto) -> None:
    """Stores large equal constants only once, outside loops.

    A layer that reads two sentences has its weights twice, once in each loop. If embedding and
    softmax are tied, one matrix is the transpose of the other. Then embeddings are gathered from
    the columns of the softmax matrix, a few hundred numbers per token.
    """
    from onnx import numpy_helper

    places: dict[tuple[Any, ...], list[tuple[GraphProto, Any]]] = {}
    for graph in subgraphs(model.graph):
        for constant in _weights(graph):
            content = hashlib.sha256(numpy_helper.to_array(constant).tobytes()).digest()
            key = *constant.dims, content
            places.setdefault(key, []).append((graph, constant))
    names: dict[str, str] = {}
    for equal in places.values():
        if len(equal) == 1:
            continue
        kept = equal[0][1]
        names |= {constant.name: kept.name for _, constant in equal}
        for graph, constant in equal:
            graph.initializer.remove(constant)
        model.graph.initializer.append(kept)
    rename(model.graph, names)
    _share_transposed(model)


def _share_transposed(model):
    from onnx import helper, numpy_helper

    nodes, constants = model.graph.node, {c.name: c for c in _weights(model.graph)}
    multiplied = {node.input[1] for node in nodes if node.op_type == "MatMul"} & constants.keys()
    for gather in [n for n in nodes if n.op_type == "Gather" and n.input[0] in constants]:
        table = numpy_helper.to_array(constants[gather.input[0]])  # (V, E)
        for name in multiplied:
            matrix = numpy_helper.to_array(constants[name])
            if matrix.shape != table.shape[::-1] or not np.array_equal(matrix.T, table):
                continue
            columns = f"{gather.output[0]}/columns"
            place, rank = list(nodes).index(gather), _rank(model, gather.input[1])
            by_column = helper.make_node("Gather", [name, gather.input[1]], [columns], axis=1)
            turned = helper.make_node(
                "Transpose", [columns], gather.output[:], perm=[*range(1, rank + 1), 0]
            )
            nodes.remove(gather)
            nodes.insert(place, turned)
            nodes.insert(place, by_column)
            break
    used = {name for graph in subgraphs(model.graph) for node in graph.node for name in node.input}
    for constant in constants.values():
        if constant.name not in used:
            model.graph.initializer.remove(constant)


def _rank(model, name):
    """The rank of a tensor."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model).graph
    for value in [*inferred.value_info, *inferred.input]:
        if value.name == name:
            return len(value.type.tensor_type.shape.dim)
    raise ValueError(f"{name}: its shape is not known.")


def sharpen(model: ModelProto) -> None:
    """Sums the logits in parts, which reduces the rounding error of log-probabilities.

    ONNX Runtime adds the terms of a product one after the other. In a model with 300 features,
    logits up to 18 had an error of 9.2e-6 in float32, and of 3e-6 in parts of 100 features.
    """
    from onnx import helper

    nodes, matrices = model.graph.node, {c.name: c for c in _weights(model.graph)}
    makers = {name: node for node in nodes for name in node.output}
    for end in [node for node in nodes if node.op_type == "LogSoftmax"]:
        product = makers.get(end.input[0])
        while product is not None and product.op_type in ("Add", "Reshape"):
            product = makers.get(product.input[0])
        if product is None or product.op_type != "MatMul" or product.input[1] not in matrices:
            continue
        features = matrices[product.input[1]].dims[0]
        count = -(-features // _LONGEST_SUM)
        if count == 1:
            continue
        prefix, place = product.output[0], list(nodes).index(product)
        sides = [
            [f"{prefix}/{side}_{part}" for part in range(count)] for side in ("rows", "matrix")
        ]
        sums = [f"{prefix}/sum_{part}" for part in range(count)]
        added = [
            *(
                helper.make_node("Split", [name], parts, axis=axis, num_outputs=count)
                for name, parts, axis in zip(product.input, sides, (-1, 0), strict=True)
            ),
            *(
                helper.make_node("MatMul", [rows, matrix], [total])
                for rows, matrix, total in zip(*sides, sums, strict=True)
            ),
            helper.make_node("Sum", sums, product.output[:]),
        ]
        nodes.remove(product)
        for node in reversed(added):
            nodes.insert(place, node)


def as_float16(model: ModelProto) -> None:
    """Stores large constants in float16. They are cast to float32 for computing."""
    from onnx import TensorProto, helper, numpy_helper

    for graph in list(subgraphs(model.graph)):
        for constant in _weights(graph):
            name, half = constant.name, f"{constant.name}/float16"
            largest = float(np.finfo("float16").max)
            values = np.clip(numpy_helper.to_array(constant), -largest, largest)
            graph.initializer.remove(constant)
            model.graph.initializer.append(numpy_helper.from_array(values.astype("float16"), half))
            cast = helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT)
            model.graph.node.insert(0, cast)


def with_int8_weights(model: ModelProto) -> None:
    """Stores matrices in int8 with a scale per column. They are cast to float32 for computing.

    This is lossless for matrices from a file of `save_eight_bit`. It skips `Gemm`s, which sum the
    softmax of the master gates.
    """
    from onnx import TensorProto, helper, numpy_helper

    graphs = list(subgraphs(model.graph))
    sums = {name for g in graphs for n in g.node if n.op_type == "Gemm" for name in n.input}
    for graph in graphs:
        for constant in _weights(graph):
            if len(constant.dims) != 2 or constant.name in sums:
                continue
            name = constant.name
            integers, wide, factors = (f"{name}/{part}" for part in ("int8", "float32", "factors"))
            values = numpy_helper.to_array(constant)
            factor = (np.maximum(np.abs(values).max(axis=0), 1e-12) / 127).astype("float32")
            graph.initializer.remove(constant)
            model.graph.initializer.append(
                numpy_helper.from_array(np.rint(values / factor).astype("int8"), integers)
            )
            model.graph.initializer.append(numpy_helper.from_array(factor, factors))
            widened = helper.make_node("Cast", [integers], [wide], to=TensorProto.FLOAT)
            scaled = helper.make_node("Mul", [wide, factors], [name])
            for node in (scaled, widened):
                model.graph.node.insert(0, node)


def as_int8(model: ModelProto) -> ModelProto:
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


# tf2onnx turns every tensor that a Loop reads into a state, and ONNX Runtime copies states at every
# step: the kernel of a recurrence, megabytes for a few thousand products. A body can read outer
# tensors directly instead, and contain constants, where quantization finds them.
_BEFORE = 2  # inputs of a Loop before its states; its body has one output before them


def release(model: ModelProto) -> None:
    """Removes constant states from loops, and moves constants into the loop bodies."""
    for graph in subgraphs(model.graph):
        for node in graph.node:
            if node.op_type == "Loop":
                _release(graph, node)


def _release(graph, node):
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    for place in reversed(range(len(node.input) - _BEFORE)):
        given, outside = body.input[place + _BEFORE].name, node.input[place + _BEFORE]
        if body.output[place + _BEFORE - 1].name != given:
            continue
        rename(body, {given: outside})
        rename(graph, {node.output[place]: outside})
        for names, number in (
            (body.input, place + _BEFORE),
            (body.output, place + _BEFORE - 1),
            (node.input, place + _BEFORE),
            (node.output, place),
        ):
            del names[number]
    _take_in(graph, body)


def _take_in(graph, body):
    """Moves constants that only the loop body reads into it."""
    inside = _read(body)
    others = {name for node in graph.node for name in node.input}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g") and attribute.g is not body:
                others |= _read(attribute.g)
    others |= {value.name for value in graph.output}
    for constant in list(graph.initializer):
        if constant.name in inside - others:
            body.initializer.append(constant)
            graph.initializer.remove(constant)


def _read(graph: GraphProto) -> set[str]:
    """The names that a graph and its subgraphs read."""
    return {name for part in subgraphs(graph) for node in part.node for name in node.input}
