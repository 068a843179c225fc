"""TensorFlow Lite export, with only the built-in operators."""

import textwrap
from collections.abc import Iterable
from typing import Any

import keras

from keras_onlstm.exporting import QUANTIZATIONS
from keras_onlstm.exporting.checks import Exported, check_request, write_checked
from keras_onlstm.exporting.graphs import ModelGraph, make_graph
from keras_onlstm.exporting.saved_model_tensorflow import module_of, traced
from keras_onlstm.runtime.metadata import pack
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.console import silenced
from keras_onlstm.utils.libraries import not_installed, versions
from keras_onlstm.utils.validation import check_integer, renamed_arguments


def convert(graph: ModelGraph, batch: int, quantize: str | None) -> bytes:
    """Converts a graph to a flatbuffer. Raises `ValueError` if its operators cannot express it."""
    import tensorflow as tf

    function = traced(graph, batch=batch).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module_of(graph.model))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if quantize:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if getattr(graph.model, "tie_weights", False):
        # One scale per matrix, as a lookup needs, instead of one per row. Otherwise the file would
        # hold the matrix that embedding and softmax share twice.
        converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    try:
        with silenced(replay=False):  # the C++ parts of the converter log the error as well
            return converter.convert()
    except Exception as error:  # the converter has its own classes
        raise ValueError(
            f"the graph {graph.name} of {graph.model.name} cannot be expressed in the operators of "
            f"TensorFlow Lite ({textwrap.shorten(str(error), 300)})."
        ) from error


@renamed_arguments(about="metadata")
def to_tflite(
    model: keras.Model,
    path: StrPath,
    graph: str | None = None,
    *,
    batch: int = 1,
    quantize: str | None = None,
    check: bool = True,
    inputs: Any = None,
    metadata: Any = None,
    vocabulary: Iterable[str] | None = None,
    labels: Iterable[str] | None = None,
) -> Exported:
    """Writes a TensorFlow Lite file for one batch size and any length.

    LiteRT first runs it at three lengths. It replaces `path` only if the results match Keras. Each
    conversion leaks memory in TensorFlow: run every one of many in its own process.

    Args:
        model: a Keras model that contains ON-LSTM, or a `TreeLSTM`.
        path: the file, ending in `.tflite`.
        graph: one of `graph_names(model)`.
        batch: the size of every batch.
        quantize: `"dynamic"`: 8-bit matrices and inputs rounded to 8 bits; `"float16"`: 16-bit
            matrices, converted to float32 for computing.
        check: whether to compare with Keras.
        inputs: list of `keras.Input`, if the model does not define its inputs.
        metadata: JSON-serializable object about the origin of the model, stored as `about`.
        vocabulary: list of words in the order of their ids, if the model has none.
        labels: list of the names of a classifier's classes.

    Raises:
        ImportError: if LiteRT is not installed.
        ValueError: if the model lacks the graph or an ON-LSTM, TensorFlow Lite cannot express it,
            or the file differs from Keras.
        OSError: if the file cannot be written.
    """
    path = check_request(path, ".tflite", quantize, QUANTIZATIONS)
    batch = check_integer("batch", batch)
    list_operators = _operator_lister()
    model_graph = make_graph(model, graph, inputs, metadata, vocabulary, labels)
    flatbuffer = convert(model_graph, batch, quantize)
    fields = {**model_graph.metadata, "quantize": quantize, "versions": versions("ai-edge-litert")}
    content, operators = pack(flatbuffer, fields), list_operators(flatbuffer)
    return write_checked(
        path, content, model_graph, operators, quantize=quantize, check=check, batch=batch
    )


def _operator_lister():
    """Returns a function that lists the operators in a flatbuffer."""
    try:
        from ai_edge_litert import schema_py_generated as schema
    except ImportError as error:
        raise not_installed("A TensorFlow Lite file", "ai-edge-litert", error=error) from error
    names = {code: name for name, code in vars(schema.BuiltinOperator).items()}

    def list_operators(flatbuffer):
        model = schema.ModelT.InitFromPackedBuf(flatbuffer, 0)
        codes = [names[code.builtinCode] for code in model.operatorCodes]
        return [codes[node.opcodeIndex] for part in model.subgraphs for node in part.operators]

    return list_operators
