"""The private parts of Keras that the package uses, all imported here.

`keras.layers.RNN` draws dropout masks once per sequence, before its loop, only for cells that are
instances of `DropoutRNNCell` (Keras 3.15). Other cells draw inside the loop: another mask in every
step, and on JAX a random state that leaks out of the trace. `tests/onlstm/test_cell.py` fails if
the class moves or `RNN` no longer checks for it.

A private method of Keras lists a model and all layers in it, at any depth.
`tests/exporting/test_graphs.py` fails if it is removed.

If a layer computes in another dtype than that of its variables, PyTorch assigns to the cast copy
and the variable does not change. `AutocastScope` prevents that. `tests/onlstm/test_layer_keras.py`
fails if it is removed.

Every function of `keras.ops` first looks for symbolic tensors, also in shapes and lists. On PyTorch
that takes as long as small operators do. `direct` has the functions of the backend that `keras.ops`
would call, for tensors that have values. `tests/onlstm/test_fused.py` fails if one is removed.

`fit`, `evaluate` and `predict` on TensorFlow infer from the first two batches of a `PyDataset`
which sizes vary, and fail on a later batch of another shape (Keras 3.15). Keras has no argument or
method to declare these sizes, so a subclass replaces its adapter. It treats only `VaryingBatches`
differently. `tests/training/test_fit_shapes.py` fails if Keras stops using the subclass.
"""

from types import SimpleNamespace

import keras
import numpy as np
from keras.src import backend
from keras.src.backend.common.variables import AutocastScope
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell
from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters.data_adapter_utils import get_tensor_spec

from keras_onlstm.utils.types import Tensor

__all__ = [
    "DropoutRNNCell",
    "VaryingBatches",
    "assign",
    "direct",
    "layers_within",
]

_OF_CORE = ("cast", "convert_to_tensor", "shape", "unstack")
_OF_NUMPY = (
    *("concatenate", "exp", "expand_dims", "reshape", "stack", "sum"),
    *("tanh", "transpose", "where"),
)
_operators = getattr(backend, "ops", backend)  # `backend.ops` since Keras 3.16
direct = SimpleNamespace(
    **{name: getattr(_operators.core, name) for name in _OF_CORE},
    **{name: getattr(_operators.numpy, name) for name in _OF_NUMPY},
)


class VaryingBatches(keras.utils.PyDataset):
    """A `PyDataset` whose batches may differ in the size of axis 1.

    A data set whose batches all have the same size sets `axis_1_varies` to `False`.
    """

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
