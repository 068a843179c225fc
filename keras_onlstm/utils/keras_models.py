"""Helpers for models: thread-safe predictions, and an error for ragged tensors."""

import threading
from collections.abc import Callable
from typing import Any

import keras
from keras import backend

from keras_onlstm.utils import backend_tensorflow

__all__ = ["DenseInputs", "predictor"]

# Used only on JAX: there Keras donates the weights' buffers to each prediction, which returns new
# ones, and models within models share them.
_turn = threading.RLock()


class _Function(keras.Model):
    """A model that computes a function of a batch, so that Keras compiles it."""

    def __init__(self, model, function):
        super().__init__(name="function", autocast=False)
        self.model, self.function = model, function

    def call(self, batch):
        return self.function(batch)


def predictor(
    model: keras.Model, axes: int, function: Callable[[Any], Any] | None = None
) -> Callable[[Any], Any]:
    """A thread-safe `model.predict_on_batch`, or that of a model that computes `function`.

    The first `axes` axes may differ in size from batch to batch: TensorFlow traces the model once
    for all their sizes. On JAX threads take turns. Keras does not track the model if the result is
    stored in an attribute.
    """
    if function is not None:
        model = _Function(model, function)
    if backend.backend() == "tensorflow":
        return backend_tensorflow.traced_once(model, axes)
    if backend.backend() != "jax":
        return model.predict_on_batch

    def predict(batch: Any) -> Any:
        with _turn:
            return model.predict_on_batch(batch)

    return predict


def _is_ragged(tensor):
    return type(tensor).__name__ == "RaggedTensor" or getattr(tensor, "ragged", False)


class DenseInputs(keras.layers.Layer):
    """Base class, before Keras's, of layers and models that raise an error for ragged tensors."""

    dense_instead = "x.to_tensor() and mask=tf.sequence_mask(x.row_lengths())"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(map(_is_ragged, keras.tree.flatten((args, kwargs)))):
            raise ValueError(
                f"{self.name} takes no ragged tensors. In place of a ragged x pass "
                f"{self.dense_instead}."
            )
        return super().__call__(*args, **kwargs)
