"""The compact file format: its arrays, their order, and reading them. Does not import Keras.

Every column of a matrix is stored as integers from -127 to 127 and one factor. The file contains
numbers and a JSON text, but no pickles or code.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.onlstm.gates import gate_width
from keras_onlstm.utils import Shape, StrPath
from keras_onlstm.utils.files import describe, parse_json, read_npz
from keras_onlstm.utils.validation import Integer

__all__ = [
    "ABOUT",
    "CONFIG",
    "MAX_LAYERS",
    "Columns",
    "Stored",
    "damaged",
    "layer_sizes",
    "open_stored",
    "weights_of",
]

ABOUT = "about.json"
MAX_LAYERS = 100  # per language model; a damaged file must not make Keras build more
CONFIG = {
    "vocabulary_size": Integer(1),
    "embedding_dim": Integer(1),
    "units": Integer(1),
    "num_layers": Integer(1, MAX_LAYERS),
    "chunk_size": Integer(1),
    "recurrent": str,
    "tie_weights": bool,
    "vocabulary": ([str], None),
}


class Columns(NamedTuple):
    """An 8-bit matrix, or an array of another rank.

    Attributes:
        integers: int8 (rows, columns), or the float32 values of an array that is not a matrix.
        factors: float32 (columns,), or `None`.
    """

    integers: np.ndarray
    factors: np.ndarray | None

    def values(self, rows: Any = slice(None)) -> np.ndarray:
        """Returns the array, or the given rows of it, in float32."""
        chosen = self.integers[rows]
        return chosen if self.factors is None else chosen * self.factors


class Stored(NamedTuple):
    """The contents of a compact file.

    Attributes:
        configs: list of a dictionary for each model, with the keys of `CONFIG`. All have the same
            vocabulary.
        weights: list of a list of `Columns` for each model, in the order of `weights_of`.
        several: whether the file was saved as a list of models.
        metadata: JSON-serializable object, where the models come from.
    """

    configs: list[dict[str, Any]]
    weights: list[list[Columns]]
    several: bool
    metadata: Any


def layer_sizes(config: dict[str, Any]) -> list[tuple[int, int]]:
    """Returns the sizes of a language model's layers.

    Args:
        config: with `embedding_dim`, `units`, `num_layers` and `tie_weights`.

    Returns:
        List of (input size, units), one for each layer.

    Example:

    >>> from keras_onlstm.compact.stored import layer_sizes
    >>> sizes = {"embedding_dim": 150, "units": 300, "num_layers": 3, "tie_weights": True}
    >>> layer_sizes(sizes)
    [(150, 300), (300, 300), (300, 150)]
    """
    last = config["embedding_dim" if config["tie_weights"] else "units"]
    units = [config["units"]] * (config["num_layers"] - 1) + [last]
    return list(zip([config["embedding_dim"], *units[:-1]], units, strict=True))


def weights_of(config: dict[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Lists the arrays of a language model in the order of its trainable variables in Keras.

    Args:
        config: dictionary with the keys of `CONFIG`.

    Yields:
        Pairs of a name and a shape. Each layer has `kernel`, `recurrent` and `bias`.

    Raises:
        ValueError: if the kind of layer is unknown, or `chunk_size` does not divide its units.
    """
    words, recurrent, chunk = (config[n] for n in ("vocabulary_size", "recurrent", "chunk_size"))
    if recurrent not in ("onlstm", "lstm"):
        raise ValueError(f"recurrent is 'onlstm' or 'lstm', not {recurrent!r}")
    sizes = layer_sizes(config)
    yield "embeddings", (words, config["embedding_dim"])
    if config["tie_weights"]:
        yield "softmax_bias", (words,)
    for inputs, units in sizes:
        if recurrent == "onlstm" and units % chunk:
            raise ValueError(f"chunk_size={chunk} does not divide units={units}")
        width = gate_width(units, chunk) if recurrent == "onlstm" else 4 * units
        yield "kernel", (inputs, width)
        yield "recurrent", (units, width)
        yield "bias", (width,)
    if not config["tie_weights"]:
        yield "softmax_kernel", (sizes[-1][1], words)
        yield "softmax_bias", (words,)


def open_stored(path: StrPath) -> Stored:
    """Reads a compact file.

    Args:
        path: the file.

    Returns:
        `Stored`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is damaged or has another format.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such model.")
    try:
        return _read(read_npz(path))
    except Exception as error:  # NumPy and its zip reader raise many types
        raise damaged(path, error) from error


def damaged(path: StrPath, error: Exception) -> ValueError:
    """The error for a file from which no model can be built."""
    return ValueError(
        f"{path}: not a complete model in compact form ({describe(error)}). Restore it from a copy."
    )


def _read(arrays: dict[str, np.ndarray]) -> Stored:
    found = parse_json(arrays[ABOUT].tobytes(), {"config": ([CONFIG], CONFIG), "about": object})
    several = isinstance(found["config"], list)
    configs = found["config"] if several else [found["config"]]
    if not configs:
        raise ValueError("it holds no model")
    vocabulary = {"vocabulary": configs[0]["vocabulary"]}  # not repeated for the other models
    configs = [{name: config[name] for name in CONFIG} | vocabulary for config in configs]
    words = vocabulary["vocabulary"]
    for config in configs:
        if words is not None and len(words) != config["vocabulary_size"]:
            raise ValueError(
                f"vocabulary has {len(words)} words, and vocabulary_size is "
                f"{config['vocabulary_size']}"
            )
    shapes = [[shape for _, shape in weights_of(config)] for config in configs]
    indices = itertools.count()
    weights = [[_columns(arrays, next(indices), shape) for shape in model] for model in shapes]
    return Stored(configs, weights, several, found["about"])


def _columns(arrays, index, shape):
    """Returns the weight at `index`, and checks its shape and that it is finite."""
    parts = {"integers": ("int8", shape), "factors": ("float32", shape[1:])}
    if len(shape) != 2:
        parts = {"values": ("float32", shape)}
    names = [f"{index}.{part}" for part in parts]
    for name, wanted in zip(names, parts.values(), strict=True):
        array = arrays.get(name)
        if array is None or (array.dtype, array.shape) != wanted:
            raise ValueError(f"{name} is not {wanted[0]} of shape {wanted[1]}")
    *integers, floats = (arrays[name] for name in names)
    # Then the product of a factor and an integer up to 127 is finite too.
    maximum = np.finfo("float32").max / (128 if integers else 1)
    if not (np.abs(floats) <= maximum).all():  # false for NaN
        raise ValueError(f"{' times '.join(names)} is not finite")
    return Columns(integers[0], floats) if integers else Columns(floats, None)
