"""Configuration and presets of pair classifiers. Does not import Keras."""

from dataclasses import dataclass
from typing import ClassVar

from keras_onlstm.runs.config import Config, option, preset_option, rate
from keras_onlstm.runs.language_model import NAMES


@dataclass(frozen=True, kw_only=True)
class PairClassifierConfig(Config):
    """Configuration of a classifier of pairs of formulas."""

    model: ClassVar[str] = "pair_classifier"
    program: ClassVar[str] = "python examples/logic_inference.py"
    presets: ClassVar = {
        "debug": {
            "units": 20, "embedding_dim": 16, "chunk_size": 5, "epochs": 1, "batch_size": 64,
            "learning_rate": 5e-3, "pairs": 3_000,
        },
        "small": {
            "units": 120, "embedding_dim": 32, "epochs": 8, "learning_rate": 3e-3, "pairs": 200_000,
        },
        "medium": {},  # a quarter of an hour on two cores
        "paper": {
            "units": 400, "embedding_dim": 128, "dropout": 0.2, "epochs": 50,
            "learning_rate": 1e-3, "schedule": "plateau",
        },
    }  # fmt: skip

    preset: str = preset_option("medium", ("debug", "small", "medium", "paper"))
    data: str | None = option(None, "Folder of the published files. Default: draw pairs.", "data")
    pairs: int = option(500_000, "Pairs to draw; about half are duplicates.", "data", 1)
    recurrent: str = option("onlstm", "Type of recurrent layer.", "model", choices=tuple(NAMES))
    units: int = option(200, "Size of the recurrent and of the hidden layer.", "model", 1)
    embedding_dim: int = option(64, "Size of word vectors.", "model", 1)
    chunk_size: int = option(10, "Units that share a value of the master gates.", "model", 1)
    dropout: float = rate(0.0, "Dropout.")
    epochs: int = option(6, "Epochs.", "training", 1)
    batch_size: int = option(128, "Pairs in a batch.", "training", 1)
    learning_rate: float = option(2e-3, "Learning rate; for cosine: peak.", "training", 0.0, 1e6)
    schedule: str = option(
        "cosine",
        "Learning-rate schedule. plateau: halve it after 2 epochs without a better validation "
        "accuracy (the published recipe).",
        "training",
        choices=("cosine", "plateau"),
    )
