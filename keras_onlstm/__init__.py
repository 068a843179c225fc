"""ON-LSTM (ordered neurons, Shen et al. 2019) for Keras 3 on TensorFlow, JAX and PyTorch.

Importing the package registers its layers and models with Keras, so that saved models load. Keras
itself is imported on first use; exported parsers run without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keras_onlstm._registration import register_with_keras
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
    from keras_onlstm.onlstm.layer import ONLSTM
    from keras_onlstm.onlstm.step import cumax
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

_MODULES = {
    "ONLSTM": "onlstm.layer",
    "ONLSTMCell": "onlstm.cell",
    "Parser": "parser",
    "cumax": "onlstm.step",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
    return getattr(module, name) if name in _MODULES else module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_with_keras()
