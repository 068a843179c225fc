"""ONNX export through TensorFlow and tf2onnx.

In the traced model, a placeholder operator represents the recurrence of each `ONLSTM`. tf2onnx
keeps it, and afterwards the operators of `onnx_recurrence` replace it. The weights are added only
then, because tf2onnx would copy them many times.
"""

import logging
import textwrap
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from keras_onlstm.exporting import ONNX_QUANTIZATIONS, onnx_recurrence, onnx_weights
from keras_onlstm.exporting.checks import Exported, check_request, write_checked
from keras_onlstm.exporting.graphs import ModelGraph, make_graph
from keras_onlstm.exporting.onnx_weights import ModelProto
from keras_onlstm.exporting.saved_model_tensorflow import traced
from keras_onlstm.onlstm.recurrence import RecurrenceOutputs, reference, unsupported_reason
from keras_onlstm.runtime.metadata import KEY, dumps
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.libraries import not_installed, versions
from keras_onlstm.utils.validation import check_integer, renamed_arguments

_MINIMUM_OPSET = 18  # the first in which ReduceMean and ReduceSum both take their axes as an input
_DOMAIN = "keras_onlstm"


class _Placeholders:
    """Makes placeholder operators for recurrences, and later replaces them."""

    def __init__(self):
        self.weights = []

    def recurrence(self, arguments):
        """The recurrence as one placeholder operator."""
        import tensorflow as tf

        if unsupported_reason(arguments.activation, arguments.recurrent_activation):
            return reference(arguments)
        with tf.init_scope():  # reads variables outside the traced graph
            kernel = ops.convert_to_numpy(arguments.kernel)
            recurrent_kernel = ops.convert_to_numpy(arguments.recurrent_kernel)
            bias = None if arguments.bias is None else ops.convert_to_numpy(arguments.bias)
        weights = onnx_recurrence.Weights(kernel, recurrent_kernel, bias, arguments.chunk_size)
        self.weights.append(weights)
        (batch, time), units = arguments.inputs.shape[:2], arguments.h.shape[-1]
        single, mask = time == 1, arguments.mask
        tensors = [arguments.inputs[:, 0] if single else arguments.inputs, arguments.h, arguments.c]
        if mask is not None:
            tensors.append(mask if single else tf.expand_dims(mask, -1))
        token = f"{'one_step' if single else 'loop'} {len(self.weights) - 1}"
        shapes: list[tuple[Any, ...]] = [(batch, units)] * 2 + [(batch, 1)] * 2
        if not single:
            shapes = [(batch, time, units), *shapes[:2], *[(batch, time, 1)] * 2]
        outputs = tf.raw_ops.PyFunc(input=tensors, token=token, Tout=[tf.float32] * len(shapes))
        results: Any = [tf.ensure_shape(x, shape) for x, shape in zip(outputs, shapes, strict=True)]
        if single:
            return RecurrenceOutputs(results[0][:, None], *results)
        h, last_h, last_c, *distances = results
        return RecurrenceOutputs(h, last_h, last_c, *(d[..., 0] for d in distances))

    @staticmethod
    def keep_placeholder(context, node, _name, _arguments):
        """Handler for tf2onnx that keeps a placeholder."""
        kind, index = node.get_attr_str("token").split()
        inputs, outputs = list(node.input), list(node.output)
        options = {
            "attr": {"index": int(index)},
            "output_count": len(outputs),
            "outputs": outputs,
            "shapes": [context.get_shape(name) for name in outputs],
            "dtypes": [context.get_dtype(name) for name in outputs],
        }
        context.remove_node(node.name)
        context.make_node(kind, inputs, **options, domain=_DOMAIN, skip_conversion=True)

    def expand(self, model):
        """Replaces the placeholders by the operators of their recurrences."""
        nodes = []
        for node in model.graph.node:
            if node.domain != _DOMAIN:
                nodes.append(node)
                continue
            write, prefix = getattr(onnx_recurrence, node.op_type), f"onlstm_{len(nodes)}"
            inputs, weights = [*node.input, None][:4], self.weights[node.attribute[0].i]
            operators, constants = write(prefix, *inputs, list(node.output), weights)
            nodes += operators
            model.graph.initializer.extend(constants)
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        for opset in [opset for opset in model.opset_import if opset.domain == _DOMAIN]:
            model.opset_import.remove(opset)


