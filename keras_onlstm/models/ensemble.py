"""Ensemble: several language models in one, and language models with 8-bit weights in one file."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import keras
import numpy as np
from keras import ops

from keras_onlstm.compact import CONFIG, METADATA, CompactFile, damaged, read_compact
from keras_onlstm.models.language_model import LanguageModel
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.utils import Shape, StrPath, Tensor
from keras_onlstm.utils.deprecation import renamed_arguments
from keras_onlstm.utils.files import replacing

__all__ = [
    "Ensemble",
    "EnsembleOutput",
    "build_models",
    "check_eight_bit",
    "load_eight_bit",
    "save_eight_bit",
]


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
        layers_per_model: tuple with the number of layers of each model.

    Example:

    >>>     >>> words = ["<eos>", "<unk>", "the", "cat"]
    >>> models = [
    ...     LanguageModel(4, 8, 16, layers, chunk_size=4, vocabulary=words) for layers in (2, 3)
    ... ]
    >>> ensemble = Ensemble(models)
    >>> ensemble.layers_per_model, ensemble.distances(["the cat"])[0].shape
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
        self.layers_per_model = tuple(model.num_layers for model in models)
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
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
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


def _rounded(array):
    """int8 array, factor of each column."""
    factors = np.maximum(np.abs(array).max(axis=0), 1e-12) / 127
    return np.rint(array / factors).astype("int8"), factors.astype("float32")


def check_eight_bit(model: Any, path: StrPath) -> None:
    """Checks that `save_eight_bit` can write a model.

    Args:
        model: a model of any kind.
        path: its path, for the message.

    Raises:
        ValueError: if it is neither a `LanguageModel` nor an `Ensemble`.
    """
    for one in getattr(model, "models", [model]):
        if not CONFIG.keys() <= one.get_config().keys():
            kind = type(one).__name__
            raise ValueError(f"{path}: a {kind} has no compact form, a LanguageModel has.")


@renamed_arguments(about="metadata")
def save_eight_bit(model: Any, path: StrPath, metadata: Any = None) -> None:
    """Writes a language model or an ensemble with 8-bit weights.

    Args:
        model: `LanguageModel`, or `Ensemble`, whose vocabulary is stored once.
        path: of the file, ending in `.npz`.
        metadata: JSON-serializable object that `load_eight_bit` returns: the model's origin.

    Raises:
        ValueError: if a model is not a `LanguageModel`.
    """
    check_eight_bit(model, path)
    several = hasattr(model, "models")
    models = model.models if several else [model]
    configs = [{name: one.get_config()[name] for name in CONFIG} for one in models]
    for config in configs[1:]:
        config["vocabulary"] = None
    # One configuration for a model, a list for an ensemble.
    text = json.dumps({"config": configs if several else configs[0], "about": metadata}).encode()
    arrays: dict[str, Any] = {METADATA: np.frombuffer(text, "uint8")}
    for index, weight in enumerate(_weights(models)):
        array = np.asarray(ops.convert_to_numpy(weight), "float32")
        if array.ndim == 2:
            arrays[f"{index}.integers"], arrays[f"{index}.factors"] = _rounded(array)
        else:
            arrays[f"{index}.values"] = array
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def _weights(models):
    return [weight for model in models for weight in model.trainable_variables]


def load_eight_bit(path: StrPath) -> tuple[Any, Any]:
    """Loads a file that `save_eight_bit` wrote.

    Args:
        path: of the file.

    Returns:
        The `LanguageModel` or `Ensemble`, and its metadata.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is damaged or not from `save_eight_bit`.
    """
    return build_models(read_compact(path), path)


def build_models(stored: CompactFile, path: StrPath) -> tuple[Any, Any]:
    """Builds the model from a file that was read.

    Args:
        stored: result of `read_compact`.
        path: of the file, for the message.

    Returns:
        See `load_eight_bit`.

    Raises:
        ValueError: if the model cannot be built.
    """
    try:
        models = [LanguageModel(**config) for config in stored.configs]
        for model, columns in zip(models, stored.weights, strict=True):
            model.build()
            for weight, column in zip(model.trainable_variables, columns, strict=True):
                weight.assign(column.values())
        return Ensemble(models) if stored.is_ensemble else models[0], stored.metadata
    except Exception as error:  # Keras raises many types
        raise damaged(path, error) from error
