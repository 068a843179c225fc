"""What Keras does not export, imported in this one place.

`keras.layers.RNN` draws dropout masks ahead of its loop, once a sequence, only for cells that are
instances of `DropoutRNNCell` (Keras 3.15). Without it a cell would draw inside the loop: another
mask every step, and on JAX a random state that leaks out of the trace.
`tests/onlstm/test_cell.py` fails if the class moves or `RNN` stops asking for it.

The layers inside a model, inside its layers and so on, Keras lists by a method with an underscore;
`tests/exporting/test_graphs.py` fails if it goes.

Where a layer computes in another dtype than its variables have, PyTorch assigns to the copy that
was cast for it, and the variable stays what it was. `tests/onlstm/test_layer_keras.py` fails if the
scope of the casts goes.

Every function of `keras.ops` first looks for symbolic tensors, in shapes and lists too. PyTorch
runs operators one by one, and in a loop of small ones that takes as long as they do: `direct` has
the backend's functions, which `keras.ops` would call, for tensors that have values.
`tests/onlstm/test_fused.py` fails if one goes.

`fit`, `evaluate` and `predict` on TensorFlow take the sizes that vary from the first two batches of
a `PyDataset` and fail on a later batch of another shape (Keras 3.15). Keras has no argument or
method to declare these sizes, so a subclass takes the place of its adapter. It treats only
`VaryingBatches` differently. `tests/training/test_fit_shapes.py` fails if Keras stops using the
subclass.
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
_operators = getattr(backend, "ops", backend)  # `backend.ops` from Keras 3.16 on
direct = SimpleNamespace(
    **{name: getattr(_operators.core, name) for name in _OF_CORE},
    **{name: getattr(_operators.numpy, name) for name in _OF_NUMPY},
)


class VaryingBatches(keras.utils.PyDataset):
    """A `PyDataset` whose batches may differ in the size of axis 1, wherever they have one.

    A data set all batches of which have the same size sets `axis_1_varies` to `False`.
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
    """Assigns to a variable itself, within a layer of mixed precision too."""
    value = keras.ops.cast(value, variable.dtype)  # within the scope it rounds float64 on PyTorch
    with AutocastScope(None):
        variable.assign(value)


def layers_within(model: keras.Model) -> list[keras.layers.Layer]:
    """A model and all layers below it: list."""
    return model._flatten_layers()