def convert(graph: ModelGraph, opset: int) -> ModelProto:
    """Converts a graph to an ONNX model. Raises `ValueError` if ONNX cannot express it."""
    try:
        import onnx
        import tf2onnx
    except ImportError as error:
        # ONNX Runtime is needed later, to check the file.
        raise not_installed("ONNX", "tf2onnx", "onnx", "onnxruntime", error=error) from error
    check_integer("opset", opset, _MINIMUM_OPSET, max(tf2onnx.constants.OPSET_TO_IR_VERSION))
    placeholders = _Placeholders()
    function = traced(graph, placeholders.recurrence)
    function.get_concrete_function()  # errors in the model are raised here
    logger = logging.getLogger("tf2onnx")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it warns of each placeholder; errors are raised too
    try:
        model, _ = tf2onnx.convert.from_function(
            function,
            function.input_signature,
            opset=opset,
            custom_op_handlers={"PyFunc": (placeholders.keep_placeholder, [])},
            extra_opset=[onnx.helper.make_opsetid(_DOMAIN, 1)],
        )
        placeholders.expand(model)
        onnx_weights.remove_constant_states(model)
        onnx.checker.check_model(model)
    except Exception as error:  # both have their own classes
        raise ValueError(
            f"the graph {graph.name} of {graph.model.name} cannot be expressed in ONNX's operators "
            f"({textwrap.shorten(str(error), 300)})."
        ) from error
    finally:
        logger.setLevel(level)
    onnx_weights.merge_equal_constants(model)
    _name_axes(model, graph)
    onnx.checker.check_model(model)
    return model


def _name_axes(model, graph):
    """Names the axes of variable size, and removes the names that tf2onnx made up."""
    shapes = {entry.name: entry.shape for entry in graph.inputs}
    for value in [*model.graph.input, *model.graph.output]:
        axes = value.type.tensor_type.shape.dim
        for axis, size in zip(axes, shapes.get(value.name, ("batch",)), strict=False):
            if isinstance(size, str):
                axis.dim_param = size
        for axis in axes:
            if axis.dim_param.startswith("unk__"):
                axis.ClearField("dim_param")


@renamed_arguments(about="metadata")
def to_onnx(
    model: keras.Model,
    path: StrPath,
    graph: str | None = None,
    *,
    quantize: str | None = None,
    opset: int = 18,
    provider: str = "cpu",
    check: bool = True,
    inputs: Any = None,
    metadata: Any = None,
    vocabulary: Iterable[str] | None = None,
    labels: Iterable[str] | None = None,
) -> Exported:
    """Writes an ONNX file for any batch size and length.

    ONNX Runtime first runs it at two batch sizes and three lengths. It replaces `path` only if the
    results match Keras.

    Args:
        model: `LanguageModel`, `PRPN`, `Ensemble`, `PairClassifier`, `TreeLSTM` or a Keras model
            with `ONLSTM` or `RNN(ONLSTMCell)` in it.
        path: the file, ending in `.onnx`.
        graph: one of `graph_names(model)`; optional if there is only one.
        quantize: `"dynamic"`: 8-bit matrices and inputs rounded to 8 bits; `"float16"`: 16-bit
            matrices, converted to float32 for computing; `"weights"`: the same with 8 bits.
        opset: the ONNX opset, from 18 to the latest that tf2onnx supports (18 in tf2onnx 1.17).
        provider: `"cpu"` or `"cuda"`, where the check runs.
        check: whether to compare with Keras.
        inputs: list of `keras.Input`, if the model does not define its inputs.
        metadata: JSON-serializable object about the origin of the model, stored as `about`.
        vocabulary: list of words in the order of their ids, if the model has none.
        labels: list of the names of a classifier's classes.

    Raises:
        ImportError: if tf2onnx, onnx or onnxruntime is not installed.
        ValueError: if the model lacks the graph or an ON-LSTM, ONNX cannot express it, the opset or
            provider is not available, or the file differs from Keras.
        OSError: if the file cannot be written.
    """
    path = check_request(path, ".onnx", quantize, ONNX_QUANTIZATIONS)
    model_graph = make_graph(model, graph, inputs, metadata, vocabulary, labels)
    converted = convert(model_graph, opset)
    if quantize is None:
        onnx_weights.split_logit_sums(converted)
    elif quantize == "float16":
        onnx_weights.to_float16(converted)
    elif quantize == "weights":
        onnx_weights.to_int8_weights(converted)
    else:
        converted = onnx_weights.to_dynamic_int8(converted)
    fields = {**model_graph.metadata, "quantize": quantize}
    fields["versions"] = versions("tf2onnx", "onnx", "onnxruntime")
    entry = converted.metadata_props.add()
    entry.key, entry.value = KEY, dumps(fields)
    operators = (n.op_type for part in onnx_weights.subgraphs(converted.graph) for n in part.node)
    content = converted.SerializeToString()
    return write_checked(
        path, content, model_graph, operators, quantize=quantize, check=check, provider=provider
    )
