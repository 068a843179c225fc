"""What a compact file holds: which arrays in which order, and reading them. No Keras.

Every column of a matrix is stored as integers from -127 to 127 and one factor. The file holds
numbers and a JSON text, no pickle and no code.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.onlstm.gates import gate_width
from keras_onlstm.utils.reading import Integer, parse_json, read_npz, reason
from keras_onlstm.utils.types import Shape, StrPath

__all__ = [
    "ABOUT",
    "CONFIG",
    "MOST_LAYERS",
    "Columns",
    "Stored",
    "damaged",
    "layer_sizes",
    "open_stored",
    "weights_of",
]

ABOUT = "about.json"
MOST_LAYERS = 100  # of a language model: a file that says more would keep Keras making layers
CONFIG = {
    "vocabulary_size": Integer(1),
    "embedding_dim": Integer(1),
    "units": Integer(1),
    "num_layers": Integer(1, MOST_LAYERS),
    "chunk_size": Integer(1),
    "recurrent": str,
    "tie_weights": bool,
    "vocabulary": ([str], None),
}


class Columns(NamedTuple):
    """A matrix of 8 bits, or any other array.

    Attributes:
        integers: int8 (rows, columns), or of an array that is no matrix its float32 values.
        factors: float32 (columns,), or `None`.
    """

    integers: np.ndarray
    factors: np.ndarray | None

    def values(self, rows: Any = slice(None)) -> np.ndarray:
        """The array in float32, or some of its rows."""
        chosen = self.integers[rows]
        return chosen if self.factors is None else chosen * self.factors


class Stored(NamedTuple):
    """What a file holds.

    Attributes:
        configs: list of dictionaries, one a model, with the names in `CONFIG`. All have the
            vocabulary.
        weights: list of lists of `Columns`, of each model, in the order of `weights_of`.
        several: whether it was saved as a list of models.
        about: JSON-serializable object.
    """

    configs: list[dict[str, Any]]
    weights: list[list[Columns]]
    several: bool
    about: Any


def layer_sizes(config: dict[str, Any]) -> list[tuple[int, int]]:
    """The sizes of a language model's layers.

    Args:
        config: with `embedding_dim`, `units`, `num_layers` and `tie_weights`.

    Returns:
        List of pairs, for each layer: the size of its inputs, and its units.

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
    """The arrays of a language model, as Keras orders its trainable variables.

    Args:
        config: with the names in `CONFIG`.

    Yields:
        Pairs of a name and a shape. Those of layers are `kernel`, `recurrent` and `bias`, layer by
        layer.

    Raises:
        ValueError: if the layers are of no kind that there is, or cannot be cut into chunks.
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
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, or no such file at all.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such model.")
    try:
        return _read(read_npz(path))
    except Exception as error:  # whatever NumPy and its zip reader raise
        raise damaged(path, error) from error


def damaged(path: StrPath, error: Exception) -> ValueError:
    """The error of a file of which no model can be made."""
    return ValueError(
        f"{path}: not a complete model in compact form ({reason(error)}). Restore it from a copy."
    )


def _read(arrays: dict[str, np.ndarray]) -> Stored:
    found = parse_json(arrays[ABOUT].tobytes(), {"config": ([CONFIG], CONFIG), "about": object})
    several = isinstance(found["config"], list)
    configs = found["config"] if several else [found["config"]]
    if not configs:
        raise ValueError("it holds no model")
    vocabulary = {"vocabulary": configs[0]["vocabulary"]}  # those of the others are left out
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
    """The weight of that index, which must have that shape and be finite."""
    parts = {"integers": ("int8", shape), "factors": ("float32", shape[1:])}
    if len(shape) != 2:
        parts = {"values": ("float32", shape)}
    names = [f"{index}.{part}" for part in parts]
    for name, wanted in zip(names, parts.values(), strict=True):
        array = arrays.get(name)
        if array is None or (array.dtype, array.shape) != wanted:
            raise ValueError(f"{name} is not {wanted[0]} of shape {wanted[1]}")
    *integers, floats = (arrays[name] for name in names)
    # The product with an integer, at most 127, is finite too.
    most = np.finfo("float32").max / (128 if integers else 1)
    if not (np.abs(floats) <= most).all():  # false for NaN
        raise ValueError(f"{' times '.join(names)} is not finite")
    return Columns(integers[0], floats) if integers else Columns(floats, None)
