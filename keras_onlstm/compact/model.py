"""Distances of compact language models, computed with NumPy, without Keras or a backend.

The equations are those of `keras_onlstm.onlstm.step`, in float32.
"""

from typing import Any

import numpy as np

from keras_onlstm.compact.stored import Stored, weights_of
from keras_onlstm.onlstm.gates import GATES, LSTM_GATES, MASTER_GATES, gate_offsets, lstm_offset
from keras_onlstm.text.sentences import DistanceModel, read

__all__ = ["CompactModel"]

_BATCH = 64  # sentences per batch: large products that fit into the cache


class CompactModel(DistanceModel):
    """The language models of a compact file; computes distances without Keras.

    Args:
        stored: result of `keras_onlstm.compact.stored.open_stored` for ON-LSTM models.

    Attributes:
        gates: tuple of the names of the gates that have distances.
        vocabulary: list of words, or `None`.
        num_layers: integer, total number of layers of all models.
        layers_per_model: tuple of the number of layers of each model.

    Example:

    >>> from keras_onlstm.compact.model import CompactModel
    >>> from keras_onlstm.compact.stored import open_stored
    >>> from keras_onlstm.loading import SHIPPED
    >>> model = CompactModel(open_stored(SHIPPED))
    >>> model.distances(["prices fell"])[0].shape
    (15, 2)
    """

    gates = ("forget", "input")

    def __init__(self, stored: Stored) -> None:
        self.vocabulary = stored.configs[0]["vocabulary"]
        self.layers_per_model = tuple(config["num_layers"] for config in stored.configs)
        self._models = [_Model(*both) for both in zip(stored.configs, stored.weights, strict=True)]

    def _measured(self, sentences, gates):
        places = [MASTER_GATES.index(f"master_{name}") for name in gates]

        def measure(ids, lengths):
            measured = np.concatenate([model.measure(ids) for model in self._models])
            batch, time = ids.shape
            # (layers, T, B, gates) -> (B, layers of all gates, T)
            return measured.transpose(2, 3, 0, 1)[:, places].reshape(batch, -1, time)

        return read(sentences, self._encoding(), measure, _BATCH)


class _Model:
    """One of the language models."""

    def __init__(self, config: dict[str, Any], weights: list) -> None:
        named = list(zip((name for name, _ in weights_of(config)), weights, strict=True))
        self._embeddings = dict(named)["embeddings"]
        parts = ("kernel", "recurrent", "bias")
        of_layers = iter([weight.values() for name, weight in named if name in parts])
        self._layers = [
            _Layer(*arrays, config["chunk_size"])
            for arrays in zip(of_layers, of_layers, of_layers, strict=True)
        ]

    def measure(self, ids: np.ndarray) -> np.ndarray:
        """Ids (B, T) -> distances (layers, T, B, gates), gates ordered as `MASTER_GATES`."""
        x = self._embeddings.values(ids.T)  # (T, B, E)
        measured = []
        for layer in self._layers:
            x, distances = layer.read(x)
            measured.append(distances)
        return np.stack(measured)


class _Layer:
    """An ON-LSTM layer. One tanh computes all gates, as sigmoid(x) = (1 + tanh(x / 2)) / 2."""

    def __init__(
        self, kernel: np.ndarray, recurrent: np.ndarray, bias: np.ndarray, chunk_size: int
    ) -> None:
        self.units, self.chunk_size = len(recurrent), chunk_size
        offsets = gate_offsets(self.units, chunk_size)
        scale = np.ones_like(bias)
        for name in ("output", "input", "forget"):
            scale[offsets[name]] = 0.5
        self._kernel, self._recurrent, self._bias = kernel * scale, recurrent * scale, bias * scale
        self._masters = slice(offsets[GATES[0]].start, offsets[MASTER_GATES[-1]].stop)
        self._others = lstm_offset(self.units, chunk_size)

    def read(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (T, B, D) -> outputs (T, B, U) and distances (T, B, gates)."""
        time, batch, size = x.shape
        chunks = self.units // self.chunk_size
        shape = (batch, chunks, self.chunk_size)
        projected = x.reshape(-1, size) @ self._kernel
        projected += self._bias
        projected = projected.reshape(time, batch, -1)
        outputs = np.empty((time, batch, self.units), "float32")
        rises = np.empty((time, batch, len(MASTER_GATES), chunks), "float32")
        i_rise, f_rise = (MASTER_GATES.index(f"master_{name}") for name in ("input", "forget"))
        c = np.zeros(shape, "float32")  # (B, N, C)
        for step, z in enumerate(projected):  # (B, K)
            if step:
                z += outputs[step - 1] @ self._recurrent
            pre = z[:, self._masters].reshape(rises.shape[1:])
            sums = np.exp(pre - pre.max(-1, keepdims=True)).cumsum(-1)
            rise = np.divide(sums, sums[..., -1:], out=rises[step])  # cumax
            f_master = rise[:, f_rise, :, None]  # (B, N, 1)
            i_master = 1.0 - rise[:, i_rise, :, None]
            half = 0.5 * f_master * i_master  # half the overlap of the master gates
            tanh = np.tanh(z[:, self._others]).reshape(batch, len(LSTM_GATES), *shape[1:])
            gates = dict(zip(LSTM_GATES, tanh.swapaxes(0, 1), strict=True))  # (B, N, C)
            c *= gates["forget"] * half + (f_master - half)
            c += gates["candidate"] * (gates["input"] * half + (i_master - half))
            h = np.tanh(c)
            h *= 0.5 * gates["output"] + 0.5
            outputs[step] = h.reshape(batch, -1)
        return outputs, 1.0 - rises.mean(-1)
