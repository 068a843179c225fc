"""The values that shape the training of a language model. No Keras: `--help` prints them.

What each means, what it may be, and what it is where a preset does not say.
"""

from collections.abc import Mapping

from keras_onlstm.training.settings import Setting
from keras_onlstm.utils.reading import STARTS, Choice, Integer, Number

__all__ = [
    "MODELS",
    "NAMES",
    "PRECISIONS",
    "PRPN_SETTINGS",
    "PRPN_VALUES",
    "SETTINGS",
    "VALUES",
    "check_devices",
]

NAMES = {"onlstm": "ON-LSTM", "lstm": "LSTM"}
# Of what is computed, as Keras's dtype policies; the weights have 32 bits in both.
PRECISIONS = ("float32", "mixed_bfloat16")
_RATE = Number(0.0, 1.0)
_RECURRENT = {
    "embedding_dim": Setting(Integer(1), "size of word vectors, and of the last layer if tied"),
    "units": Setting(Integer(1), "size of the other layers"),
    "num_layers": Setting(Integer(1, 100), "recurrent layers"),
    "chunk_size": Setting(Integer(1), "units that share a value of the master gates"),
    "tie_weights": Setting(bool, "one matrix for embedding and softmax"),
    "word_dropout": Setting(_RATE, "share of words dropped; more of each for more epochs"),
    "input_dropout": Setting(_RATE, "share of the word vectors' features dropped"),
    "hidden_dropout": Setting(_RATE, "the same between layers"),
    "output_dropout": Setting(_RATE, "the same after the last layer"),
    "recurrent_weight_dropout": Setting(_RATE, "share of the recurrent kernels dropped"),
    "start": Setting(STARTS, "scaled: at the words' frequencies, with gates that move; published: "
                             "as in the published code"),
}  # fmt: skip
_PRPN = {
    "embedding_dim": Setting(Integer(1), "size of word vectors"),
    "units": Setting(Integer(2), "size of the parsing network and of the reading layers, even"),
    "num_layers": Setting(Integer(1, 100), "reading layers"),
    "slots": Setting(Integer(1, 1000), "words that are remembered"),
    "lookback": Setting(Integer(0, 1000), "words before each that its distance depends on"),
    "resolution": Setting(Number(1e-6), "a distance larger by it closes a hard gate"),
    "hard": Setting(bool, "gates cut off at 0 and 1, or sigmoids"),
    "residual_blocks": Setting(Integer(0, 100), "in the predict network"),
    "tie_weights": Setting(bool, "one matrix for embedding and softmax"),
    "output_dropout": Setting(_RATE, "share of word vectors' and outputs' numbers dropped"),
    "inner_dropout": Setting(_RATE, "the same inside the three networks"),
    "recurrent_dropout": Setting(_RATE, "share of hidden features dropped, for a whole window"),
    "parsing_network": Setting(bool, "false: attention to all that is remembered"),
    "reading_attention": Setting(bool, "false: the reading network is an LSTM"),
    "predict_attention": Setting(bool, "false: the predict network sees the last output alone"),
    "start": Setting(STARTS, "scaled: at the words' frequencies, with words that differ; "
                             "published: as in the published code"),
}  # fmt: skip
_TRAINING = {
    "activation_regularization": Setting(Number(0.0), "penalty on large outputs of the last layer"),
    "temporal_regularization": Setting(Number(0.0), "penalty on their change from word to word"),
    "epochs": Setting(Integer(1), "epochs"),
    "batch_size": Setting(Integer(1), "sequences read side by side"),
    "bptt": Setting(Integer(10), "words of truncated backpropagation through time"),
    "variable_bptt": Setting(bool, "draw the length of every window around bptt"),
    "optimizer": Setting(Choice(("sgd", "asgd", "adam", "adamw", "adam_l2")), "asgd: SGD whose "
                         "weights are averaged once validation stops falling (the published recipe "
                         "of ON-LSTM); adamw: decoupled weight decay; adam_l2: the decay is a part "
                         "of the gradient (the published recipe of PRPN)"),
    "beta_1": Setting(_RATE, "decay rate of the first moment of Adam"),
    "epsilon": Setting(Number(0.0), "added to the denominator of Adam"),
    "learning_rate": Setting(Number(0.0), "learning rate; with cosine the highest"),
    "schedule": Setting(Choice(("constant", "cosine", "plateau")), "of the learning rate; cosine: "
                        "linear warmup, then down along a cosine; plateau: lower after epochs "
                        "without a better validation perplexity"),
    "warmup": Setting(_RATE, "cosine: share of all steps in which the rate rises"),
    "plateau_factor": Setting(_RATE, "plateau: what the rate is multiplied by"),
    "plateau_patience": Setting(Integer(1), "plateau: epochs without a better perplexity"),
    "clipnorm": Setting(Number(0.0), "largest norm of all gradients together"),
    "weight_decay": Setting(Number(0.0), "weight decay, of every optimizer but adam"),
}  # fmt: skip
# What shapes each model, and its training.
MODELS = {"language_model": _RECURRENT, "prpn": _PRPN}
SETTINGS = {**_RECURRENT, **_TRAINING}
PRPN_SETTINGS = {**_PRPN, **_TRAINING}
# Where a preset does not say.
_TRAINING_VALUES = {
    "activation_regularization": 0.0, "temporal_regularization": 0.0, "variable_bptt": False,
    "optimizer": "adam", "beta_1": 0.9, "epsilon": 1e-7, "schedule": "cosine", "warmup": 0.05,
    "plateau_factor": 0.25, "plateau_patience": 1, "weight_decay": 0.0,
}  # fmt: skip
VALUES = {"num_layers": 3, "tie_weights": True, "start": "scaled", **_TRAINING_VALUES}
PRPN_VALUES = {
    "num_layers": 2, "slots": 15, "lookback": 5, "resolution": 0.1, "hard": True,
    "residual_blocks": 0, "tie_weights": True, "parsing_network": True, "reading_attention": True,
    "predict_attention": True, "start": "scaled", **_TRAINING_VALUES,
}  # fmt: skip


def check_devices(values: Mapping, devices: int, hosts: int = 1) -> None:
    """Refuses more devices than a batch has sequences.

    Args:
        values: dictionary of what is in `SETTINGS`.
        devices: of each host, that share a batch.
        hosts: how many hosts there are.

    Raises:
        ValueError: if so.

    Example:

    >>> from keras_onlstm.training.language_model_settings import check_devices
    >>> check_devices({"batch_size": 4}, 8)
    Traceback (most recent call last):
    ...
    ValueError: --devices 8: the batch has but 4 sequences to share.
    """
    if devices * hosts > values["batch_size"]:
        of_each = f" on each of {hosts} hosts" if hosts > 1 else ""
        raise ValueError(
            f"--devices {devices}: the batch has but {values['batch_size']} sequences to "
            f"share{of_each}."
        )
