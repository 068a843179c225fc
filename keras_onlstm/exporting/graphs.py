"""The graphs that a model can be exported as: their inputs, outputs and computations.

A model lists its graphs in `graphs`; docs/export.md lists their inputs and outputs. The padding on
the right of sequences does not change results, and outputs there are 0.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_onlstm.exporting import tree_graph_tensorflow as tree_graph
from keras_onlstm.onlstm.cell import ONLSTMCell
from keras_onlstm.onlstm.layer import ONLSTM
from keras_onlstm.text.vocabulary import TreeEncoder
from keras_onlstm.utils import Tensor
from keras_onlstm.utils.keras_private import layers_within


class Input(NamedTuple):
    """One input of a graph."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]  # names for axes of any size
    # Draws random values from a NumPy generator, a shape and the time.
    draw: Callable[[np.random.Generator, tuple[int, ...], int], np.ndarray]


class ModelGraph(NamedTuple):
    """A graph of a model, ready to export."""

    name: str
    inputs: list[Input]
    function: Callable[[dict[str, Tensor]], dict[str, Tensor]]
    model: keras.Model
    metadata: dict[str, Any]  # for the exported file
    # Outputs of Keras for arrays, if it computes them in another way than `function`.
    reference: Callable[..., dict[str, np.ndarray]] | None = None


def graph_names(model: keras.Model) -> tuple[str, ...]:
    """Names, from `exporting.GRAPHS`, of the graphs that a Keras model can be exported as.

    >>> from keras_onlstm.exporting import graph_names
    >>> from keras_onlstm.models import LanguageModel
    >>> graph_names(LanguageModel(20, embedding_dim=8, units=16, chunk_size=4))
    ('parser', 'language_model', 'step')
    """
    return getattr(model, "graphs", ("layer",))


def make_graph(
    model: keras.Model,
    name: str | None = None,
    inputs: Any = None,
    metadata: Any = None,
    vocabulary: Iterable[str] | None = None,
    labels: Iterable[str] | None = None,
) -> ModelGraph:
    """Makes a graph of a model; the arguments are those of `to_onnx`."""
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"model must be a Keras model, got {type(model).__name__}. Put a layer into a model: "
            "keras.Sequential([keras.Input((None, input_dim)), layer])."
        )
    known = graph_names(model)
    if name is None and len(known) == 1:
        name = known[0]
    if name not in known:
        raise ValueError(
            f"graph must be one of {', '.join(known)} for a {type(model).__name__}, got {name!r}."
        )
    _check_layers(model, name)
    words = getattr(model, "vocabulary", None) or vocabulary
    fields: dict[str, Any] = {"graph": name, "vocabulary": None if words is None else list(words)}
    reference = None
    if name == "layer":
        graph_inputs, function = _layer(model, inputs)
    elif name == "tree_language_model":
        graph_inputs, function, reference = _tree_language_model(model, words)
        fields["left_dependents"] = model.left is not None
    else:
        graph_inputs, function = _MAKERS[name](model)
    if labels is not None:
        fields["labels"] = list(labels)
    if name == "step":
        names, states = map(keras.tree.flatten, (model.state_names, model.initial_states(1)))
        values = [float(np.max(ops.convert_to_numpy(state))) for state in states]
        if starts := {name: value for name, value in zip(names, values, strict=True) if value}:
            fields["starts"] = starts
    layers_per_model = getattr(model, "layers_per_model", ())
    if layers_per_model:
        fields["num_layers"] = sum(layers_per_model)
    if len(layers_per_model) > 1:
        fields["members"] = list(layers_per_model)
    fields["about"] = metadata
    return ModelGraph(name, graph_inputs, _fast_cells(model, function), model, fields, reference)


