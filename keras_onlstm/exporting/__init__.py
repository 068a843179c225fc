"""Trained models for other runtimes: ONNX, SavedModel and LiteRT.

Exporting needs `KERAS_BACKEND=tensorflow`, whichever backend a model was trained with.
"""

from typing import TYPE_CHECKING

from keras_onlstm.utils.validation import module_getattr

if TYPE_CHECKING:
    from keras_onlstm.exporting.checks import Difference, Exported
    from keras_onlstm.exporting.graphs import graph_names
    from keras_onlstm.exporting.onnx_tensorflow import to_onnx
    from keras_onlstm.exporting.saved_model_tensorflow import to_saved_model
    from keras_onlstm.exporting.tflite_tensorflow import to_tflite

__all__ = [
    "GRAPHS",
    "ONNX_QUANTIZATIONS",
    "QUANTIZATIONS",
    "Difference",
    "Exported",
    "graph_names",
    "to_onnx",
    "to_saved_model",
    "to_tflite",
]

GRAPHS = ("parser", "language_model", "step", "tree_language_model", "classifier", "layer")
QUANTIZATIONS = ("dynamic", "float16")
ONNX_QUANTIZATIONS = (*QUANTIZATIONS, "weights")

# These modules import Keras, which takes seconds. `--help` does not need them.
_MODULES = ("checks", "graphs", "onnx_tensorflow", "saved_model_tensorflow", "tflite_tensorflow")
__getattr__ = module_getattr(__name__, {"OF_ONNX": "ONNX_QUANTIZATIONS"}, _MODULES, __all__)
