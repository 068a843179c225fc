"""Saves and loads language models with 8-bit weights: one `.npz` file of a quarter the size.

`keras_onlstm.compact.stored` reads the file and defines its format.
"""

import json
from typing import Any

import numpy as np
from keras import ops

from keras_onlstm.compact.stored import ABOUT, CONFIG, Stored, damaged, open_stored
from keras_onlstm.models import Ensemble, LanguageModel
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.types import StrPath

__all__ = ["check_eight_bit", "load_eight_bit", "of_stored", "save_eight_bit"]


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


def save_eight_bit(model: Any, path: StrPath, about: Any = None) -> None:
    """Writes a language model or an ensemble with 8-bit weights.

    Args:
        model: `LanguageModel`, or `Ensemble`, whose vocabulary is stored once.
        path: of the file, ending in `.npz`.
        about: JSON-serializable metadata that `load_eight_bit` returns, such as the model's origin.

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
    text = json.dumps({"config": configs if several else configs[0], "about": about}).encode()
    arrays: dict[str, Any] = {ABOUT: np.frombuffer(text, "uint8")}
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
        The `LanguageModel` or `Ensemble`, and its `about`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is damaged or not from `save_eight_bit`.
    """
    return of_stored(open_stored(path), path)


def of_stored(stored: Stored, path: StrPath) -> tuple[Any, Any]:
    """Builds the model from a file that was read.

    Args:
        stored: result of `open_stored`.
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
        return Ensemble(models) if stored.several else models[0], stored.about
    except Exception as error:  # Keras raises many types
        raise damaged(path, error) from error