def _check_layers(model, name):
    layers = layers_within(model)
    own = [layer for layer in layers if isinstance(layer, ONLSTM | ONLSTMCell)]
    if not own and not getattr(model, "gates", ()) and name != "tree_language_model":
        raise ValueError(
            f"the model {model.name} contains no ON-LSTM. Export it with Keras: model.export()."
        )
    for layer in own:
        if layer.quantization_mode:
            raise ValueError(
                f"the layer {layer.name} is quantized to {layer.quantization_mode}. Export the "
                "model without quantization, and make the file smaller with quantize=."
            )
    for layer in layers:
        if getattr(layer, "stateful", False):
            raise ValueError(
                f"the layer {layer.name} is stateful, but exported graphs keep no state between "
                "runs. Use initial_state and return_state=True, or export the graph step."
            )
        dtype = layer.compute_dtype or "float32"
        if not keras.backend.is_float_dtype(dtype):
            raise _preprocessing_error(f"the layer {layer.name}", dtype)
        if dtype != "float32":
            raise ValueError(
                f"the layer {layer.name} computes in {dtype}. Export a float32 model with its "
                "weights, and make the file smaller with quantize=."
            )


def _preprocessing_error(subject, dtype):
    values = "strings" if dtype == "string" else dtype
    return ValueError(
        f"{subject} works with {values}, which cannot be exported. Export the part of the model "
        "after the preprocessing, and convert texts to ids before you run the file."
    )


def _ids(name, shape, size):
    return Input(name, "int32", shape, lambda rng, shape, _: rng.integers(0, size, shape))


def _draw_lengths(rng, shape, time):
    lengths = rng.integers(1, time + 1, shape)
    lengths[0] = time
    return lengths


def _text_inputs(model):
    ids = _ids("ids", ("batch", "time"), model.vocabulary_size)
    return [ids, Input("lengths", "int32", ("batch",), _draw_lengths)]


def _mask(ids, lengths):
    """Mask (B, T): 1 for tokens, 0 for padding."""
    positions = ops.cumsum(ops.ones_like(ids), axis=1)  # 1, 2, ...
    return ops.cast(positions <= ops.expand_dims(lengths, 1), "float32")


def _named(distances, change):
    """Names of outputs, and changed distances (B, layers, T)."""
    return {f"{gate}_distances": change(array) for gate, array in distances.items()}


def _parser(model):
    if not model.built:
        model.build((None, None))

    def function(tensors):
        mask = ops.expand_dims(_mask(tensors["ids"], tensors["lengths"]), 1)  # (B, 1, T)
        return _named(model.measure(tensors["ids"]), lambda d: d * mask)

    return _text_inputs(model), function


def _language_model(model):
    def function(tensors):
        mask = _mask(tensors["ids"], tensors["lengths"])  # (B, T)
        results = model(tensors["ids"], details=True)
        log_probabilities = ops.log_softmax(results.logits)  # (B, T, V)
        return {
            "log_probabilities": log_probabilities * ops.expand_dims(mask, -1),
            **_named(results.distances, lambda d: d * ops.expand_dims(mask, 1)),
        }

    return _text_inputs(model), function


def _step(model):
    names = keras.tree.flatten(model.state_names)
    first = model.initial_states(1)

    def draw(rng, shape, _):
        return rng.uniform(-0.5, 0.5, shape)

    def function(tensors):
        previous = keras.tree.pack_sequence_as(first, [tensors[name] for name in names])
        results = model(ops.expand_dims(tensors["ids"], 1), states=previous, details=True)
        states = zip(names, keras.tree.flatten(results.states), strict=True)
        return {
            "log_probabilities": ops.log_softmax(results.logits[:, 0]),  # (B, V)
            **_named(results.distances, lambda d: ops.squeeze(d, -1)),
            **{f"next_{name}": state for name, state in states},
        }

    states = [
        Input(name, "float32", ("batch", *state.shape[1:]), draw)
        for name, state in zip(names, keras.tree.flatten(first), strict=True)
    ]
    return [_ids("ids", ("batch",), model.vocabulary_size), *states], function


def _tree_language_model(model, vocabulary):
    if not model.built:
        model.build()
    root = TreeEncoder(vocabulary).root
    axes = ("batch", "time")
    inputs = [
        _ids("ids", axes, model.embeddings.shape[0]),
        Input("heads", "int32", axes, tree_graph.draw_heads),
    ]
    function = partial(tree_graph.tree_language_model, model, root)
    return inputs, function, partial(tree_graph.keras_outputs, model, root)


def _classifier(model):
    def draw(rng, shape, time):
        lengths = _draw_lengths(rng, shape[:1], time)
        ids = rng.integers(1, model.vocabulary_size, shape)
        ids[rng.permuted(lengths)[:, None] <= range(time)] = 0
        return ids

    inputs = [Input(name, "int32", ("batch", f"time_{name}"), draw) for name in ("left", "right")]

    def function(tensors):
        return {"probabilities": ops.softmax(model((tensors["left"], tensors["right"])))}

    return inputs, function


