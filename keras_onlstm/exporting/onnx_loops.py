"""Loops in ONNX without what they would hand from step to step as it is.

tf2onnx gives a Loop every tensor that it reads as a state, and ONNX Runtime copies states in every
step: of a recurrence that is its kernel, megabytes for a few thousand products. A body may as well
read what stands outside; and constants may stand in it, where quantization finds them.
"""

from keras_onlstm.exporting.onnx_weights import GraphProto, ModelProto, subgraphs

__all__ = ["release"]

_BEFORE = 2  # inputs of a Loop in front of its states; its body has one output less


def release(model: ModelProto) -> None:
    """Takes out of the states of loops those that never change, and puts constants into bodies.

    Args:
        model: `onnx.ModelProto`, changed in place.
    """
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
        _rename(body, given, outside)
        _rename(graph, node.output[place], outside)
        for names, number in (
            (body.input, place + _BEFORE),
            (body.output, place + _BEFORE - 1),
            (node.input, place + _BEFORE),
            (node.output, place),
        ):
            del names[number]
    _take_in(graph, body)


def _take_in(graph, body):
    """Puts the constants of a graph into the body that alone reads them."""
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
    """The names that a graph reads, those inside its operators too."""
    return {name for part in subgraphs(graph) for node in part.node for name in node.input}


def _rename(graph, old, new):
    for part in subgraphs(graph):
        for node in part.node:
            for place, name in enumerate(node.input):
                if name == old:
                    node.input[place] = new
