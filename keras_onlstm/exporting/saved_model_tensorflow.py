"""SavedModel export, with an endpoint per graph of a model, and graphs as TensorFlow functions."""

import errno
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import keras

from keras_onlstm.exporting import checks
from keras_onlstm.exporting.checks import Exported, check_request
from keras_onlstm.exporting.graphs import ModelGraph, graph_names, make_graph
from keras_onlstm.onlstm.recurrence import reference, substituted
from keras_onlstm.prpn import recurrence as prpn_recurrence
from keras_onlstm.runtime.metadata import dumps
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.libraries import versions
from keras_onlstm.utils.validation import renamed_arguments

METADATA = "assets.extra/keras_onlstm.json"  # a folder that SavedModel leaves to users
_DEFAULT = "serving_default"


@renamed_arguments(about="metadata")
def to_saved_model(
    model: keras.Model,
    path: StrPath,
    graphs: str | Iterable[str] | None = None,
    *,
    check: bool = True,
    inputs: Any = None,
    metadata: Any = None,
    vocabulary: Iterable[str] | None = None,
    labels: Iterable[str] | None = None,
) -> Exported:
    """Writes a SavedModel whose endpoints are the graphs of a model.

    Every endpoint is first run at two batch sizes and three lengths. The SavedModel replaces `path`
    only if the results match Keras. It runs without Keras, this package or XLA.

    Args:
        model: a Keras model that contains ON-LSTM, or a `PRPN` or `TreeLSTM`.
        path: the directory. Only an existing SavedModel is replaced.
        graphs: list of names; the first is also the default endpoint. Default: all.
        check: whether to compare with Keras.
        inputs: list of `keras.Input`, if the model does not define its inputs.
        metadata: JSON-serializable object about the origin of the model, stored as `about`.
        vocabulary: list of words in the order of their ids, if the model has none.
        labels: list of the names of a classifier's classes.

    Returns:
        `Exported`, with the latency of the first endpoint.

    Raises:
        ValueError: if the model lacks a graph or an ON-LSTM, or an endpoint differs from Keras.
        OSError: if the directory cannot be written, or holds something else.
    """
    path = check_request(path, "")
    if path.exists() and not (path / "saved_model.pb").is_file():
        raise FileExistsError(f"{path}: exists, but is not a SavedModel. Choose another directory.")
    names = [graphs] if isinstance(graphs, str) else graphs or graph_names(model)
    model_graphs = [make_graph(model, name, inputs, metadata, vocabulary, labels) for name in names]
    difference = seconds = None
    with replacing(path) as temporary:
        _write(model_graphs, temporary)
        endpoints = _load(temporary)
        if check:
            differences = [checks.compare(endpoints[g.name][0], g) for g in model_graphs]
            difference = max(differences, key=lambda difference: difference.largest)
            seconds = checks.measure_latency(endpoints[model_graphs[0].name][0], model_graphs[0])
        operators = [name for _, names in endpoints.values() for name in names]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    written = tuple(graph.name for graph in model_graphs)
    return Exported(path, written, size, checks.count_operators(operators), difference, seconds)


def _write(graphs, directory):
    import tensorflow as tf

    endpoints = {graph.name: traced(graph).get_concrete_function() for graph in graphs}
    signatures = {_DEFAULT: endpoints[graphs[0].name], **endpoints}
    try:
        tf.saved_model.save(module_of(graphs[0].model), str(directory), signatures)
    except tf.errors.OpError as error:
        raise OSError(errno.EIO, error.message.rpartition(";")[2].strip()) from error
    fields = {**graphs[0].metadata, "graphs": list(endpoints), "versions": versions()}
    path = directory / METADATA
    path.parent.mkdir()
    path.write_text(dumps(fields), encoding="utf-8")


def _load(directory):
    """For each endpoint, a function of arrays by name and a list of its operators."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(directory))

    def run(endpoint, /, **arrays):
        signature = loaded.signatures[endpoint]  # `loaded` keeps its variables alive
        outputs = signature(**{name: tf.constant(value) for name, value in arrays.items()})
        return {name: value.numpy() for name, value in outputs.items()}

    def operators(signature):
        definition = signature.graph.as_graph_def()
        parts = [definition.node, *(f.node_def for f in definition.library.function)]
        return [node.op for part in parts for node in part]

    return {
        name: (partial(run, name), operators(signature))
        for name, signature in loaded.signatures.items()
        if name != _DEFAULT
    }


def traced(
    graph: ModelGraph, recurrence: Callable[..., Any] = reference, batch: int | None = None
) -> Any:
    """A graph as a `tf.function` with an input signature. Inputs and outputs have names.

    `recurrence` replaces that of ON-LSTM. The default is the reference recurrence, whose loop needs
    only TensorFlow's operators, not XLA. `batch=None` allows any size.
    """
    import tensorflow as tf

    signature = []
    for name, dtype, axes, _ in graph.inputs:
        sizes = [batch if a == "batch" else None if isinstance(a, str) else a for a in axes]
        signature.append(tf.TensorSpec(sizes, dtype, name=name))

    @tf.function(input_signature=signature, autograph=False)
    def run(*values):
        tensors = {entry.name: value for entry, value in zip(graph.inputs, values, strict=True)}
        with substituted(recurrence), prpn_recurrence.substituted(prpn_recurrence.reference):
            outputs = graph.function(tensors)
        return {name: tf.identity(value, name=name) for name, value in outputs.items()}

    return run


def module_of(model: keras.Model) -> Any:
    """A `tf.Module` that holds the variables of a Keras model."""
    import tensorflow as tf

    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    return module
