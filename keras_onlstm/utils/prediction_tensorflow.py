"""Predictions in TensorFlow, for which a model is traced once.

Keras traces the sizes of the first batch, then more general ones, and TensorFlow counts the traces
of all models in a process together: five of them in a few calls give a warning.
"""

from collections.abc import Callable
from typing import Any

import keras

__all__ = ["traced_once"]


def traced_once(model: keras.Model, axes: int) -> Callable[[Any], Any]:
    """`model.predict_on_batch`, traced for unknown sizes before the first batch.

    Args:
        model: `keras.Model`.
        axes: integer, how many of the first axes of its arrays differ in size from batch to batch.

    Returns:
        Function of a batch. Where other axes differ in size it traces the model again.
    """
    import tensorflow as tf

    traced = set()

    def specified(array):
        sizes = [None if axis < axes else size for axis, size in enumerate(array.shape)]
        return tf.TensorSpec(sizes, array.dtype)

    def predict(batch: Any) -> Any:
        specs = tf.nest.map_structure(specified, batch)
        signature = tuple(tf.nest.flatten(specs))
        if signature not in traced:
            model.make_predict_function()
            model.predict_function.get_concrete_function([(specs,)])
            traced.add(signature)
        return model.predict_on_batch(batch)

    return predict
