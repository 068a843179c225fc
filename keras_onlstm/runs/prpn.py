"""Configuration and presets of PRPN language models. Does not import Keras."""

from dataclasses import dataclass
from typing import ClassVar

from keras_onlstm.runs.config import option, preset_option, rate
from keras_onlstm.runs.language_model import PRESETS, TextConfig
from keras_onlstm.utils.reading import STARTS

__all__ = ["PRPNConfig"]


@dataclass(frozen=True, kw_only=True)
class PRPNConfig(TextConfig):
    """Configuration of a PRPN language model."""

    model: ClassVar[str] = "prpn"
    presets: ClassVar = {
        "debug": {
            "embedding_dim": 20, "units": 20, "slots": 5, "lookback": 3, "output_dropout": 0.1,
            "inner_dropout": 0.1, "epochs": 2, "batch_size": 20, "bptt": 20, "learning_rate": 1e-2,
        },
        "small": {  # an hour on a core, with the sizes of the published parser
            "sentences": True, "embedding_dim": 200, "units": 400, "output_dropout": 0.2,
            "inner_dropout": 0.2, "recurrent_dropout": 0.0, "batch_size": 64, "learning_rate": 3e-3,
        },
        "medium": {},
        "large": {  # the published character model: days on a GPU
            "characters": True, "embedding_dim": 128, "units": 1024, "slots": 20, "lookback": 10,
            "residual_blocks": 1, "tie_weights": False, "output_dropout": 0.0,
            "inner_dropout": 0.25, "epochs": 100, "batch_size": 64, "bptt": 100,
            "learning_rate": 3e-3,
        },
        "paper": {
            "embedding_dim": 800, "units": 1200, "output_dropout": 0.7, "inner_dropout": 0.5,
            "recurrent_dropout": 0.5, "epochs": 100, "batch_size": 64, "optimizer": "adam_l2",
            "beta_1": 0.0, "epsilon": 1e-9, "learning_rate": 3e-3, "schedule": "plateau",
            "plateau_factor": 0.5, "plateau_patience": 2, "weight_decay": 1e-6,
            "start": "published",
        },
    }  # fmt: skip

    preset: str = preset_option("medium", PRESETS)
    epochs: int = option(5, "Epochs.", "training", 1)
    clipnorm: float = option(
        1.0, "Clip the global norm of gradients to this; 0: do not clip.", "training", 0.0
    )
    embedding_dim: int = option(300, "Size of word vectors.", "model", 1)
    units: int = option(500, "Size of the parsing and the reading layers, even.", "model", 2)
    num_layers: int = option(2, "Number of reading layers.", "model", 1, 100)
    slots: int = option(15, "Words that are remembered.", "model", 1, 1000)
    lookback: int = option(5, "Words before each that its distance depends on.", "model", 0, 1000)
    resolution: float = option(
        0.1, "Difference of distances at which a hard gate is closed.", "model", 1e-6
    )
    hard: bool = option(True, "Gates cut off at 0 and 1 instead of sigmoids.", "model")
    residual_blocks: int = option(0, "Residual blocks of the predict network.", "model", 0, 100)
    tie_weights: bool = option(True, "One matrix for embedding and softmax.", "model")
    output_dropout: float = rate(0.25, "Dropout of word vectors and outputs.")
    inner_dropout: float = rate(0.15, "Dropout inside the three networks.")
    recurrent_dropout: float = rate(0.1, "Dropout of hidden features, for a whole window.")
    parsing_network: bool = option(True, "If off, attends to all slots.", "model")
    reading_attention: bool = option(True, "If off, the reading network is an LSTM.", "model")
    predict_attention: bool = option(
        True, "If off, the predict network sees only the last output.", "model"
    )
    start: str = option(
        "scaled",
        "Initial weights. scaled: the output bias at the words' frequencies, larger word vectors; "
        "published: as in the published code.",
        "model",
        choices=STARTS.values,
    )
