"""The graphs that a model can be exported as: their inputs, outputs and computations.

A model lists its graphs in `graphs`; `models.sentence_reader` documents what it provides then.

Graphs are the same for every format. Sequences are padded on the right; the values of the padding
do not change results. `lengths` are numbers of tokens. A classifier's ids are 0 in the padding.
Heads count from 1, with 0 for ROOT and -1 in the padding.

| graph | inputs | outputs |
|---|---|---|
| `parser` | `ids` (batch, time), `lengths` (batch) | `forget_distances`, `input_distances` (batch, layers, time); for several models, the layers of one after those of another |
| `language_model` | the same | `log_probabilities` (batch, time, V) of the token after each, and both distances |
| `step` | `ids` (batch), `h_0`, `c_0`, `h_1`, ... (batch, units) | `log_probabilities` (batch, V), both distances (batch, layers), `next_h_0`, ... |
| those of PRPN | the same; the states are `words` (batch, L, E), `history` (batch, S), `h_0`, `c_0`, ... (batch, S, U) | the same, but the only distances are `syntactic_distances`, of one layer |
| `tree_language_model` | `ids`, `heads` (batch, time) | `log_probabilities` (batch, time) of each word given its path |
| `classifier` | `left`, `right` (batch, time) | `probabilities` (batch, classes) |
| `layer` | those of the Keras model | those of the Keras model |

Ids, heads and lengths are int32, everything else is float32. Outputs beyond a length are 0. The
initial states of a `step` are 0, except those with a value in `starts` of its metadata.
"""  # noqa: E501

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

__all__ = [
    "Input",
    "ModelGraph",
    "draw_inputs",
    "graph_names",
    "make_graph",
]


class Input(NamedTuple):
    """One input of a graph.

    Attributes:
        name: string.
        dtype: string.
        shape: tuple of integers, and of axis names (strings) where any size is allowed.
        draw: function of a NumPy generator, a shape and the time that draws random values.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    draw: Callable[[np.random.Generator, tuple[int, ...], int], np.ndarray]


class ModelGraph(NamedTuple):
    """A graph of a model, ready to export.

    Attributes:
        name: one of `exporting.GRAPHS`.
        inputs: list of `Input`.
        function: maps a dictionary of tensors to a dictionary of tensors.
        model: the Keras model.
        metadata: dictionary for the exported file: `graph`, `vocabulary` and others.
        of_keras: function from arrays by name to a dictionary of arrays, if Keras computes the
            outputs in another way than `function`; else `None`.
    """

    name: str
    inputs: list[Input]
    function: Callable[[dict[str, Tensor]], dict[str, Tensor]]
    model: keras.Model
    metadata: dict[str, Any]
    of_keras: Callable[..., dict[str, np.ndarray]] | None = None


def graph_names(model: keras.Model) -> tuple[str, ...]:
    """Names of the graphs that a model can be exported as.

    Args:
        model: a Keras model.

    Returns:
        Tuple of names from `exporting.GRAPHS`.

    Example:

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
    about: Any = None,
    vocabulary: Iterable[str] | None = None,
    labels: Iterable[str] | None = None,
) -> ModelGraph:
    """Makes a graph of a model.

    Args:
        model: a Keras model of ON-LSTM layers: `LanguageModel`, `Ensemble`, `PairClassifier` or the
            user's own, built; or a `TreeLSTM`.
        name: one of `graph_names(model)`; optional if there is only one.
        inputs: list of `keras.Input`, for the user's own models that do not define their inputs,
            such as subclasses of `keras.Model`.
        about: JSON-serializable object for the metadata: where the model comes from.
        vocabulary: list of words in the order of their ids, if the model has none.
        labels: list of the names of a classifier's classes.

    Returns:
        `ModelGraph`.

    Raises:
        TypeError: if `model` is not a Keras model.
        ValueError: if the model lacks the graph, has no ON-LSTM, is stateful or not in float32,
            reads strings, or is a TreeLSTM without a vocabulary.
    """
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"{type(model).__name__} is no Keras model. Put a layer into one: "
            "keras.Sequential([keras.Input((None, input_dim)), layer])."
        )
    known = graph_names(model)
    if name is None and len(known) == 1:
        name = known[0]
    if name not in known:
        raise ValueError(
            f"a {type(model).__name__} has no graph {name!r}: it has {', '.join(known)}."
        )
    _check(model, name)
    words = getattr(model, "vocabulary", None) or vocabulary
    of_keras = None
    if name == "layer":
        graph_inputs, function = _layer(model, inputs)
    elif name == "tree_language_model":
        graph_inputs, function, of_keras = _tree_language_model(model, words)
    else:
        graph_inputs, function = _MAKERS[name](model)
    metadata: dict[str, Any] = {"graph": name, "vocabulary": None if words is None else list(words)}
    if labels is not None:
        metadata["labels"] = list(labels)
    if name == "step":
        names, states = map(keras.tree.flatten, (model.state_names, model.initial_states(1)))
        starts = [float(np.max(ops.convert_to_numpy(state))) for state in states]
        others = {name: start for name, start in zip(names, starts, strict=True) if start}
        metadata |= {"starts": others} if others else {}
    layers = getattr(model, "layers_per_model", ())
    if layers:
        metadata["num_layers"] = sum(layers)
    if len(layers) > 1:
        metadata["members"] = list(layers)
    if name == "tree_language_model":
        metadata["left_dependents"] = model.left is not None
    metadata["about"] = about
    return ModelGraph(name, graph_inputs, _fast_cells(model, function), model, metadata, of_keras)


