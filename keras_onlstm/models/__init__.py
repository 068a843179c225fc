"""Whole models, one for each task."""

from keras_onlstm.models.bidirectional_lstm import BidirectionalLSTM
from keras_onlstm.models.ensemble import Ensemble, EnsembleOutput
from keras_onlstm.models.language_model import LanguageModel, LanguageModelOutput
from keras_onlstm.models.pair_classifier import PairClassifier
from keras_onlstm.models.prpn import PRPN, PRPNOutput
from keras_onlstm.models.tree_generator import TreeGenerator
from keras_onlstm.models.tree_lstm import TreeLSTM

__all__ = [
    "PRPN",
    "BidirectionalLSTM",
    "Ensemble",
    "EnsembleOutput",
    "LanguageModel",
    "LanguageModelOutput",
    "PRPNOutput",
    "PairClassifier",
    "TreeGenerator",
    "TreeLSTM",
]
