"""Configuration and presets of language models, ON-LSTM, LSTM and PRPN. Does not import Keras."""

from dataclasses import dataclass
from typing import ClassVar

from keras_onlstm.runs.config import Config, option, preset_option, rate
from keras_onlstm.utils.validation import INITIALIZATIONS

NAMES = {"onlstm": "ON-LSTM", "lstm": "LSTM"}
PRESETS = ("debug", "small", "medium", "large", "paper")


_LARGE_OUTPUTS = "Penalty on large outputs of the last layer."
_CHANGES = "Penalty on changes of that output between words."


@dataclass(frozen=True, kw_only=True)
class TextConfig(Config):
    """Options that language models and PRPN share: text and training."""

    program: ClassVar[str] = "keras-onlstm train"
    free: ClassVar[tuple[str, ...]] = ("devices", "num_processes")

    data: tuple[str, ...] = option(
        (), "Folder of train.txt, valid.txt and test.txt, or text files that are split.", "data"
    )
    max_words: int | None = option(None, "Vocabulary size: the N most frequent words.", "data", 3)
    characters: bool = option(False, "Read characters instead of words.", "data")
    sentences: bool = option(False, "Read each sentence on its own.", "data")
    test_sentences: bool = option(
        False, "With --sentences: also train on NLTK's sample, on which trees are scored.", "data"
    )
    init_from: str | None = option(None, "Start with vocabulary and best weights of a run.", "data")
    epochs: int = option(20, "Epochs.", "training", 1)
    batch_size: int = option(32, "Sequences in a batch.", "training", 1)
    bptt: int = option(35, "Length of a training window in words.", "training", 10)
    variable_bptt: bool = option(
        False, "Vary the length of windows randomly around --bptt.", "training"
    )
    optimizer: str = option(
        "adam",
        "asgd: SGD that averages the weights once validation stops improving; adamw: decoupled "
        "weight decay; adam_l2: L2 penalty added to the gradients.",
        "training",
        choices=("sgd", "asgd", "adam", "adamw", "adam_l2"),
    )
    beta_1: float = rate(0.9, "Decay rate of Adam's first moment.", "training")
    epsilon: float = option(1e-7, "Added to the denominator of Adam.", "training", 1e-12)
    learning_rate: float = option(
        4e-3, "Learning rate; for cosine: its start.", "training", 0.0, 1e6
    )
    schedule: str = option(
        "cosine",
        "Learning-rate schedule. cosine: the smaller of a linear warmup and a cosine decay; "
        "plateau: lower it after epochs without a better validation perplexity.",
        "training",
        choices=("constant", "cosine", "plateau"),
    )
    warmup: float = option(0.05, "cosine: share of steps with warmup.", "training", 0.0, 1.0)
    plateau_factor: float = rate(0.25, "plateau: factor of the learning rate.", "training")
    plateau_patience: int = option(1, "plateau: epochs without improvement.", "training", 1)
    clipnorm: float = option(
        0.25, "Maximum global norm of gradients; 0: no clipping.", "training", 0.0
    )
    weight_decay: float = option(0.0, "Weight decay, of every optimizer but adam.", "training", 0.0)
    activation_regularization: float = option(0.0, _LARGE_OUTPUTS, "training", 0.0)
    temporal_regularization: float = option(0.0, _CHANGES, "training", 0.0)
    compute_dtype: str = option(
        "float32", "Compute dtype (weights: float32).", "training", choices=("float32", "bfloat16")
    )
    devices: int = option(1, "Devices of each process; they share a batch.", "training", 1)
    num_processes: int = option(1, "Processes, each with its devices (JAX).", "training", 1)

    def check(self) -> None:
        if self.devices * self.num_processes > self.batch_size:
            suffix = f" of {self.num_processes} processes" if self.num_processes > 1 else ""
            raise ValueError(
                f"--devices {self.devices}{suffix}: the batch has only {self.batch_size} sequences "
                "to share. Use fewer devices or a larger --batch-size."
            )
        if self.optimizer == "adam" and self.weight_decay:
            raise ValueError(
                f"--weight-decay {self.weight_decay}: needs --optimizer adamw, adam_l2, sgd or asgd"
            )
        if self.test_sentences and not self.sentences:
            raise ValueError("--test-sentences: needs --sentences")
        if self.max_words is not None and self.init_from is not None:
            raise ValueError("--max-words: not with --init-from, which sets the vocabulary")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(TextConfig):
    """Configuration of an ON-LSTM or LSTM language model."""

    model: ClassVar[str] = "language_model"
    presets: ClassVar = {
        "debug": {
            "embedding_dim": 20, "units": 20, "num_layers": 2, "chunk_size": 5, "word_dropout": 0.1,
            "input_dropout": 0.1, "hidden_dropout": 0.1, "output_dropout": 0.1,
            "recurrent_weight_dropout": 0.1, "activation_regularization": 2.0,
            "temporal_regularization": 1.0, "epochs": 2, "batch_size": 20, "bptt": 20,
            "variable_bptt": True, "optimizer": "asgd", "learning_rate": 10.0,
            "schedule": "constant", "weight_decay": 1.2e-6,
        },
        "small": {  # for ensembles of parsers
            "embedding_dim": 150, "units": 300, "word_dropout": 0.0, "input_dropout": 0.1,
            "hidden_dropout": 0.1, "output_dropout": 0.2, "recurrent_weight_dropout": 0.1,
            "activation_regularization": 0.0, "temporal_regularization": 0.0, "epochs": 1,
            "learning_rate": 5e-3, "warmup": 0.25,
        },
        "medium": {},
        "large": {  # two hours on two cores with AMX, in bfloat16
            "embedding_dim": 400, "units": 1150, "input_dropout": 0.35, "hidden_dropout": 0.25,
            "output_dropout": 0.4, "recurrent_weight_dropout": 0.35, "batch_size": 64,
            "learning_rate": 3e-3,
        },
        "paper": {  # days on a GPU
            "embedding_dim": 400, "units": 1150, "word_dropout": 0.1, "input_dropout": 0.5,
            "hidden_dropout": 0.3, "output_dropout": 0.45, "recurrent_weight_dropout": 0.45,
            "activation_regularization": 2.0, "temporal_regularization": 1.0, "epochs": 1000,
            "batch_size": 20, "bptt": 70, "variable_bptt": True, "optimizer": "asgd",
            "learning_rate": 30.0, "schedule": "constant", "weight_decay": 1.2e-6,
            "initialization": "published",
        },
    }  # fmt: skip

    preset: str = preset_option("medium", PRESETS)
    activation_regularization: float = option(1.0, _LARGE_OUTPUTS, "training", 0.0)
    temporal_regularization: float = option(0.5, _CHANGES, "training", 0.0)
    recurrent: str = option("onlstm", "Type of recurrent layer.", "model", choices=tuple(NAMES))
    embedding_dim: int = option(300, "Size of word vectors and of the last layer.", "model", 1)
    units: int = option(500, "Units of every layer except the last.", "model", 1)
    num_layers: int = option(3, "Number of recurrent layers.", "model", 1, 100)
    chunk_size: int = option(10, "Units that share a value of the master gates.", "model", 1)
    tie_weights: bool = option(True, "One matrix for embedding and softmax.", "model")
    word_dropout: float = rate(0.05, "Share of words that are dropped.")
    input_dropout: float = rate(0.25, "Dropout of word vectors.")
    hidden_dropout: float = rate(0.2, "Dropout between layers.")
    output_dropout: float = rate(0.35, "Dropout after the last layer.")
    recurrent_weight_dropout: float = rate(0.2, "Dropout of the recurrent kernels.")
    initialization: str = option(
        "scaled",
        "Initial weights. scaled: the output bias at the words' frequencies, larger input kernels; "
        "published: as in the published code.",
        "model",
        choices=INITIALIZATIONS.values,
    )

    def check(self) -> None:
        super().check()
        last = "embedding_dim" if self.tie_weights else "units"
        for name in {last, "units"} if self.num_layers > 1 else {last}:
            size = getattr(self, name)
            if self.recurrent == "onlstm" and size % self.chunk_size:
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"{flag} {size}: must be divisible by --chunk-size {self.chunk_size}. "
                    "Change one of them."
                )


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
            "initialization": "published",
        },
    }  # fmt: skip

    preset: str = preset_option("medium", PRESETS)
    epochs: int = option(5, "Epochs.", "training", 1)
    clipnorm: float = option(
        1.0, "Maximum global norm of gradients; 0: no clipping.", "training", 0.0
    )
    embedding_dim: int = option(300, "Size of word vectors.", "model", 1)
    units: int = option(500, "Size of the parsing and the reading layers, even.", "model", 2)
    num_layers: int = option(2, "Number of reading layers.", "model", 1, 100)
    slots: int = option(15, "Number of words in memory.", "model", 1, 1000)
    lookback: int = option(5, "Earlier words that a distance depends on.", "model", 0, 1000)
    resolution: float = option(0.1, "Difference of distances that closes a gate.", "model", 1e-6)
    hard: bool = option(True, "Hard gates, linear between 0 and 1, not sigmoids.", "model")
    residual_blocks: int = option(0, "Residual blocks of the predict network.", "model", 0, 100)
    tie_weights: bool = option(True, "One matrix for embedding and softmax.", "model")
    output_dropout: float = rate(0.25, "Dropout of word vectors and outputs.")
    inner_dropout: float = rate(0.15, "Dropout inside the three networks.")
    recurrent_dropout: float = rate(0.1, "Dropout of hidden features, for a whole window.")
    parsing_network: bool = option(True, "If off, attend to all slots.", "model")
    reading_attention: bool = option(True, "If off, the reading network is an LSTM.", "model")
    predict_attention: bool = option(True, "If off, predict from the last output only.", "model")
    initialization: str = option(
        "scaled",
        "Initial weights. scaled: the output bias at the words' frequencies, larger word vectors; "
        "published: as in the published code.",
        "model",
        choices=INITIALIZATIONS.values,
    )