_MAKERS = {
    "parser": _parser,
    "language_model": _language_model,
    "step": _step,
    "classifier": _classifier,
}


def _layer(model, inputs):
    if isinstance(inputs, list | tuple) and len(inputs) == 1:
        inputs = inputs[0]
    if inputs is None and getattr(model, "inputs", None):
        inputs = model.inputs[0] if isinstance(model, keras.Sequential) else model.input
    if inputs is None:
        raise ValueError(
            f"the model {model.name} does not define its inputs. Pass them: "
            "inputs=[keras.Input((None, 128), name='x')]."
        )
    specs = keras.tree.flatten(inputs)
    names = _plain_names([spec.name for spec in specs])
    dtypes = [keras.backend.standardize_dtype(spec.dtype) for spec in specs]
    if "string" in dtypes:
        raise _preprocessing_error(f"the input {names[dtypes.index('string')]}", "string")

    def draw(rng, shape, _):
        return rng.normal(size=shape)

    graph_inputs = [
        Input(name, dtype, _named_axes(name, spec.shape), _DRAW.get(dtype, draw))
        for name, dtype, spec in zip(names, dtypes, specs, strict=True)
    ]

    def function(tensors):
        values = [tensors[name] for name in names]
        results = model(keras.tree.pack_sequence_as(inputs, values))
        if isinstance(results, dict):
            outputs = _plain_names([*names, *results])[len(names) :]
            return dict(zip(outputs, results.values(), strict=True))
        flat = keras.tree.flatten(results)
        return {"output" if len(flat) == 1 else f"output_{i}": x for i, x in enumerate(flat)}

    return graph_inputs, function


def _plain_names(names):
    """Names valid in every format: characters except letters, digits and _ become _."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in names]
    for index, name in enumerate(plain):
        if name in plain[:index] or name.startswith("_"):
            raise ValueError(
                f"invalid name {names[index]!r} among {', '.join(map(repr, names))}: names of "
                "inputs and outputs must begin with, and must differ in, ASCII letters and digits."
            )
    return plain


def _named_axes(name, shape):
    axes = ["batch", *(f"{name}_{axis}" for axis in range(1, len(shape)))]
    return tuple(a if size is None else size for a, size in zip(axes, shape, strict=True))


_DRAW = {  # integers are valid ids for any embedding with two entries
    "bool": lambda rng, shape, _: rng.random(shape) < 0.8,
    "int32": lambda rng, shape, _: rng.integers(0, 2, shape),
    "int64": lambda rng, shape, _: rng.integers(0, 2, shape),
}


def draw_inputs(graph: ModelGraph, batch: int, time: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draws random inputs, by name. `time` is the size of all axes of any size but the batch."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, dtype, axes, draw in graph.inputs:
        sizes = [
            batch if axis == "batch" else time if isinstance(axis, str) else axis for axis in axes
        ]
        arrays[name] = np.asarray(draw(rng, tuple(sizes), time), dtype)
    return arrays


def _fast_cells(model, function):
    """The function, with each `RNN(ONLSTMCell(...))` of the model run as an `ONLSTM`."""
    onlstm_layers = {
        layer: _as_onlstm(layer)
        for layer in layers_within(model)
        if type(layer) is keras.layers.RNN and isinstance(layer.cell, ONLSTMCell)
    }

    def run(tensors):
        try:
            for layer, onlstm in onlstm_layers.items():
                object.__setattr__(layer, "call", onlstm.call)
            return function(tensors)
        finally:
            for layer in onlstm_layers:
                layer.__dict__.pop("call", None)

    return run if onlstm_layers else function


def _as_onlstm(rnn):
    """An `ONLSTM` that shares the cell and variables of a `keras.layers.RNN`."""
    options = ("return_sequences", "return_state", "go_backwards", "zero_output_for_mask")
    layer = ONLSTM(
        **rnn.cell.own_config(),
        **{name: getattr(rnn, name) for name in options},
        name=rnn.name,
        dtype=rnn.dtype_policy,
    )
    layer.cell = rnn.cell
    layer.built = True
    return layer
