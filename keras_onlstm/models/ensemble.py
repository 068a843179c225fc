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
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.validation import renamed_arguments


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

    It computes distances like a `LanguageModel`, so `Parser` and the exported parser accept it. The
    layers of the first model are first. It does not predict words.

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

    Example:

    >>> from keras_onlstm.models import Ensemble, LanguageModel
    >>> words = ["<eos>", "<unk>", "the", "cat"]
    >>> models = [LanguageModel(4, 8, 16, layers, 4, vocabulary=words) for layers in (2, 3)]
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
        distances = [model.measure(ids) for model in self.models]
        return EnsembleOutput(
            {gate: ops.concatenate([d[gate] for d in distances], axis=1) for gate in self.gates}
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
        raise ValueError("models must contain at least one model.")
    for number, model in enumerate(models, 1):
        if not isinstance(model, LanguageModel):
            kind = type(model).__name__
            raise ValueError(f"model {number}: must be a LanguageModel of Keras, got {kind}.")
        if not model.gates:
            raise ValueError(
                f"model {number}: has no distances, because it is an LSTM. Use recurrent='onlstm'."
            )
        if any(
            getattr(model, name) != getattr(models[0], name)
            for name in ("vocabulary_size", "vocabulary")
        ):
            raise ValueError(
                f"model {number}: its vocabulary differs from that of model 1. Train the models of "
                "an ensemble on one corpus."
            )


def check_eight_bit(model: Any, path: StrPath) -> None:
    """Raises `ValueError` unless `save_eight_bit` can write a model that was loaded from `path`."""
    for part in getattr(model, "models", [model]):
        if not CONFIG.keys() <= part.get_config().keys():
            kind = type(part).__name__
            raise ValueError(
                f"{path}: must be a LanguageModel, got {kind}: it has no compact form."
            )


@renamed_arguments(about="metadata")
def save_eight_bit(model: Any, path: StrPath, metadata: Any = None) -> None:
    """Writes a `LanguageModel` or `Ensemble` with 8-bit weights to a `.npz` file.

    `metadata` is any JSON-serializable object, which `load_eight_bit` returns.
    """
    check_eight_bit(model, path)
    is_ensemble = hasattr(model, "models")
    models = model.models if is_ensemble else [model]
    for part in models:
        if not part.built:
            part.build()
    configs = [{name: part.get_config()[name] for name in CONFIG} for part in models]
    for config in configs[1:]:
        config["vocabulary"] = None
    # One configuration for a model, a list for an ensemble.
    header = {"config": configs if is_ensemble else configs[0], "about": metadata}
    arrays: dict[str, Any] = {METADATA: np.frombuffer(json.dumps(header).encode(), "uint8")}
    weights = [weight for part in models for weight in part.trainable_variables]
    for index, weight in enumerate(weights):
        array = np.asarray(ops.convert_to_numpy(weight), "float32")
        if array.ndim == 2:
            factors = np.maximum(np.abs(array).max(axis=0), 1e-12) / 127  # one per column
            arrays[f"{index}.integers"] = np.rint(array / factors).astype("int8")
            arrays[f"{index}.factors"] = factors.astype("float32")
        else:
            arrays[f"{index}.values"] = array
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def load_eight_bit(path: StrPath) -> tuple[Any, Any]:
    """Loads the `LanguageModel` or `Ensemble` of `save_eight_bit`, and its metadata."""
    return build_models(read_compact(path), path)


def build_models(contents: CompactFile, path: StrPath) -> tuple[Any, Any]:
    """The result of `load_eight_bit`, from the contents of the file."""
    try:
        models = [LanguageModel(**config) for config in contents.configs]
        for model, weights in zip(models, contents.weights, strict=True):
            model.build()
            for variable, weight in zip(model.trainable_variables, weights, strict=True):
                variable.assign(weight.values())
        return Ensemble(models) if contents.is_ensemble else models[0], contents.metadata
    except Exception as error:  # Keras raises many types
        raise damaged(path, error) from error
