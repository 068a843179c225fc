"""Conversion of a PRPN from and to the authors' state dict."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.convert.array_files import StateDict, check_inferred, variable_array
from keras_onlstm.models.prpn import PRPN

_INFERRED = (
    "vocabulary_size", "embedding_dim", "units", "num_layers", "lookback", "residual_blocks",
    "tie_weights", "reading_attention", "predict_attention",
)  # fmt: skip


def _same(array):
    return array


def _transpose(array):
    return np.ascontiguousarray(array.T)


class _Entry(NamedTuple):
    """An array of the state dict, and the variable of the `PRPN` that it belongs to."""

    name: str
    variable: Any
    to_keras: Callable[[np.ndarray], np.ndarray] = _same  # converts the order of the axes
    from_keras: Callable[[np.ndarray], np.ndarray] = _same


def _linear(name, layer, prefix=""):
    yield _Entry(f"{name}.weight", getattr(layer, f"{prefix}kernel"), _transpose, _transpose)
    yield _Entry(f"{name}.bias", getattr(layer, f"{prefix}bias"))


def _norm(name, layer):
    yield _Entry(f"{name}.weight", layer.gamma)
    yield _Entry(f"{name}.bias", layer.beta)
    yield _Entry(f"{name}.running_mean", layer.moving_mean)
    yield _Entry(f"{name}.running_var", layer.moving_variance)


def _entries(model: PRPN) -> Iterator[_Entry]:
    parsing, predict = model.parsing, model.predict_network
    yield _Entry("encoder.weight", model.embeddings)
    yield from _linear("parser.gate.1", parsing)
    yield from _norm("parser.gate.2", parsing.norm)
    yield _Entry(
        "parser.gate.5.weight",
        parsing.distance_kernel,
        lambda array: _transpose(array[..., 0]),
        lambda array: _transpose(array)[..., None],
    )
    yield _Entry("parser.gate.5.bias", parsing.distance_bias)
    for index, layer in enumerate(model.reading_network.layers):
        name = f"reader.{index}.memory_rnn"
        yield from _linear(f"{name}.ih.0", layer)
        yield from _linear(f"{name}.hh.0", layer, "recurrent_")
        for part, norm in zip(("ih.1", "hh.1", "c_norm"), layer.norms.values(), strict=True):
            yield _Entry(f"{name}.{part}.gamma", norm.gamma)
            yield _Entry(f"{name}.{part}.beta", norm.beta)
        if layer.attends:
            yield from _linear(f"reader.{index}.projector_summ.1", layer, "key_")
    if predict.key is not None:
        yield from _linear("predictor.projector_pred.1", predict.key)
    for index, (first, first_norm, second, second_norm) in enumerate(predict.blocks):
        name = f"predictor.res.res.{index}"
        yield from _linear(f"{name}.0", first)
        yield from _norm(f"{name}.1", first_norm)
        yield from _linear(f"{name}.4", second)
        yield from _norm(f"{name}.5", second_norm)
    yield from _linear("predictor.ffd.1", predict.last)
    yield from _norm("predictor.ffd.2", predict.last_norm)
    if model.softmax_kernel is not None:
        yield _Entry("decoder.weight", model.softmax_kernel)
    yield _Entry("decoder.bias", model.softmax_bias)


def _count(state, pattern):
    """Counts numbered layers or blocks: the highest number in the names plus 1."""
    matches = map(re.compile(pattern).match, state.arrays)
    return max((int(match[1]) for match in matches if match), default=-1) + 1


def prpn_from_arrays(
    arrays: Mapping[str, npt.ArrayLike],
    slots: int,
    resolution: float = 0.1,
    hard: bool = True,
    vocabulary: Sequence[str] | None = None,
    **kwargs: Any,
) -> PRPN:
    """Makes a `PRPN` with the weights of the authors' model.

    The arrays have the names and shapes of its state dict, as `prpn_to_arrays` returns them. If
    `decoder.weight` is missing or equals `encoder.weight`, weights are tied. `reading_attention`
    and `predict_attention` are true if there are weights for them.

    Source: https://github.com/yikangshen/PRPN.

    Args:
        arrays: mapping from these names to arrays of floating-point numbers.
        slots: the authors' `nslots`.
        resolution: the authors' `resolution`.
        hard: the authors' `hard`: whether gates are hard.
        vocabulary: list of V words in the order of their ids, or `None`.
        **kwargs: the dropouts, `parsing_network`, `seed`, `name` and `dtype` of `PRPN`.

    Raises:
        ValueError: if an array is missing, unknown, not finite or of a wrong shape or dtype.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models.prpn import PRPN
    >>> model = PRPN(20, embedding_dim=8, units=6, slots=3, lookback=2)
    >>> model.build()
    >>> convert.prpn_from_arrays(convert.prpn_to_arrays(model), slots=3).get_config()["lookback"]
    2
    """
    check_inferred(kwargs, _INFERRED)
    state = StateDict(arrays, "PRPN")
    words, size = state.shape("encoder.weight", ("V", "E"))
    units, _, width = state.shape("parser.gate.1.weight", ("U", size, "L + 1"))
    decoder = state.arrays.get("decoder.weight")
    if decoder is not None and np.array_equal(decoder, state.arrays["encoder.weight"]):
        decoder = None
        del state.arrays["decoder.weight"]
    model = PRPN(
        words,
        size,
        units,
        max(_count(state, r"reader\.(\d{1,3})\."), 1),
        slots,
        width - 1,
        resolution,
        hard,
        _count(state, r"predictor\.res\.res\.(\d{1,3})\."),
        decoder is None,
        reading_attention="reader.0.projector_summ.1.weight" in state,
        predict_attention="predictor.projector_pred.1.weight" in state,
        vocabulary=vocabulary,
        **kwargs,
    )
    model.build()
    values = []
    for entry in _entries(model):
        shape = entry.from_keras(np.empty(entry.variable.shape, "float32")).shape
        values.append(entry.to_keras(state.pop(entry.name, shape)))
    state.check_empty()
    for entry, value in zip(_entries(model), values, strict=True):
        entry.variable.assign(value)
    return model


def prpn_to_arrays(model: PRPN) -> dict[str, np.ndarray]:
    """Converts the weights of a built `PRPN` to the authors' state dict.

    The inverse of `prpn_from_arrays`. Tied models have no `decoder.weight`.
    """
    if not model.built:
        raise ValueError("The model has no weights yet. Call model.build() first.")
    return {e.name: e.from_keras(variable_array(e.variable)) for e in _entries(model)}
