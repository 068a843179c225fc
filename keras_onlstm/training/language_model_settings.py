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
    "activation": Setting(Number(0.0), "strength of the penalty on the last output"),
    "temporal": Setting(Number(0.0), "strength of that on its change from word to word"),
    "epochs": Setting(Integer(1), "epochs"),
    "batch_size": Setting(Integer(1), "sequences read side by side"),
    "window": Setting(Integer(10), "words of back-propagation"),
    "jitter": Setting(bool, "whether the window varies"),
    "optimizer": Setting(Choice(("sgd", "plateau", "adam", "halved")), "sgd: averaged when "
                         "validation stops falling (the published recipe of ON-LSTM); plateau: a "
                         "fourth of the rate then; adam: up, and down along a cosine; halved: Adam "
                         "without momentum, half the rate after two epochs that were no better "
                         "(that of PRPN)"),
    "learning_rate": Setting(Number(0.0), "learning rate, of adam the highest"),
    "warmup": Setting(_RATE, "share of all steps in which that of adam rises"),
    "clip": Setting(Number(0.0), "largest norm of the gradient"),
    "decay": Setting(Number(0.0), "decay of the weights; of halved a part of the gradient"),
}  # fmt: skip
# What shapes each model, and its training.
MODELS = {"language_model": _RECURRENT, "prpn": _PRPN}
SETTINGS = {**_RECURRENT, **_TRAINING}
PRPN_SETTINGS = {**_PRPN, **_TRAINING}
# Where a preset does not say.
VALUES = {"num_layers": 3, "tie_weights": True, "start": "scaled", "warmup": 0.05}
PRPN_VALUES = {
    "num_layers": 2, "slots": 15, "lookback": 5, "resolution": 0.1, "hard": True,
    "residual_blocks": 0, "tie_weights": True, "parsing_network": True, "reading_attention": True,
    "predict_attention": True, "start": "scaled", "activation": 0.0, "temporal": 0.0,
    "jitter": False, "warmup": 0.05,
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
