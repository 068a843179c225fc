"""ON-LSTM (ordered neurons, Shen et al. 2019) for Keras 3 on TensorFlow, JAX and PyTorch.

Importing it registers its layers and models with Keras, so that saved ones load.
"""

from keras_onlstm import convert, datasets, models, parsing
from keras_onlstm.cell import ONLSTMCell
from keras_onlstm.cumax import cumax
from keras_onlstm.layer import ONLSTM
from keras_onlstm.parser import Parser
from keras_onlstm.version import __version__

__all__ = [
    "ONLSTM",
    "ONLSTMCell",
    "Parser",
    "__version__",
    "convert",
    "cumax",
    "datasets",
    "models",
    "parsing",
]
