"""ON-LSTM (ordered neurons, Shen et al. 2019) for Keras 3 on TensorFlow, JAX and PyTorch."""

from keras_onlstm import convert, datasets
from keras_onlstm.cell import ONLSTMCell
from keras_onlstm.cumax import cumax
from keras_onlstm.layer import ONLSTM

__all__ = ["ONLSTM", "ONLSTMCell", "convert", "cumax", "datasets"]
