"""Ensemble: the distances of several language models in one model."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import keras
from keras import ops

from keras_onlstm.models.language_model import LanguageModel
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.utils.types import Shape, Tensor

__all__ = ["Ensemble", "EnsembleOutput"]


class EnsembleOutput(NamedTuple):
    """The output of `Ensemble` with `details=True`.

    Attributes:
        distances: dictionary with "forget" and "input", the master gates: each (batch, layers,
            time), in [0, 1), with the layers of the first model first.
    """

    distances: dict[str, Tensor]


@keras.saving.register_keras_serializable(package="keras_onlstm")
class Ensemble(SentenceReader):
    """Combines the layers of language models with the same vocabulary.

    It computes distances with the same interface as `LanguageModel`, so that `Parser` and the
    exported parser accept it. The layers of the first model are first. It does not predict words.

    Args:
        models: list of at least one `LanguageModel` with ON-LSTM layers.
        **kwargs: `name`, `dtype` of `keras.Model`.

    Call arguments:
        ids: integers (batch, time).
        details: whether to return more than the distances of the forget gates.

    Returns:
        Distances of the forget gates (batch, layers, time); with `details` an `EnsembleOutput`.

    Raises:
        ValueError: if `models` is empty, one is not a `LanguageModel` or is an LSTM, or their
            vocabularies differ.

    Attributes:
        models: list.
        members: tuple with the number of layers of each model.

    Example:

    >>> from keras_onlstm.models import Ensemble, LanguageModel
    >>> words = ["<eos>", "<unk>", "the", "cat"]
    >>> models = [
    ...     LanguageModel(4, 8, 16, layers, chunk_size=4, vocabulary=words) for layers in (2, 3)
    ... ]
    >>> ensemble = Ensemble(models)
    >>> ensemble.members, ensemble.distances(["the cat"])[0].shape
    ((2, 3), (5, 2))
    """

    graphs = ("parser",)

    def __init__(self, models: Iterable[LanguageModel], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        models = list(models)
        _check(models)
        self.models = models
        self.vocabulary = models[0].vocabulary
        self.vocabulary_size = models[0].vocabulary_size
        self.members = tuple(model.num_layers for model in models)
        self.gates = models[0].gates

    def build(self, input_shape: Shape | None = None) -> None:
        for model in self.models:
            if not model.built:
                model.build(input_shape)
        self.built = True

    def call(  # type: ignore[override]
        self, ids: Tensor, details: bool = False
    ) -> Tensor | EnsembleOutput:
        results = self.hidden(ids)
        return results if details else results.distances[self.gates[0]]

    def hidden(self, ids: Tensor) -> EnsembleOutput:
        """The `EnsembleOutput`."""
        of_members = [model.measure(ids) for model in self.models]
        return EnsembleOutput(
            {
                name: ops.concatenate([distances[name] for distances in of_members], axis=1)
                for name in self.gates
            }
        )

    def get_config(self) -> dict[str, Any]:
        models = [keras.saving.serialize_keras_object(model) for model in self.models]
        return {**super().get_config(), "models": models}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        models = [keras.saving.deserialize_keras_object(model) for model in config["models"]]
        return cls(**{**config, "models": models})


def _check(models):
    if not models:
        raise ValueError("An ensemble needs a model at least.")
    for number, model in enumerate(models, 1):
        if not isinstance(model, LanguageModel):
            kind = type(model).__name__
            raise ValueError(f"model {number}: {kind}, not a LanguageModel of Keras.")
        if not model.gates:
            raise ValueError(f"model {number}: an LSTM has no distances: recurrent='onlstm' has.")
        if (model.vocabulary_size, model.vocabulary) != (
            models[0].vocabulary_size,
            models[0].vocabulary,
        ):
            raise ValueError(
                f"model {number}: has another vocabulary than model 1. Train the models of an "
                "ensemble on one corpus."
            )
