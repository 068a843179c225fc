"""Language models with 8-bit weights: their file format, and distances computed with NumPy.

Each column of a matrix is stored as integers from -127 to 127 and one factor. A file contains
numbers and JSON, no pickles or code. Nothing here imports Keras.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.onlstm.gates import (
    GATES,
    LSTM_GATES,
    MASTER_GATES,
    gate_offsets,
    gate_width,
    lstm_offset,
)
from keras_onlstm.text.sentences import DistanceModel, in_batches
from keras_onlstm.utils import Shape, StrPath
from keras_onlstm.utils.files import describe, parse_json, read_npz
from keras_onlstm.utils.validation import Integer

METADATA = "about.json"  # name of the array with the configuration and the metadata
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
_BATCH = 64  # sentences per batch: large products that fit into the cache


class Weight(NamedTuple):
    """A matrix of int8 with a factor per column, or a float32 array of another rank."""

    array: np.ndarray
    factors: np.ndarray | None  # (columns,)

    def values(self, rows: Any = slice(None)) -> np.ndarray:
        """The array, or the selected rows of it, in float32."""
        selected = self.array[rows]
        return selected if self.factors is None else selected * self.factors


class CompactFile(NamedTuple):
    """The contents of a compact file."""

    configs: list[dict[str, Any]]  # one per model, with the keys of CONFIG and equal vocabularies
    weights: list[list[Weight]]  # one list per model, in the order of `weight_shapes`
    is_ensemble: bool  # whether the file has a list of models
    metadata: Any


def layer_sizes(config: dict[str, Any]) -> list[tuple[int, int]]:
    """The input size and the units of each layer of a language model."""
    last = config["embedding_dim" if config["tie_weights"] else "units"]
    units = [config["units"]] * (config["num_layers"] - 1) + [last]
    return list(zip([config["embedding_dim"], *units[:-1]], units, strict=True))


def weight_shapes(config: dict[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Yields names and shapes of a model's arrays, in the order of Keras's trainable variables."""
    words, recurrent, chunk = (config[n] for n in ("vocabulary_size", "recurrent", "chunk_size"))
    if recurrent not in ("onlstm", "lstm"):
        raise ValueError(f"recurrent must be 'onlstm' or 'lstm', got {recurrent!r}")
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


