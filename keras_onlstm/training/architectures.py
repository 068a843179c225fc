"""What can be trained as a language model, and how it is made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras_onlstm.models import PRPN, LanguageModel
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.training.language_model_settings import MODELS
from keras_onlstm.training.settings import Setting

__all__ = ["ARCHITECTURES", "Architecture", "architecture", "take_weights"]


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
    """The kind of model that a run trains, by default a `LanguageModel`."""
    return ARCHITECTURES[arguments.get("model", "language_model")]


def take_weights(model: SentenceReader, other: SentenceReader) -> None:
    """Gives a model the weights of another one of the same kind, sizes and vocabulary."""
    if other.title != model.title:
        raise ValueError(f"a model of {model.title} cannot start from one of {other.title}.")
    if other.vocabulary != model.vocabulary:
        raise ValueError("a model cannot start from one with another vocabulary.")
    for each in (model, other):
        if not each.built:
            each.build()
    if [x.shape for x in other.weights] != [x.shape for x in model.weights]:
        old, new = other.get_config(), model.get_config()
        sizes = ", ".join(
            f"{name} {old[name]}, not {new[name]}"
            for name in {**MODELS["language_model"], **MODELS["prpn"]}
            if name in new and old[name] != new[name] and "dropout" not in name and name != "start"
        )
        raise ValueError(f"the model to start from has {sizes}. Change them with --set.")
    model.set_weights(other.get_weights())
