"""Trained models for other runtimes: ONNX, SavedModel and TensorFlow Lite.

It goes by way of TensorFlow, whatever backend a model was trained with: `KERAS_BACKEND=tensorflow`.
"""

from keras_onlstm.exporting.checks import Difference
from keras_onlstm.exporting.exported import Exported
from keras_onlstm.exporting.graphs import GRAPHS, graph_names
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
