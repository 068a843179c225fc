"""ONNX files, by way of TensorFlow and tf2onnx.

While the model is traced, every `ONLSTM` leaves an operator that stands for its recurrence; in its
place tf2onnx then puts the Scan of `onnx_scan`.
"""

import json
import logging

from keras_onlstm import runtime
from keras_onlstm.exporting import checks, onnx_scan, onnx_weights
from keras_onlstm.exporting.exported import Exported, check_request
from keras_onlstm.exporting.graphs import make_graph
from keras_onlstm.exporting.tracing_tensorflow import portable_recurrence, traced
from keras_onlstm.files import replacing
from keras_onlstm.provenance import versions
from keras_onlstm.recurrence.fused import refusal
from keras_onlstm.recurrence.reference import Recurrence
from keras_onlstm.runtime import metadata

__all__ = ["to_onnx"]

_LEAST_OPSET = 18  # the first whose means and sums take their axes as an input
_TOKEN = "keras_onlstm:"


def _placeholder(
    inputs,
    h,
    c,
    kernel,
    recurrent_kernel,
    bias=None,
    *,
    mask=None,
    recurrent_mask=None,
    chunk_size,
    activation,
    recurrent_activation,
):
    """`reference.run` as one operator, which `_to_scan` knows."""
    import tensorflow as tf

    options = {"chunk_size": chunk_size, "mask": mask, "recurrent_mask": recurrent_mask}
    if inputs.shape[1] == 1 or refusal(activation, recurrent_activation):
        options |= {"activation": activation, "recurrent_activation": recurrent_activation}
        return portable_recurrence(inputs, h, c, kernel, recurrent_kernel, bias, **options)
    units = h.shape[-1]
    token = _TOKEN + json.dumps({"units": units, "chunk_size": chunk_size})
    given = [inputs, h, c, *map(tf.convert_to_tensor, (kernel, recurrent_kernel))]
    given.append(tf.zeros(kernel.shape[-1:]) if bias is None else tf.convert_to_tensor(bias))
    if mask is not None:
        given.append(tf.expand_dims(mask, -1))
    rows, last_h, last_c, distances = tf.raw_ops.PyFunc(
        input=given, token=token, Tout=[tf.float32] * 4
    )
    batch, time = inputs.shape[:2]
    rows = tf.ensure_shape(rows, (batch, time, units))
    last_h, last_c = (tf.ensure_shape(x, (batch, units)) for x in (last_h, last_c))
    distances = tf.ensure_shape(distances, (batch, time, 2))
    return Recurrence(rows, last_h, last_c, distances[..., 0], distances[..., 1])


def _to_scan(context, node, _name, _arguments):
    from onnx import TensorProto
    from tf2onnx import utils

    options = json.loads(node.get_attr_str("token").removeprefix(_TOKEN))
    units, chunk_size = options["units"], options["chunk_size"]
    x, h, c, *weights = node.input[:6]
    values = [context.get_node_by_output(w).get_tensor_value(as_list=False) for w in weights]
    kernel, recurrent_kernel, bias = (onnx_scan.arranged(v, units, chunk_size) for v in values)
    mask, (rows, last_h, last_c, distances) = node.input[6:], list(node.output)
    context.remove_node(node.name)
    prefix = utils.make_name("onlstm")

    def constant(text, value):
        return context.make_const(f"{prefix}/{text}", value).output[0]

    product = context.make_node("MatMul", [x, constant("kernel", kernel)]).output[0]
    z = context.make_node("Add", [product, constant("bias", bias)]).output[0]
    scan = context.make_node(
        "Scan",
        [h, c, z, *mask],
        output_count=4,
        name=prefix,
        attr={
            "num_scan_inputs": 1 + len(mask),
            "scan_input_axes": [1] * (1 + len(mask)),
            "scan_output_axes": [1, 1],
        },
        outputs=[last_h, last_c, rows, distances],
        dtypes=[TensorProto.FLOAT] * 4,
        skip_conversion=True,
    )
    body = onnx_scan.scan_body(recurrent_kernel, units, chunk_size, prefix, bool(mask))
    scan.set_attr("body", body)


