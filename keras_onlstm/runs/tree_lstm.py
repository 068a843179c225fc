"""Configuration and presets of TreeLSTM models. Does not import Keras."""

from dataclasses import dataclass
from typing import ClassVar

from keras_onlstm.runs.config import Config, option, preset_option, rate

NLTK = "nltk"  # value of --data for NLTK's dependency treebank
SEQUENTIAL = ("chain", "sentence", "bidirectional")  # read as sequences
SHAPES = ("dependencies", *SEQUENTIAL, "random")


@dataclass(frozen=True, kw_only=True)
class TreeLSTMConfig(Config):
    """Configuration of a TreeLSTM, or an LSTM over the same trees."""

    model: ClassVar[str] = "tree_lstm"
    program: ClassVar[str] = "python examples/dependency_language_model.py"
    presets: ClassVar = {
        "debug": {
            "embedding_dim": 8, "units": 16, "input_dropout": 0.1, "output_dropout": 0.1,
            "epochs": 2, "batch_size": 16, "learning_rate": 1e-2,
        },
        "small": {},
        "paper": {  # of the parsing experiments
            "num_layers": 2, "input_dropout": 0.0, "output_dropout": 0.2, "epochs": 50,
            "batch_size": 64, "optimizer": "sgd", "learning_rate": 1.0, "schedule": "plateau",
            "normalize": False,
        },
    }  # fmt: skip

    preset: str = preset_option("small", ("debug", "small", "paper"))
    data: tuple[str, ...] = option(
        (),
        f"CoNLL files of training, validation and test, or {NLTK}, its dependency treebank. "
        "Default: the treebank; the preset debug uses random trees.",
        "data",
    )
    trees: str = option(
        "dependencies",
        "Shape of the trees. dependencies: dependency trees; chain: each word depends on the one "
        "before it, as in an LSTM; sentence: a chain that ends with <eos>; bidirectional: chains "
        "in both directions; random: random trees.",
        "data",
        choices=SHAPES,
    )
    normalize: bool = option(True, "Convert words to lower case and digits to N.", "data")
    least_count: int = option(2, "Rarer words of the training trees become <unk>.", "data", 1)
    longest: int = option(150, "Skip training sentences longer than N words.", "data", 1)
    vectors: str | None = option(None, "Text file of initial word vectors.", "data")
    left_dependents: bool = option(False, "LdTreeLSTM: read left dependents first.", "model")
    embedding_dim: int = option(100, "Size of word vectors.", "model", 1)
    units: int = option(200, "Size of the layers.", "model", 1)
    num_layers: int = option(1, "Number of layers of each of the four LSTMs.", "model", 1, 100)
    left_layers: int = option(1, "Layers of the LSTM of left dependents.", "model", 1, 100)
    input_dropout: float = rate(0.4, "Dropout of word vectors.")
    output_dropout: float = rate(0.5, "Dropout before the softmax.")
    epochs: int = option(12, "Epochs; the schedule plateau may end earlier.", "training", 1)
    batch_size: int = option(32, "Trees in a batch.", "training", 1)
    optimizer: str = option(
        "adam",
        "sgd: minimizes the sum over a sentence, not the mean over words (the published recipe).",
        "training",
        choices=("sgd", "adam"),
    )
    learning_rate: float = option(8e-3, "Learning rate; for cosine: peak.", "training", 0.0, 1e6)
    schedule: str = option(
        "cosine",
        "Learning-rate schedule. cosine: linear warmup, then cosine decay; plateau: halve it and "
        "restore the best weights once validation stops improving (the published recipe).",
        "training",
        choices=("constant", "cosine", "plateau"),
    )
    warmup: float = option(0.05, "cosine: share of steps with warmup.", "training", 0.0, 1.0)
    clipnorm: float = option(5.0, "Maximum global norm of gradients; 0: any.", "training", 0.0)
    noise: int = option(0, "Words of noise-contrastive estimation; 0: softmax.", "training", 0)
    ln_z: float = option(9.0, "Initial logarithm of the normalizing constant Z.", "training")
    learn: str = option(
        "ln_z", "Parametrization of Z (published: z).", "training", choices=("ln_z", "z", "nothing")
    )

    def check(self) -> None:
        if self.left_dependents and self.trees in SEQUENTIAL:
            raise ValueError("--left-dependents: needs --trees dependencies or random")
        if self.data not in ((), (NLTK,)) and len(self.data) != 3:
            raise ValueError(
                f"--data takes {NLTK}, or three CoNLL files: for training, validation and test"
            )
