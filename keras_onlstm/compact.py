"""Trained language models in a quarter of their size: weights of 8 bits in one `.npz` file.

Every column of a matrix is stored as integers from -127 to 127 and one factor. The file holds
numbers and a JSON text, no pickle and no code.
"""

import json
from pathlib import Path

import numpy as np
from keras import ops

from keras_onlstm.files import replacing
from keras_onlstm.models import Ensemble, LanguageModel

__all__ = ["load_compact", "save_compact"]

_ABOUT = "about.json"


def _rounded(array):
    """(int8 array, factors of the columns)."""
    factors = np.maximum(np.abs(array).max(axis=0), 1e-12) / 127
    return np.rint(array / factors).astype("int8"), factors.astype("float32")


def save_compact(model, path, about=None):
    """Writes a language model, or several, with weights of 8 bits.

    Args:
        model: `LanguageModel`, or `Ensemble`, whose vocabulary is stored once.
        path: the file, ending in `.npz`.
        about: JSON-serializable object, which `load_compact` returns: where the model comes from.
    """
    models = model.models if isinstance(model, Ensemble) else [model]
    configs = [{name: one.get_config()[name] for name in _CONFIG} for one in models]
    for config in configs[1:]:
        config["vocabulary"] = None
    # One model has a configuration, several have a list of them.
    config = configs if isinstance(model, Ensemble) else configs[0]
    text = json.dumps({"config": config, "about": about}).encode()
    arrays = {_ABOUT: np.frombuffer(text, "uint8")}
    for index, weight in enumerate(_weights(models)):
        array = np.asarray(ops.convert_to_numpy(weight), "float32")
        if array.ndim == 2:
            arrays[f"{index}.integers"], arrays[f"{index}.factors"] = _rounded(array)
        else:
            arrays[f"{index}.values"] = array
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


_CONFIG = (
    "vocabulary_size",
    "embedding_dim",
    "units",
    "num_layers",
    "chunk_size",
    "recurrent",
    "tie_weights",
    "vocabulary",
)


def _models(configs):
    for config in configs[1:]:
        config["vocabulary"] = configs[0]["vocabulary"]
    models = [LanguageModel(**{name: config[name] for name in _CONFIG}) for config in configs]
    for model in models:
        model.build()
    return models


def _weights(models):
    return [weight for model in models for weight in model.trainable_variables]


def load_compact(path):
    """Reads what `save_compact` wrote.

    Args:
        path: the file.

    Returns:
        The `LanguageModel` or `Ensemble`, and the `about` that it was saved with.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, or no such file at all.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such model.")
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        stored = json.loads(arrays.pop(_ABOUT).tobytes())
        several = isinstance(stored["config"], list)
        models = _models(stored["config"] if several else [stored["config"]])
        for index, weight in enumerate(_weights(models)):
            if f"{index}.values" in arrays:
                array = arrays.pop(f"{index}.values")
            else:
                integers = arrays.pop(f"{index}.integers")
                array = integers * arrays.pop(f"{index}.factors")
            weight.assign(array.astype("float32"))
        if arrays:
            raise ValueError(f"it also holds {', '.join(sorted(arrays))}")
        model = Ensemble(models) if several else models[0]
    except Exception as error:  # whatever NumPy, its zip reader, JSON and Keras raise
        raise ValueError(
            f"{path}: not a complete model in compact form ({error}). Restore it from a copy."
        ) from error
    return model, stored["about"]