def _check(model, name):
    layers = layers_within(model)
    own = [layer for layer in layers if isinstance(layer, ONLSTM | ONLSTMCell)]
    if not own and not getattr(model, "gates", ()) and name != "tree_language_model":
        raise ValueError(
            f"the model {model.name} has no ON-LSTM in it. Keras exports others: model.export()."
        )
    for layer in own:
        if layer.quantization_mode:
            raise ValueError(
                f"the layer {layer.name} has weights in {layer.quantization_mode}. Export the "
                "model as it was before: the export's own quantize makes the file smaller."
            )
    for layer in layers:
        if getattr(layer, "stateful", False):
            raise ValueError(
                f"the layer {layer.name} is stateful, and an exported graph keeps nothing. Give "
                "it initial_state and return_state=True instead, or export the graph step."
            )
        if not keras.backend.is_float_dtype(layer.compute_dtype or "float32"):
            raise _no_preprocessing(f"the layer {layer.name}", layer.compute_dtype)
        if layer.compute_dtype not in ("float32", None):
            raise ValueError(
                f"the layer {layer.name} computes in {layer.compute_dtype}. Export a float32 model "
                "with its weights; quantize makes the file smaller."
            )


def _no_preprocessing(subject, dtype):
    """The error for strings and preprocessing layers, which cannot be exported."""
    read = "strings" if dtype == "string" else dtype
    return ValueError(
        f"{subject} works with {read}, which cannot be exported. Export the part of the model that "
        "follows the preprocessing, with ids as its input, and make the ids before you run the "
        "file."
    )


def _ids(name, shape, size):
    def draw(rng, sizes, _):
        return rng.integers(0, size, sizes)

    return Input(name, "int32", shape, draw)


def _draw_lengths(rng, sizes, time):
    lengths = rng.integers(1, time + 1, sizes)
    lengths[0] = time
    return lengths


def _text_inputs(model):
    ids = _ids("ids", ("batch", "time"), model.vocabulary_size)
    return [ids, Input("lengths", "int32", ("batch",), _draw_lengths)]


def _valid(ids, lengths):
    """Mask (B, T): 1 for tokens, 0 for padding."""
    places = ops.cumsum(ops.ones_like(ids), axis=1)  # 1, 2, ...
    return ops.cast(places <= ops.expand_dims(lengths, 1), "float32")


def _named(distances):
    return {f"{name}_distances": rows for name, rows in distances.items()}


def _parser(model):
    if not model.built:
        model.build((None, None))

    def function(tensors):
        valid = ops.expand_dims(_valid(tensors["ids"], tensors["lengths"]), 1)  # (B, 1, T)
        distances = _named(model.measure(tensors["ids"]))  # (B, layers, T)
        return {name: d * valid for name, d in distances.items()}

    return _text_inputs(model), function


def _language_model(model):
    def function(tensors):
        valid = _valid(tensors["ids"], tensors["lengths"])  # (B, T)
        results = model(tensors["ids"], details=True)
        log_probabilities = ops.log_softmax(results.logits)  # (B, T, V)
        distances = _named(results.distances)
        return {
            "log_probabilities": log_probabilities * ops.expand_dims(valid, -1),
            **{name: d * ops.expand_dims(valid, 1) for name, d in distances.items()},
        }

    return _text_inputs(model), function


def _step(model):
    names = keras.tree.flatten(model.state_names)
    first = model.initial_states(1)
    states = [
        Input(name, "float32", ("batch", *state.shape[1:]), _draw_states)
        for name, state in zip(names, keras.tree.flatten(first), strict=True)
    ]

    def function(tensors):
        before = keras.tree.pack_sequence_as(first, [tensors[name] for name in names])
        results = model(ops.expand_dims(tensors["ids"], 1), states=before, details=True)
        distances = _named(results.distances)  # (B, layers, 1)
        return {
            "log_probabilities": ops.log_softmax(results.logits[:, 0]),  # (B, V)
            **{name: ops.squeeze(d, -1) for name, d in distances.items()},
            **{
                f"next_{name}": state
                for name, state in zip(names, keras.tree.flatten(results.states), strict=True)
            },
        }

    return [_ids("ids", ("batch",), model.vocabulary_size), *states], function


