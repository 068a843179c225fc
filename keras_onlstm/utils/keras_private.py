"""Extensions of Keras, and the private parts of Keras that the package uses."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
from keras.src import backend
from keras.src.backend.common.variables import AutocastScope
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell as DropoutRNNCell
from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters.data_adapter_utils import get_tensor_spec

from keras_onlstm.utils import Tensor
from keras_onlstm.utils.backends_tensorflow_jax import traced_once

_CORE = ("cast", "convert_to_tensor", "shape", "unstack")
_NUMPY = (
    *("concatenate", "exp", "expand_dims", "reshape", "stack", "sum"),
    *("tanh", "transpose", "where"),
)
# The backend's operators without the checks of `keras.ops`, which take time in eager loops.
_operators = getattr(backend, "ops", backend)  # `backend.ops` since Keras 3.16
direct = SimpleNamespace(
    **{name: getattr(_operators.core, name) for name in _CORE},
    **{name: getattr(_operators.numpy, name) for name in _NUMPY},
)


class VaryingBatches(keras.utils.PyDataset):
    """A `PyDataset` whose batches may differ in the size of axis 1, if `axis_1_varies`."""

    axis_1_varies = True


class _PyDatasetAdapter(data_adapters.PyDatasetAdapter):
    """Keras's adapter, which gives axis 1 of `VaryingBatches` an unknown size on TensorFlow."""

    def get_tf_dataset(self):
        if getattr(self.py_dataset, "axis_1_varies", False):
            batch = self._standardize_batch(self.py_dataset[0])
            # Keras gives an unknown size to each axis in which two batches differ.
            wider = keras.tree.map_structure(_widened, batch)
            self._output_signature = get_tensor_spec([batch, wider])
        return super().get_tf_dataset()


def _widened(array):
    """An array of the same dtype whose axis 1, if it has one, is longer by 1."""
    return np.empty([n + (axis == 1) for axis, n in enumerate(array.shape)], array.dtype)


data_adapters.PyDatasetAdapter = _PyDatasetAdapter


def assign(variable: keras.Variable, value: Tensor) -> None:
    """Assigns to the variable, not to a cast copy, also in a layer with mixed precision."""
    value = keras.ops.cast(value, variable.dtype)  # within the scope PyTorch rounds float64
    with AutocastScope(None):
        variable.assign(value)


def layers_within(model: keras.Model) -> list[keras.layers.Layer]:
    """List of a model and all layers in it."""
    return model._flatten_layers()


# Used only on JAX: there Keras donates the weights' buffers to each prediction, which returns new
# ones, and models within models share them.
_prediction_lock = threading.RLock()


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
    if keras.backend.backend() == "tensorflow":
        return traced_once(model, axes)
    if keras.backend.backend() != "jax":
        return model.predict_on_batch

    def predict(batch: Any) -> Any:
        with _prediction_lock:
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
                f"{self.name} does not support ragged tensors. In place of a ragged x pass "
                f"{self.dense_instead}."
            )
        return super().__call__(*args, **kwargs)
