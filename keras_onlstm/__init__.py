"""ON-LSTM (ordered neurons, Shen et al. 2019) for Keras 3 on TensorFlow, JAX and PyTorch.

Importing it registers its layers and models with Keras, so that saved ones load. Keras itself is
not imported before something needs it: an exported parser does not.
"""

from typing import TYPE_CHECKING

from keras_onlstm._registration import register_with_keras
from keras_onlstm.utils.lazy import lazy_names
from keras_onlstm.version import __version__

if TYPE_CHECKING:
    from keras_onlstm import (
        convert,
        datasets,
        evaluation,
        exporting,
        models,
        parsing,
        runtime,
        text,
        training,
    )
    from keras_onlstm.onlstm.cell import ONLSTMCell
    from keras_onlstm.onlstm.cumax import cumax
    from keras_onlstm.onlstm.layer import ONLSTM
    from keras_onlstm.parser import Parser

__all__ = [
    "ONLSTM",
    "ONLSTMCell",
    "Parser",
    "__version__",
    "convert",
    "cumax",
    "datasets",
    "evaluation",
    "exporting",
    "models",
    "parsing",
    "runtime",
    "text",
    "training",
]

_HOMES = {
    "ONLSTM": "onlstm.layer",
    "ONLSTMCell": "onlstm.cell",
    "Parser": "parser",
    "cumax": "onlstm.cumax",
}

__getattr__, __dir__ = lazy_names(__name__, __all__, _HOMES)

register_with_keras()