def _draw_states(rng, sizes, _):
    return rng.uniform(-0.5, 0.5, sizes)


def _tree_language_model(model, vocabulary):
    if not model.built:
        model.build()
    root = TreeEncoder(vocabulary).root
    axes = ("batch", "time")
    inputs = [
        _ids("ids", axes, model.embeddings.shape[0]),
        Input("heads", "int32", axes, tree_graph.draw_heads),
    ]
    function = tree_graph.tree_language_model(model, root)
    return inputs, function, partial(tree_graph.of_keras, model, root)


def _draw_padded(size):
    def draw(rng, sizes, time):
        lengths = _draw_lengths(rng, sizes[:1], time)
        ids = rng.integers(1, size, sizes)
        ids[rng.permuted(lengths)[:, None] <= range(time)] = 0
        return ids

    return draw


def _classifier(model):
    draw = _draw_padded(model.vocabulary_size)
    inputs = [Input(name, "int32", ("batch", f"time_{name}"), draw) for name in ("left", "right")]

    def function(tensors):
        logits = model((tensors["left"], tensors["right"]))
        return {"probabilities": ops.softmax(logits)}

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
    structure = inputs if inputs is not None else _known_inputs(model)
    if structure is None:
        raise ValueError(
            f"the model {model.name} does not know its inputs. Name them: "
            "inputs=[keras.Input((None, 128), name='x')]."
        )
    specs = keras.tree.flatten(structure)
    names = _plain_names([spec.name for spec in specs])
    dtypes = [keras.backend.standardize_dtype(spec.dtype) for spec in specs]
    if "string" in dtypes:
        raise _no_preprocessing(f"the input {names[dtypes.index('string')]}", "string")
    graph_inputs = [
        Input(name, dtype, _named_axes(name, spec.shape), _DRAW.get(dtype, _draw_floats))
        for name, dtype, spec in zip(names, dtypes, specs, strict=True)
    ]

    def function(tensors):
        values = [tensors[name] for name in names]
        results = model(keras.tree.pack_sequence_as(structure, values))
        if isinstance(results, dict):
            outputs = _plain_names([*names, *results])[len(names) :]
            return dict(zip(outputs, results.values(), strict=True))
        flat = keras.tree.flatten(results)
        return {"output" if len(flat) == 1 else f"output_{i}": x for i, x in enumerate(flat)}

    return graph_inputs, function


def _plain_names(names):
    """Names valid in every format: characters except letters, digits and _ become _."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in names]
    for place, name in enumerate(plain):
        if name in plain[:place] or name.startswith("_"):
            raise ValueError(
                f"{names[place]!r} among {', '.join(map(repr, names))}: the names of inputs and "
                "outputs are to begin with a letter or a digit of ASCII, and to differ in those."
            )
    return plain


def _known_inputs(model):
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return None
    return inputs[0] if isinstance(model, keras.Sequential) else model.input


def _named_axes(name, shape):
    axes = ["batch", *(f"{name}_{axis}" for axis in range(1, len(shape)))]
    return tuple(a if size is None else size for a, size in zip(axes, shape, strict=True))


def _draw_floats(rng, sizes, _):
    return rng.normal(size=sizes)


def _draw_booleans(rng, sizes, _):
    return rng.random(sizes) < 0.8


def _draw_small_integers(rng, sizes, _):
    return rng.integers(0, 2, sizes)  # valid ids for any embedding with two entries


_DRAW = {
    "bool": _draw_booleans,
    "int32": _draw_small_integers,
    "int64": _draw_small_integers,
}


def draw_inputs(graph: ModelGraph, batch: int, time: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draws random inputs for a graph.

    Args:
        graph: `ModelGraph`.
        batch: integer.
        time: integer, the size of every other axis of variable size.
        seed: integer.

    Returns:
        Dictionary of arrays.
    """
    rng = np.random.default_rng(seed)
    arrays = {}
    for entry in graph.inputs:
        sizes = tuple(_size(axis, batch, time) for axis in entry.shape)
        arrays[entry.name] = np.asarray(entry.draw(rng, sizes, time), entry.dtype)
    return arrays


def _size(axis, batch, time):
    if not isinstance(axis, str):
        return axis
    return batch if axis == "batch" else time


def _fast_cells(model, function):
    """The function, with each `RNN(ONLSTMCell(...))` of the model run as an `ONLSTM`."""
    fast = {
        layer: _as_onlstm(layer)
        for layer in layers_within(model)
        if type(layer) is keras.layers.RNN and isinstance(layer.cell, ONLSTMCell)
    }

    def run(tensors):
        try:
            for layer, onlstm in fast.items():
                object.__setattr__(layer, "call", onlstm.call)
            return function(tensors)
        finally:
            for layer in fast:
                layer.__dict__.pop("call", None)

    return run if fast else function


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
