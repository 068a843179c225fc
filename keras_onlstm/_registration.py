"""Registers the package's classes with Keras without importing Keras or the classes.

Exported parsers run without Keras. Saved models must load whether Keras or this package is imported
first. So if Keras is not imported yet, an import hook waits for it. The registered objects are
stand-ins, which import a class when a file needs it.
"""

import importlib
import sys
from contextlib import contextmanager

from keras_onlstm.utils.libraries import BACKENDS, around_import, backend_not_installed

CLASSES = {
    "models.bidirectional_lstm": ["BidirectionalLSTM"],
    "models.ensemble": ["Ensemble"],
    "models.language_model": ["LanguageModel"],
    "models.pair_classifier": ["PairClassifier"],
    "models.prpn": ["PRPN"],
    "models.regularization": ["WeightDroppedLSTM"],
    "models.initializers": ["GateUniform"],
    "models.tree_generator": ["TreeGenerator"],
    "models.tree_lstm": ["TreeLSTM"],
    "onlstm.cell": ["ONLSTMCell"],
    "onlstm.layer": ["ONLSTM"],
    "prpn.parsing_network": ["BatchNormalization", "ParsingNetwork", "UnbiasedLayerNormalization"],
    "prpn.predict_network": ["PredictNetwork", "_Linear"],
    "prpn.reading_network": ["ReadingLayer", "ReadingNetwork"],
    "training.optimizers": ["AveragedAdam", "AveragedSGD", "PenalizedAdam"],
}


def register_with_keras() -> None:
    """Registers every class, now if Keras is imported, otherwise after its import."""
    if sys.modules.get("keras") is not None:
        _register()
    else:
        around_import("keras", _registering)


def _register():
    from keras.saving import get_custom_objects

    for module, names in CLASSES.items():
        for name in names:
            # The class itself replaces the stand-in when its module is imported.
            get_custom_objects().setdefault(f"keras_onlstm>{name}", _StandIn(module, name))


class _StandIn:
    def __init__(self, module, name):
        self.module, self.name = module, name

    def from_config(self, config):
        module = importlib.import_module(f"keras_onlstm.{self.module}")
        return getattr(module, self.name).from_config(config)


@contextmanager
def _registering():
    """Context around the import of Keras: registers the classes after it."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in BACKENDS:
            raise
        # The traceback would end deep inside Keras.
        raise backend_not_installed(missing, error) from None
    _register()