def convert(graph, opset):
    """A graph as an ONNX model.

    Args:
        graph: `keras_onlstm.exporting.graphs.Graph`.
        opset: integer, the version of the operators.

    Returns:
        `onnx.ModelProto`.

    Raises:
        ImportError: if tf2onnx or onnx is not installed.
    """
    try:
        import onnx
        import tf2onnx
    except ImportError as error:
        raise ImportError(
            f"ONNX needs tf2onnx and onnx ({error}): pip install 'keras-onlstm[onnx]'"
        ) from error
    if opset < _LEAST_OPSET or opset > onnx.defs.onnx_opset_version():
        raise ValueError(
            f"opset={opset}: from {_LEAST_OPSET} to {onnx.defs.onnx_opset_version()} are there."
        )
    function = traced(graph, _placeholder)
    logger = logging.getLogger("tf2onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it warns of each placeholder, whose shape it cannot infer
    try:
        model, _ = tf2onnx.convert.from_function(
            function,
            function.input_signature,
            opset=opset,
            custom_op_handlers={"PyFunc": (_to_scan, [])},
        )
    finally:
        logger.setLevel(level)
    onnx_weights.share(model)
    _name_axes(model, graph)
    onnx.checker.check_model(model)
    return model


def _name_axes(model, graph):
    """Names the axes where any size will do; what tf2onnx called them says nothing."""
    shapes = {entry.name: entry.shape for entry in graph.inputs}
    for value in [*model.graph.input, *model.graph.output]:
        axes = value.type.tensor_type.shape.dim
        for axis, size in zip(axes, shapes.get(value.name, ("batch",)), strict=False):
            if isinstance(size, str):
                axis.dim_param = size
        for axis in axes:
            if axis.dim_param.startswith("unk__"):
                axis.ClearField("dim_param")


def to_onnx(
    model,
    path,
    graph=None,
    *,
    quantize=None,
    opset=18,
    provider="cpu",
    check=True,
    inputs=None,
    about=None,
    vocabulary=None,
    labels=None,
):
    """Writes an ONNX file, for any batch and any length.

    The file gets its name only after ONNX Runtime ran it at two batch sizes and three lengths and
    gave what Keras gives.

    Args:
        model: `LanguageModel`, `PairClassifier` or a Keras model with `ONLSTM` or `RNN(ONLSTMCell)`
            in it.
        path: the file, ending in `.onnx`.
        graph: one of `graph_names(model)`; may be left out where there is but one.
        quantize: `"dynamic"`: 8-bit matrices, which meet inputs rounded to 8 bits; `"float16"`:
            matrices in 16 bits, computed with as float32.
        opset: integer from 18 on, the version of ONNX's operators.
        provider: `"cpu"` or `"cuda"`, where it is checked.
        check: whether it is checked.
        inputs: list of `keras.Input`, where the model does not know its own.
        about: JSON-serializable object for the metadata: where the model comes from.
        vocabulary: list of the words of the ids for the metadata, where the model has none.
        labels: list of the names of a classifier's classes for the metadata.

    Returns:
        `Exported`.

    Raises:
        ImportError: if tf2onnx, onnx or onnxruntime is not installed.
        ValueError: if the model has no such graph or no ON-LSTM, the opset or the provider is not
            there, or the file is not what Keras is. What stood at `path` then still does.
        OSError: if the file cannot be written.

    Example:

    >>> from keras_onlstm.exporting import to_onnx
    >>> from keras_onlstm.models import LanguageModel
    >>> model = LanguageModel(20, embedding_dim=8, units=16, chunk_size=4)
    >>> to_onnx(model, "parser.onnx", "parser").difference.largest < 1e-5  # doctest: +SKIP
    True
    """
    path = check_request(path, ".onnx", quantize)
    made = make_graph(model, graph, inputs, about, vocabulary, labels)
    converted = convert(made, opset)
    if quantize is None:
        onnx_weights.sharpen(converted)
    if quantize == "float16":
        onnx_weights.as_float16(converted)
    if quantize == "dynamic":
        converted = onnx_weights.as_int8(converted)
    described = {**made.metadata, "quantize": quantize}
    described["versions"] = versions("tf2onnx", "onnx", "onnxruntime")
    entry = converted.metadata_props.add()
    entry.key, entry.value = metadata.KEY, metadata.dumps(described)
    difference = seconds = None
    with replacing(path) as temporary:
        temporary.write_bytes(converted.SerializeToString())
        if check:
            run = runtime.load(temporary, provider).run
            difference = checks.compare(run, made, quantize)
            seconds = checks.latency(run, made)
    names = (n.op_type for part in onnx_weights.subgraphs(converted.graph) for n in part.node)
    size = path.stat().st_size
    return Exported(path, (made.name,), size, checks.counted(names), difference, seconds)
