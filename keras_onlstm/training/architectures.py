"""What can be trained as a language model: the values that shape each model, and how it is made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras_onlstm.models import PRPN, LanguageModel
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.models.starts import STARTS
from keras_onlstm.training.settings import Setting
from keras_onlstm.utils.reading import Choice, Integer, Number

__all__ = ["ARCHITECTURES", "Architecture", "architecture"]


class Architecture(NamedTuple):
    """A kind of language model.

    Attributes:
        settings: dictionary of `Setting`, what shapes the model.
        make: function of the vocabulary, the arguments of a run and its values, of `settings` and
            others, that makes the model.
    """

    settings: Mapping[str, Setting]
    make: Callable[[Sequence[str], Mapping[str, Any], Mapping[str, Any]], SentenceReader]


_RATE = Number(0.0, 1.0)
_LAYERS = {
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
    "start": Setting(Choice(STARTS), "scaled: at the words' frequencies, with gates that move; "
                                     "published: as in the published code"),
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
    "start": Setting(Choice(STARTS), "scaled: at the words' frequencies, with words that differ; "
                                     "published: as in the published code"),
}  # fmt: skip


def _language_model(vocabulary, arguments, values):
    return LanguageModel(
        len(vocabulary),
        recurrent=arguments["recurrent"],
        vocabulary=vocabulary,
        seed=arguments["seed"],
        **{name: values[name] for name in _LAYERS},
    )


def _prpn(vocabulary, arguments, values):
    return PRPN(
        len(vocabulary),
        vocabulary=vocabulary,
        seed=arguments["seed"],
        **{name: values[name] for name in _PRPN},
    )


ARCHITECTURES = {
    "language_model": Architecture(_LAYERS, _language_model),
    "prpn": Architecture(_PRPN, _prpn),
}


def architecture(arguments: Mapping[str, Any]) -> Architecture:
    """The kind of model that a run trains.

    Args:
        arguments: of the run; one without `model` trains a `LanguageModel`.

    Returns:
        `Architecture`.

    Example:

    >>> from keras_onlstm.training.architectures import architecture
    >>> "slots" in architecture({"model": "prpn"}).settings
    True
    """
    return ARCHITECTURES[arguments.get("model", "language_model")]
