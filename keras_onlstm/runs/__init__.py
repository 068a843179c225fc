"""Configuration of runs: values, flags, `config.json`, directories. Without Keras."""

from keras_onlstm.runs.config import Config, run_parser
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig
from keras_onlstm.runs.pair_classifier import PairClassifierConfig
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig

__all__ = ["Config", "LanguageModelConfig", "PRPNConfig", "PairClassifierConfig", "TreeLSTMConfig",
           "run_parser"]  # fmt: skip
