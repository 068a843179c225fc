"""Where the weights of a model start, so that it learns from its first steps on.

What stands in the way are the frequencies of words. A softmax that starts without them has to learn
them first, and where it shares its matrix with the embedding it learns them there: all word vectors
get one component that says how frequent a word is, it outgrows everything else they say, and the
gates see nothing but it for hundreds of steps. So the bias of the softmax starts at the logarithms
of the frequencies, and the matrix is left to what follows what.

What is small is multiplied by what is small: with word vectors within 0.1 and kernels of
1 / sqrt(fan in) the gates of the first layer move by 0.03, those of the third by 0.003. So input
kernels start at the scale at which the pre-activations of the gates have a standard deviation of
0.25 in the first layer and about 0.14 and 0.09 in those above it, whatever the size of the layer
and of what it reads. The rule is the same for ON-LSTM and LSTM.

So much for `"scaled"`. `"published"` is word vectors within 0.1, all else within 1 / sqrt(fan in),
and no frequencies.

docs/results.md has what was compared.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_onlstm.onlstm.step import gate_offsets
from keras_onlstm.utils.reading import STARTS
from keras_onlstm.utils.types import DType, Tensor

__all__ = [
    "GateUniform",
    "check",
    "copy_weights",
    "embedding",
    "fan_in",
    "kernels",
    "log_frequencies",
    "prpn_embedding",
]

EMBEDDING = 0.1  # word vectors are within this
PREACTIVATION = 0.25  # standard deviation that the input kernel gives the first layer's gates
MASTER = 0.2  # how much less those of the master gates move
# Root mean square of a layer's output, from which the kernels of the layer above get their scale.
# Measured on a layer whose gates move twice as much, so that each layer starts calmer than the one
# below it. It depends neither on the layer's size nor on its chunks.
OUTPUT = {"onlstm": 0.107, "lstm": 0.15}


def _uniform(bound, seed):
    return keras.initializers.RandomUniform(-bound, bound, seed=seed)


def check(start: str) -> None:
    """Refuses what is not one of `STARTS.values`."""
    if start not in STARTS.values:
        raise ValueError(f"start is 'scaled' or 'published', not {start!r}.")


def embedding(seed: int | None = None) -> keras.initializers.Initializer:
    """The initializer of word vectors."""
    return _uniform(EMBEDDING, seed)


def prpn_embedding(start: str, seed: int | None = None) -> keras.initializers.Initializer:
    """The initializer of PRPN's word vectors, for one of `STARTS.values`."""
    return embedding(seed) if start == "scaled" else _uniform(0.01, seed)


def fan_in(size: int, seed: int | None = None) -> keras.initializers.Initializer:
    """The initializer of PyTorch's recurrent layers, uniform within 1 / sqrt(size)."""
    return _uniform(size**-0.5, seed)


@keras.saving.register_keras_serializable(package="keras_onlstm")
class GateUniform(keras.initializers.Initializer):
    """Uniform numbers for the kernels of ON-LSTM, smaller ones for the master gates.

    Args:
        bound: number; those of the other gates are within it.
        master: the share of it within which those of the master gates are.
        units: positive integer, of the layer.
        chunk_size: positive integer, likewise.
        seed: integer or `None`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models.starts import GateUniform
    >>> kernel = np.asarray(GateUniform(1.0, 0.1, units=6, chunk_size=3, seed=0)((50, 28)))
    >>> print(f"{np.abs(kernel[:, :4]).max():.1f} {np.abs(kernel[:, 4:]).max():.1f}")
    0.1 1.0
    """

    def __init__(
        self, bound: float, master: float, units: int, chunk_size: int, seed: int | None = None
    ) -> None:
        self.bound, self.master = bound, master
        self.units, self.chunk_size, self.seed = units, chunk_size, seed
        self._draw = _uniform(bound, seed)

    def __call__(self, shape: Sequence[int], dtype: DType | None = None) -> Tensor:
        scale = np.ones(shape[-1])
        for name, place in gate_offsets(self.units, self.chunk_size).items():
            if name.startswith("master"):
                scale[place] = self.master
        return self._draw(shape, dtype) * keras.ops.cast(scale, dtype or keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "master": self.master,
            "units": self.units,
            "chunk_size": self.chunk_size,
            "seed": self.seed,
        }


def kernels(
    start: str,
    recurrent: str,
    size: int,
    units: int,
    chunk_size: int,
    reads_words: bool,
    seeds: Sequence[int | None],
) -> Sequence[keras.initializers.Initializer]:
    """The initializers of a recurrent layer's two kernels.

    Args:
        start: one of `STARTS.values`.
        recurrent: `"onlstm"` or `"lstm"`.
        size: positive integer, how many numbers the layer reads at a step.
        units: positive integer, of the layer.
        chunk_size: positive integer, of an ON-LSTM.
        reads_words: whether it reads word vectors of `embedding`, or the output of such a layer.
        seeds: two integers or `None`, of the input kernel and of the recurrent one.

    Returns:
        Two `keras.initializers.Initializer`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.models import starts
    >>> words = np.asarray(starts.embedding(seed=0)((1000, 50)))
    >>> drawn, _ = starts.kernels("scaled", "lstm", 50, 100, None, True, seeds=(1, 2))
    >>> print(f"{np.std(words @ np.asarray(drawn((50, 400)))):.2f}")
    0.25
    """
    if start == "published":
        return fan_in(size, seeds[0]), fan_in(units, seeds[1])
    rms = EMBEDDING / 3**0.5 if reads_words else OUTPUT[recurrent]  # uniform numbers have 1/3
    bounds = PREACTIVATION * (3 / size) ** 0.5 / rms, units**-0.5
    if recurrent == "lstm":
        return [_uniform(bound, seed) for bound, seed in zip(bounds, seeds, strict=True)]
    return [
        GateUniform(bound, MASTER, units, chunk_size, seed)
        for bound, seed in zip(bounds, seeds, strict=True)
    ]


def log_frequencies(counts: npt.ArrayLike) -> np.ndarray:
    """The bias (V,) with which a softmax predicts words by their counts, plus one each."""
    counts = np.asarray(counts, "float64")
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("counts are numbers from 0 on, in one axis: how often each word occurs.")
    logarithms = np.log(counts + 1.0)
    return (logarithms - logarithms.mean()).astype("float32")


def copy_weights(model: Any, other: Any) -> None:
    """Gives a model the weights of another one of the same kind, sizes and vocabulary."""
    if other.title != model.title:
        raise ValueError(f"a model of {model.title} cannot start from one of {other.title}.")
    if other.vocabulary != model.vocabulary:
        raise ValueError("a model cannot start from one with another vocabulary.")
    for each in (model, other):
        if not each.built:
            each.build()
    if [x.shape for x in other.weights] != [x.shape for x in model.weights]:
        old, new = other.get_config(), model.get_config()
        sizes = ", ".join(
            f"{name} {old[name]}, not {new[name]}"
            for name in new
            if isinstance(new[name], int) and old[name] != new[name] and name != "seed"
        )
        raise ValueError(f"the model to start from has {sizes}. Change them with flags.")
    model.set_weights(other.get_weights())
