"""Noise-contrastive estimation: trains a softmax over many words without computing it."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_onlstm.utils import Tensor
from keras_onlstm.utils.numerics import embedding_lookup
from keras_onlstm.utils.validation import check_integer

_LEARNT = ("ln_z", "z", None)


def _alias_table(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The alias table: the share that each index keeps, and the index that gets the rest."""
    count = len(probabilities)
    shares, aliases = probabilities * count, np.arange(count)
    small = np.flatnonzero(shares < 1.0).tolist()
    large = np.flatnonzero(shares >= 1.0).tolist()
    while small and large:
        index, alias = small.pop(), large[-1]
        aliases[index] = alias
        shares[alias] -= 1.0 - shares[index]
        if shares[alias] < 1.0:
            small.append(large.pop())
    shares[small + large] = 1.0  # up to rounding
    return shares, aliases


class NoiseContrastive(keras.layers.Layer):
    """The loss of telling a word from `k` noise words.

    A word w is not noise with probability P / (P + k Q), where P = exp(kernel[w] . h) / Z, and Q is
    the noise distribution, word frequencies to the power `power`. Z is one number for all contexts,
    learned or constant. Evaluate the trained model with its full softmax. Calls return (N,) losses,
    in nats, from hidden states (N, U), the kernel (V, U) of the softmax, target ids (N,) and noise
    ids (N, k) from `draw`. `distribution`, (V,) float64, is that of the noise.

    Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 2.5,
    https://aclanthology.org/N16-1035; Mnih and Teh 2012, https://arxiv.org/abs/1206.6426.

    Args:
        counts: V positive numbers, occurrences of each word in the training text.
        k: positive integer, noise words per word.
        power: number, the exponent of the counts.
        ln_z: number, the initial logarithm of Z.
        learn: `"ln_z"`; `"z"`, as in the published code, where a step at a learning rate of 1
            hardly changes it; or `None` for a constant Z.
        **kwargs: `name`, `dtype` of `keras.layers.Layer`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive
    >>> estimation = NoiseContrastive([8, 1, 1], k=5)
    >>> estimation.draw(4, np.random.default_rng(0)).shape
    (4, 5)
    """

    def __init__(
        self,
        counts: Sequence[float] | npt.NDArray,
        k: int = 20,
        power: float = 0.75,
        ln_z: float = 9.0,
        learn: str | None = "ln_z",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if learn not in _LEARNT:
            raise ValueError(f"learn must be 'ln_z', 'z' or None, not {learn!r}.")
        counts = np.asarray(counts, "float64")
        wrong = np.flatnonzero(~(counts > 0.0) | ~np.isfinite(counts))
        if counts.ndim != 1 or not len(counts) or len(wrong):
            index = int(wrong[0]) if len(wrong) else 0
            raise ValueError(
                f"counts: word {index} has {counts.ravel()[index : index + 1].tolist()}; every "
                "word needs a count above 0, in a list."
            )
        self.k, self.learn = check_integer("k", k), learn
        weighted = (counts / counts.max()) ** power
        self.distribution = weighted / weighted.sum()
        self._table = _alias_table(self.distribution)
        initial = math.exp(ln_z) if learn == "z" else ln_z
        self.constant = self.add_weight(
            shape=(),
            # Keras's `Constant` rounds to float32.
            initializer=lambda shape, dtype=None: ops.convert_to_tensor(np.array(initial), dtype),
            trainable=learn is not None,
            name=learn or "ln_z",
        )
        self.built = True

    def draw(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draws noise words (count, k), int32, with the alias method."""
        shares, aliases = self._table
        indices = generator.integers(len(shares), size=(count, self.k))
        keeps = generator.random(indices.shape) < shares[indices]
        return np.where(keeps, indices, aliases[indices]).astype("int32")

    def call(self, hidden: Tensor, kernel: Tensor, targets: Tensor, noise: Tensor) -> Tensor:
        constant = ops.convert_to_tensor(self.constant, dtype=hidden.dtype)
        ln_z = ops.log(constant) if self.learn == "z" else constant
        expected = ops.convert_to_tensor(np.log(self.k * self.distribution), dtype=hidden.dtype)
        words = ops.concatenate([ops.expand_dims(targets, -1), noise], -1)  # (N, 1 + k)
        rows = embedding_lookup(kernel, words)  # (N, 1 + k, U)
        scores = ops.sum(rows * ops.expand_dims(hidden, 1), -1) - ln_z
        # ln P - ln (k Q): the logit of not being noise.
        logits = scores - ops.take(expected, words, axis=0)
        return ops.softplus(-logits[:, 0]) + ops.sum(ops.softplus(logits[:, 1:]), -1)
