"""What can be trained as a language model, and how it is made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras_onlstm.models import PRPN, LanguageModel
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.training.language_model_settings import MODELS
from keras_onlstm.training.settings import Setting

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


def _language_model(vocabulary, arguments, values):
    return LanguageModel(
        len(vocabulary),
        recurrent=arguments["recurrent"],
        vocabulary=vocabulary,
        seed=arguments["seed"],
        dtype=arguments.get("precision"),
        **{name: values[name] for name in MODELS["language_model"]},
    )


def _prpn(vocabulary, arguments, values):
    return PRPN(
        len(vocabulary),
        vocabulary=vocabulary,
        seed=arguments["seed"],
        dtype=arguments.get("precision"),
        **{name: values[name] for name in MODELS["prpn"]},
    )


ARCHITECTURES = {
    "language_model": Architecture(MODELS["language_model"], _language_model),
    "prpn": Architecture(MODELS["prpn"], _prpn),
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
