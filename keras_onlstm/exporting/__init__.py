"""Trained models for other runtimes: ONNX, SavedModel and TensorFlow Lite.

It goes by way of TensorFlow, whatever backend a model was trained with: `KERAS_BACKEND=tensorflow`.
"""

from typing import TYPE_CHECKING

from keras_onlstm.utils.lazy import lazy_names

if TYPE_CHECKING:
    from keras_onlstm.exporting.checks import Difference
    from keras_onlstm.exporting.exported import Exported
    from keras_onlstm.exporting.graphs import graph_names
    from keras_onlstm.exporting.names import GRAPHS
    from keras_onlstm.exporting.onnx_tensorflow import to_onnx
    from keras_onlstm.exporting.saved_model_tensorflow import to_saved_model
    from keras_onlstm.exporting.tflite_tensorflow import to_tflite

__all__ = [
    "GRAPHS",
    "Difference",
    "Exported",
    "graph_names",
    "to_onnx",
    "to_saved_model",
    "to_tflite",
]

_HOMES = {
    "Difference": "checks",
    "Exported": "exported",
    "graph_names": "graphs",
    "GRAPHS": "names",
    "to_onnx": "onnx_tensorflow",
    "to_saved_model": "saved_model_tensorflow",
    "to_tflite": "tflite_tensorflow",
}

__getattr__, __dir__ = lazy_names(__name__, __all__, _HOMES)
