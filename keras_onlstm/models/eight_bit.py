"""Trained language models in a quarter of their size: weights of 8 bits in one `.npz` file.

Every column of a matrix is stored as integers from -127 to 127 and one factor. The file holds
numbers and a JSON text, no pickle and no code.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from keras_onlstm.models import Ensemble, LanguageModel
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.keras_private import check_room
from keras_onlstm.utils.npz import open_npz
from keras_onlstm.utils.reading import Integer, parse_json, reason
from keras_onlstm.utils.types import StrPath

__all__ = ["load_eight_bit", "save_eight_bit"]

_ABOUT = "about.json"
_SEEDS = 10_000  # bytes of a model's random generators, which are not stored


def _rounded(array):
    """(int8 array, factors of the columns)."""
    factors = np.maximum(np.abs(array).max(axis=0), 1e-12) / 127
    return np.rint(array / factors).astype("int8"), factors.astype("float32")


def save_eight_bit(model: Any, path: StrPath, about: Any = None) -> None:
    """Writes a language model, or several, with weights of 8 bits.

    Args:
        model: `LanguageModel`, or `Ensemble`, whose vocabulary is stored once.
        path: the file, ending in `.npz`.
        about: JSON-serializable object, which `load_eight_bit` returns: where the model comes from.

    Raises:
        ValueError: if a model is no `LanguageModel`.
    """
    several = hasattr(model, "models")
    models = model.models if several else [model]
    for one in models:
        if not _KIND.keys() <= one.get_config().keys():
            kind = type(one).__name__
            raise ValueError(f"{path}: a {kind} has no compact form, a LanguageModel has.")
    configs = [{name: one.get_config()[name] for name in _KIND} for one in models]
    for config in configs[1:]:
        config["vocabulary"] = None
    # One model has a configuration, several have a list of them.
    text = json.dumps({"config": configs if several else configs[0], "about": about}).encode()
    arrays: dict[str, Any] = {_ABOUT: np.frombuffer(text, "uint8")}
    for index, weight in enumerate(_weights(models)):
        array = np.asarray(ops.convert_to_numpy(weight), "float32")
        if array.ndim == 2:
            arrays[f"{index}.integers"], arrays[f"{index}.factors"] = _rounded(array)
        else:
            arrays[f"{index}.values"] = array
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


_KIND = {
    "vocabulary_size": Integer(1),
    "embedding_dim": Integer(1),
    "units": Integer(1),
    "num_layers": Integer(1),
    "chunk_size": Integer(1),
    "recurrent": str,
    "tie_weights": bool,
    "vocabulary": ([str], None),
}


def _models(configs):
    """Models of one vocabulary, the first one's."""
    models = []
    for config in configs:
        chosen = {name: config[name] for name in _KIND}
        models.append(LanguageModel(**chosen | {"vocabulary": configs[0]["vocabulary"]}))
        models[-1].build()
    return models


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
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such model.")
    try:
        with open_npz(path) as file:
            return _read(file)
    except Exception as error:  # whatever NumPy, its zip reader and Keras raise
        raise ValueError(
            f"{path}: not a complete model in compact form ({reason(error)}). Restore it from a "
            "copy."
        ) from error


def _read(file):
    stored = parse_json(file.read(_ABOUT).tobytes(), {"config": ([_KIND], _KIND), "about": object})
    several = isinstance(stored["config"], list)
    configs = stored["config"] if several else [stored["config"]]
    numbers = sum(math.prod(header.shape) for header in file.headers.values())
    check_room(lambda: _models(configs), 4 * numbers + _SEEDS * len(configs))
    models = _models(configs)
    wanted = {_ABOUT}
    for index, weight in enumerate(_weights(models)):
        wanted |= _read_weight(file, index, weight)
    if file.headers.keys() != wanted:
        raise ValueError(f"it also holds {', '.join(sorted(file.headers.keys() - wanted))}")
    return Ensemble(models) if several else models[0], stored["about"]


def _read_weight(file, index, weight):
    """Sets a weight to what the file holds of it, and names that."""
    shape = tuple(weight.shape)
    parts = {"integers": ("int8", shape), "factors": ("float32", shape[1:])}
    if len(shape) != 2:
        parts = {"values": ("float32", shape)}
    names = [f"{index}.{part}" for part in parts]
    for name, wanted in zip(names, parts.values(), strict=True):
        header = file.headers.get(name)
        if header is None or (header.dtype, header.shape) != wanted:
            raise ValueError(f"{name} is not {wanted[0]} of shape {wanted[1]}")
    array = math.prod(map(file.read, names))
    if not np.isfinite(array).all():
        raise ValueError(f"{' times '.join(names)} is not finite")
    weight.assign(array)
    return set(names)