def read_compact(path: StrPath) -> CompactFile:
    """Reads and checks a compact file; raises `ValueError` if it is damaged."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: the file does not exist.")
    try:
        return _contents(read_npz(path))
    except Exception as error:  # NumPy and its zip reader raise many types
        raise damaged(path, error) from error


def damaged(path: StrPath, error: Exception) -> ValueError:
    """The error for a file from which no model can be built."""
    return ValueError(f"{path}: not a complete model ({describe(error)}). Restore it from a copy.")


def _contents(arrays: dict[str, np.ndarray]) -> CompactFile:
    header = parse_json(arrays[METADATA].tobytes(), {"config": ([CONFIG], CONFIG), "about": object})
    is_ensemble = isinstance(header["config"], list)
    headers = header["config"] if is_ensemble else [header["config"]]
    if not headers:
        raise ValueError("it contains no model")
    words = headers[0]["vocabulary"]  # not repeated for the other models
    configs = [{name: c[name] for name in CONFIG} | {"vocabulary": words} for c in headers]
    indices, weights = itertools.count(), []
    for config in configs:
        size = config["vocabulary_size"]
        if words is not None and len(words) != size:
            raise ValueError(f"vocabulary has {len(words)} words, but vocabulary_size is {size}")
        shapes = [shape for _, shape in weight_shapes(config)]
        weights.append([_weight(arrays, next(indices), shape) for shape in shapes])
    return CompactFile(configs, weights, is_ensemble, header["about"])


def _weight(arrays, index, shape):
    """Returns the weight at `index`, and checks its shape and that it is finite."""
    parts = {f"{index}.integers": ("int8", shape), f"{index}.factors": ("float32", shape[1:])}
    if len(shape) != 2:
        parts = {f"{index}.values": ("float32", shape)}
    for name, expected in parts.items():
        array = arrays.get(name)
        if array is None or (array.dtype, array.shape) != expected:
            raise ValueError(f"{name} is not {expected[0]} of shape {expected[1]}")
    *integers, floats = (arrays[name] for name in parts)
    # With this limit, the product of a factor and an integer up to 127 is finite too.
    maximum = np.finfo("float32").max / (128 if integers else 1)
    if not (np.abs(floats) <= maximum).all():  # false for NaN
        raise ValueError(f"{' times '.join(parts)} is not finite")
    return Weight(integers[0], floats) if integers else Weight(floats, None)


class CompactModel(DistanceModel):
    """The ON-LSTM language models of a compact file; computes distances without Keras."""

    gates = ("forget", "input")

    def __init__(self, contents: CompactFile) -> None:
        self.vocabulary = contents.configs[0]["vocabulary"]
        self.layers_per_model = tuple(config["num_layers"] for config in contents.configs)
        self._models = list(map(_LanguageModel, contents.configs, contents.weights))

    def _measured(self, sentences, gates):
        indices = [MASTER_GATES.index(f"master_{name}") for name in gates]

        def measure(ids, lengths):
            distances = np.concatenate([model.distances(ids) for model in self._models])
            batch, time = ids.shape
            # (layers, T, B, gates) -> (B, layers of all gates, T)
            return distances.transpose(2, 3, 0, 1)[:, indices].reshape(batch, -1, time)

        return in_batches(sentences, self._encoding(), measure, _BATCH)


class _LanguageModel:
    """A language model without its softmax."""

    def __init__(self, config: dict[str, Any], weights: list[Weight]) -> None:
        self._embeddings = weights[0]
        first = 2 if config["tie_weights"] else 1  # the order of `weight_shapes`
        self._layers = [
            _Layer(config["chunk_size"], *(weight.values() for weight in weights[i : i + 3]))
            for i in range(first, first + 3 * config["num_layers"], 3)
        ]

    def distances(self, ids: np.ndarray) -> np.ndarray:
        """Ids (B, T) -> distances (layers, T, B, gates), gates ordered as `MASTER_GATES`."""
        x = self._embeddings.values(ids.T)  # (T, B, E)
        distances = []
        for layer in self._layers:
            x, layer_distances = layer(x)
            distances.append(layer_distances)
        return np.stack(distances)


class _Layer:
    """An ON-LSTM layer in float32, with the equations of `keras_onlstm.onlstm.step`.

    One tanh computes all gates of the LSTM, because sigmoid(x) = (1 + tanh(x / 2)) / 2.
    """

    def __init__(self, chunk_size, kernel, recurrent, bias):
        self.units, self.chunk_size = len(recurrent), chunk_size
        offsets = gate_offsets(self.units, chunk_size)
        scale = np.ones_like(bias)
        for name in ("output", "input", "forget"):
            scale[offsets[name]] = 0.5
        self._kernel, self._recurrent, self._bias = kernel * scale, recurrent * scale, bias * scale
        self._master_columns = slice(offsets[GATES[0]].start, offsets[MASTER_GATES[-1]].stop)
        self._lstm_columns = lstm_offset(self.units, chunk_size)

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (T, B, D) -> outputs (T, B, U) and distances (T, B, gates)."""
        time, batch, size = x.shape
        chunks = self.units // self.chunk_size
        shape = (batch, chunks, self.chunk_size)
        projected = x.reshape(-1, size) @ self._kernel
        projected += self._bias
        projected = projected.reshape(time, batch, -1)
        outputs = np.empty((time, batch, self.units), "float32")
        cumax = np.empty((time, batch, len(MASTER_GATES), chunks), "float32")
        i_index, f_index = (MASTER_GATES.index(f"master_{name}") for name in ("input", "forget"))
        c = np.zeros(shape, "float32")  # (B, N, C)
        for step, z in enumerate(projected):  # (B, K)
            if step:
                z += outputs[step - 1] @ self._recurrent
            logits = z[:, self._master_columns].reshape(cumax.shape[1:])  # (B, gates, N)
            sums = np.exp(logits - logits.max(-1, keepdims=True)).cumsum(-1)
            masters = np.divide(sums, sums[..., -1:], out=cumax[step])
            f_master = masters[:, f_index, :, None]  # (B, N, 1)
            i_master = 1.0 - masters[:, i_index, :, None]
            half = 0.5 * f_master * i_master  # half the overlap of the master gates
            tanh = np.tanh(z[:, self._lstm_columns]).reshape(batch, len(LSTM_GATES), *shape[1:])
            gates = dict(zip(LSTM_GATES, tanh.swapaxes(0, 1), strict=True))  # (B, N, C)
            c *= gates["forget"] * half + (f_master - half)
            c += gates["candidate"] * (gates["input"] * half + (i_master - half))
            h = np.tanh(c)
            h *= 0.5 * gates["output"] + 0.5
            outputs[step] = h.reshape(batch, -1)
        return outputs, 1.0 - cumax.mean(-1)
