"""Whole models, one for each task of the paper."""

from keras_onlstm.models.ensemble import Ensemble, EnsembleOutput
from keras_onlstm.models.language_model import LanguageModel, LanguageModelOutput
from keras_onlstm.models.pair_classifier import PairClassifier

__all__ = ["Ensemble", "EnsembleOutput", "LanguageModel", "LanguageModelOutput", "PairClassifier"]
