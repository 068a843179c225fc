"""Trained language models in a quarter of their size: weights of 8 bits in one `.npz` file.

What the file holds is in `keras_onlstm.compact.stored`, which reads it.
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
    """(int8 array, factors of the columns)."""
    factors = np.maximum(np.abs(array).max(axis=0), 1e-12) / 127
    return np.rint(array / factors).astype("int8"), factors.astype("float32")


def check_eight_bit(model: Any, path: StrPath) -> None:
    """Refuses a model that `save_eight_bit` cannot write.

    Args:
        model: of any kind.
        path: of it, for the message.

    Raises:
        ValueError: if it is no `LanguageModel`, and no `Ensemble` of such.
    """
    for one in getattr(model, "models", [model]):
        if not CONFIG.keys() <= one.get_config().keys():
            kind = type(one).__name__
            raise ValueError(f"{path}: a {kind} has no compact form, a LanguageModel has.")


def save_eight_bit(model: Any, path: StrPath, about: Any = None) -> None:
    """Writes a language model, or several, with weights of 8 bits.

    Args:
        model: `LanguageModel`, or `Ensemble`, whose vocabulary is stored once.
        path: the file, ending in `.npz`.
        about: JSON-serializable object, which `load_eight_bit` returns: where the model comes from.

    Raises:
        ValueError: if a model is no `LanguageModel`.
    """
    check_eight_bit(model, path)
    several = hasattr(model, "models")
    models = model.models if several else [model]
    configs = [{name: one.get_config()[name] for name in CONFIG} for one in models]
    for config in configs[1:]:
        config["vocabulary"] = None
    # One model has a configuration, several have a list of them.
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
    """Reads what `save_eight_bit` wrote.

    Args:
        path: the file.

    Returns:
        The `LanguageModel` or `Ensemble`, and the `about` that it was saved with.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, or no such file at all.
    """
    return of_stored(open_stored(path), path)


def of_stored(stored: Stored, path: StrPath) -> tuple[Any, Any]:
    """The model of a file that was read.

    Args:
        stored: what `open_stored` returned.
        path: of the file, for the message.

    Returns:
        As `load_eight_bit`.

    Raises:
        ValueError: if no model can be made of it.
    """
    try:
        models = [LanguageModel(**config) for config in stored.configs]
        for model, columns in zip(models, stored.weights, strict=True):
            model.build()
            for weight, column in zip(model.trainable_variables, columns, strict=True):
                weight.assign(column.values())
        return Ensemble(models) if stored.several else models[0], stored.about
    except Exception as error:  # whatever Keras raises
        raise damaged(path, error) from error
