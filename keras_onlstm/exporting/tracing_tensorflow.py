"""Graphs as TensorFlow functions, with the recurrence that a format wants."""

from collections.abc import Callable
from typing import Any

import keras

from keras_onlstm.exporting.graphs import ModelGraph
from keras_onlstm.onlstm.recurrence import Problem, Recurrence, readable, substituted
from keras_onlstm.prpn import reading
from keras_onlstm.prpn import recurrence as prpn

__all__ = ["module_of", "traced"]


def traced(
    graph: ModelGraph,
    recurrence: Callable[[Problem], Recurrence] = readable,
    batch: int | None = None,
) -> Any:
    """A graph as a `tf.function` with a signature.

    Args:
        graph: `keras_onlstm.exporting.graphs.ModelGraph`.
        recurrence: what runs in the place of that of ON-LSTM: function from `Problem` to
            `Recurrence`. Default: the readable one, whose loop runs wherever TensorFlow's operators
            do, without XLA.
        batch: integer, or `None`: any.

    Returns:
        `tf.function` of tensors by name, with an input signature, that returns a dictionary.
    """
    import tensorflow as tf

    def size(axis):
        if axis == "batch":
            return batch
        return None if isinstance(axis, str) else axis

    names = [entry.name for entry in graph.inputs]
    signature = [
        tf.TensorSpec([size(axis) for axis in entry.shape], entry.dtype, name=entry.name)
        for entry in graph.inputs
    ]

    @tf.function(input_signature=signature, autograph=False)
    def run(*values):
        with substituted(recurrence), prpn.substituted(reading.readable):
            outputs = graph.function(dict(zip(names, values, strict=True)))
        return {name: tf.identity(value, name=name) for name, value in outputs.items()}

    return run


def module_of(model: keras.Model) -> Any:
    """The variables of a Keras model as TensorFlow wants to find them: a `tf.Module`."""
    import tensorflow as tf

    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    return module
