"""Initialization of a model's weights, so that it learns from its first steps on.

A softmax that shares its matrix with the embedding first learns the frequencies of words: all word
vectors get one large component, and for hundreds of steps the gates see only that. So the bias of
the softmax is initialized with the log-frequencies.

Input kernels are scaled to give the pre-activations of the gates a standard deviation of 0.25 in
the first layer and about 0.14 and 0.09 in those above it, for all sizes, and for ON-LSTM and LSTM.

This is `"scaled"`. With `"published"`, word vectors are within 0.1, all else within 1 / sqrt(fan
in), and frequencies are not used. docs/experiments/language_models.md has the comparison.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_onlstm.onlstm.gates import gate_offsets
from keras_onlstm.utils import DType, Tensor

EMBEDDING = 0.1  # bound of word vectors
PREACTIVATION = 0.25  # standard deviation of the first layer's gate pre-activations
MASTER = 0.2  # scale of the kernels' master-gate columns
# Root mean square of a layer's output, which sets the scale of the kernels of the layer above.
# Measured on a layer whose gates move twice as much, so that the gates of each layer move less than
# those below. It depends neither on the layer's size nor on its chunks.
OUTPUT = {"onlstm": 0.107, "lstm": 0.15}


def _uniform(bound, seed):
    return keras.initializers.RandomUniform(-bound, bound, seed=seed)


def embedding(seed: int | None = None) -> keras.initializers.Initializer:
    """The initializer of word vectors."""
    return _uniform(EMBEDDING, seed)


def prpn_embedding(initialization: str, seed: int | None = None) -> keras.initializers.Initializer:
    """The initializer of PRPN's word vectors, for one of `INITIALIZATIONS.values`."""
    return embedding(seed) if initialization == "scaled" else _uniform(0.01, seed)


def fan_in(size: int, seed: int | None = None) -> keras.initializers.Initializer:
    """The initializer of PyTorch's recurrent layers, uniform within 1 / sqrt(size)."""
    return _uniform(size**-0.5, seed)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class GateUniform(keras.initializers.Initializer):
    """Uniform initializer of ON-LSTM kernels, smaller for the master gates.

    Weights are within `bound`, those of the master gates within `bound * master`.
    """

    def __init__(
        self, bound: float, master: float, units: int, chunk_size: int, seed: int | None = None
    ) -> None:
        self.bound, self.master = bound, master
        self.units, self.chunk_size, self.seed = units, chunk_size, seed
        self._uniform = _uniform(bound, seed)

    def __call__(self, shape: Sequence[int], dtype: DType | None = None) -> Tensor:
        scale = np.ones(shape[-1])
        for name, columns in gate_offsets(self.units, self.chunk_size).items():
            if name.startswith("master"):
                scale[columns] = self.master
        return self._uniform(shape, dtype) * keras.ops.cast(scale, dtype or keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        names = ("bound", "master", "units", "chunk_size", "seed")
        return {name: getattr(self, name) for name in names}


def kernels(
    initialization: str,
    recurrent: str,
    size: int,
    units: int,
    chunk_size: int,
    reads_words: bool,
    seeds: Sequence[int | None],
) -> Sequence[keras.initializers.Initializer]:
    """The initializers of the input kernel and the recurrent kernel of a layer.

    `reads_words` is whether the inputs of `size` features are word vectors, or the outputs of the
    layer below.
    """
    if initialization == "published":
        return fan_in(size, seeds[0]), fan_in(units, seeds[1])
    rms = EMBEDDING / 3**0.5 if reads_words else OUTPUT[recurrent]  # uniform: bound / sqrt(3)
    bounds = PREACTIVATION * (3 / size) ** 0.5 / rms, units**-0.5
    if recurrent == "lstm":
        return list(map(_uniform, bounds, seeds))
    return [
        GateUniform(bound, MASTER, units, chunk_size, seed)
        for bound, seed in zip(bounds, seeds, strict=True)
    ]


def log_frequencies(counts: npt.ArrayLike) -> np.ndarray:
    """The bias (V,) of a softmax that predicts words in proportion to their counts plus one."""
    counts = np.asarray(counts, "float64")
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("counts must be a list of numbers, 0 or above: occurrences of each word.")
    logarithms = np.log(counts + 1.0)
    return (logarithms - logarithms.mean()).astype("float32")


def copy_weights(model: Any, source: Any) -> None:
    """Copies the weights of `source` to `model`, of the same kind, sizes and vocabulary."""
    if source.title != model.title:
        raise ValueError(f"The initial model must be of kind {model.title}, got {source.title}.")
    if source.vocabulary != model.vocabulary:
        raise ValueError("The initial model must have the same vocabulary.")
    for unbuilt in (m for m in (model, source) if not m.built):
        unbuilt.build()
    if [x.shape for x in source.weights] != [x.shape for x in model.weights]:
        old, new = source.get_config(), model.get_config()
        sizes = ", ".join(
            f"{name} {old[name]}, not {new[name]}"
            for name in new
            if isinstance(new[name], int) and old[name] != new[name] and name != "seed"
        )
        raise ValueError(f"The initial model has {sizes}. Change these sizes with flags.")
    model.set_weights(source.get_weights())
