"""Predictions that threads may ask for."""

import threading
from collections.abc import Callable
from typing import Any

import keras
from keras import backend

from keras_onlstm.utils import prediction_tensorflow

__all__ = ["predictor"]

# Held in JAX alone: Keras gives the weights to each prediction, which frees the buffers and
# returns new ones, and models within models share them.
_turn = threading.RLock()


def predictor(model: keras.Model, axes: int) -> Callable[[Any], Any]:
    """What a model predicts of one batch, as a function.

    Where an attribute holds the function, Keras does not track the model.

    Args:
        model: `keras.Model`.
        axes: integer, how many of the first axes of its arrays differ in size from batch to batch.
            TensorFlow traces the model once for all their sizes.

    Returns:
        `model.predict_on_batch`, in threads as well: on JAX, one of them at a time in a process.
    """
    if backend.backend() == "tensorflow":
        return prediction_tensorflow.traced_once(model, axes)
    if backend.backend() != "jax":
        return model.predict_on_batch

    def predict(batch: Any) -> Any:
        with _turn:
            return model.predict_on_batch(batch)

    return predict
