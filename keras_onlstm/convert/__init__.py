"""Conversion of weights from and to the authors' implementations.

The authors' checkpoints are pickles, which can run code when loaded. Here weights are plain arrays
with the names of their state dict, in `.npz` or `.safetensors` files.
"""

from keras_onlstm.convert.array_files import read_arrays, write_arrays
from keras_onlstm.convert.language_model import (
    from_torch,
    language_model_from_arrays,
    language_model_to_arrays,
    to_torch,
)
from keras_onlstm.convert.prpn import prpn_from_arrays, prpn_to_arrays
from keras_onlstm.convert.tree_lstm import tree_lstm_from_arrays, tree_lstm_to_arrays

__all__ = [
    "from_torch",
    "language_model_from_arrays",
    "language_model_to_arrays",
    "prpn_from_arrays",
    "prpn_to_arrays",
    "read_arrays",
    "to_torch",
    "tree_lstm_from_arrays",
    "tree_lstm_to_arrays",
    "write_arrays",
]
