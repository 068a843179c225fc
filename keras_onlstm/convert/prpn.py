"""Conversion of a PRPN from and to the authors' state dict."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.convert.array_files import stored, take, unknown
from keras_onlstm.models.prpn import PRPN

__all__ = ["prpn_from_arrays", "prpn_to_arrays"]

_WHOLE = "PRPN"  # the authors' class
_INFERRED = (
    *("vocabulary_size", "embedding_dim", "units", "num_layers", "lookback"),
    *("residual_blocks", "tie_weights", "reading_attention", "predict_attention"),
)


class _Place(NamedTuple):
    """The variable of a `PRPN` for an array of the state dict."""

    name: str
    variable: Any
    to_keras: Callable[[np.ndarray], np.ndarray]  # from the axes of the authors
    from_keras: Callable[[np.ndarray], np.ndarray]


def _same(array):
    return array


def _every_axis(array):
    return np.ascontiguousarray(array.T)


def _linear(name, layer, prefix=""):
    yield _Place(f"{name}.weight", getattr(layer, f"{prefix}kernel"), _every_axis, _every_axis)
    yield _Place(f"{name}.bias", getattr(layer, f"{prefix}bias"), _same, _same)


def _norm(name, layer):
    stored = ("running_mean", layer.moving_mean), ("running_var", layer.moving_variance)
    for part, variable in (("weight", layer.gamma), ("bias", layer.beta), *stored):
        yield _Place(f"{name}.{part}", variable, _same, _same)


def _places(model: PRPN) -> Iterator[_Place]:
    parsing, predict = model.parsing, model.predict_network
    yield _Place("encoder.weight", model.embeddings, _same, _same)
    yield from _linear("parser.gate.1", parsing)
    yield from _norm("parser.gate.2", parsing.norm)
    yield _Place(
        "parser.gate.5.weight",
        parsing.distance_kernel,
        lambda array: _every_axis(array[..., 0]),
        lambda array: _every_axis(array)[..., None],
    )
    yield _Place("parser.gate.5.bias", parsing.distance_bias, _same, _same)
    for index, layer in enumerate(model.reading_network.layers):
        name = f"reader.{index}.memory_rnn"
        yield from _linear(f"{name}.ih.0", layer)
        yield from _linear(f"{name}.hh.0", layer, "recurrent_")
        for theirs, norm in zip(("ih.1", "hh.1", "c_norm"), layer.norms.values(), strict=True):
            yield _Place(f"{name}.{theirs}.gamma", norm.gamma, _same, _same)
            yield _Place(f"{name}.{theirs}.beta", norm.beta, _same, _same)
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
        yield _Place("decoder.weight", model.softmax_kernel, _same, _same)
    yield _Place("decoder.bias", model.softmax_bias, _same, _same)


def _numbers(arrays, pattern):
    """Counts numbered layers or blocks: the highest number in the names plus 1."""
    found = [int(match[1]) for match in map(re.compile(pattern).match, arrays) if match]
    return max(found, default=-1) + 1


def prpn_from_arrays(
    arrays: Mapping[str, npt.ArrayLike],
    slots: int,
    resolution: float = 0.1,
    hard: bool = True,
    vocabulary: Sequence[str] | None = None,
    **kwargs: Any,
) -> PRPN:
    """Makes a `PRPN` with the weights of the authors' model.

    The arrays have the names and shapes of its state dict, including the `running_mean` and
    `running_var` of batch normalization. With V words, word vectors of E features, U units and
    look-back L: `encoder.weight` (V, E); `parser.gate.1.weight` (U, E, L + 1); for every reading
    layer i `reader.i.memory_rnn.ih.0.weight` (4 U, size of its input) and so on. `prpn_to_arrays`
    returns all of them.

    If `decoder.weight` is missing or equals `encoder.weight`, weights are tied.
    `reading_attention` and `predict_attention` are true if there are weights for them.

    Source: https://github.com/yikangshen/PRPN.

    Args:
        arrays: mapping from these names to arrays of floating-point numbers.
        slots: integer, the authors' `nslots`.
        resolution: number, the authors' `resolution`.
        hard: whether gates are hard, the authors' `hard`.
        vocabulary: list of V words in the order of their ids, or `None`.
        **kwargs: the dropouts, `parsing_network`, `seed`, `name` and `dtype` of `PRPN`.

    Returns:
        The `PRPN`, built.

    Raises:
        ValueError: if an array is missing, unknown, of another shape, not of floating point or not
            finite; the message names the array.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models.prpn import PRPN
    >>> model = PRPN(20, embedding_dim=8, units=6, slots=3, lookback=2)
    >>> model.build()
    >>> again = convert.prpn_from_arrays(convert.prpn_to_arrays(model), slots=3)
    >>> again.get_config()["lookback"]
    2
    """
    for name in _INFERRED:
        if name in kwargs:
            raise ValueError(f"{name} follows from the arrays: leave it out.")
    left = {str(name): array for name, array in arrays.items()}
    words, size = take(dict(left), "encoder.weight", ("V", "E"), _WHOLE).shape
    kernel = take(dict(left), "parser.gate.1.weight", ("U", size, "L + 1"), _WHOLE)
    decoder = left.get("decoder.weight")
    if decoder is not None and np.array_equal(decoder, left["encoder.weight"]):
        decoder = None
        del left["decoder.weight"]
    model = PRPN(
        words,
        size,
        kernel.shape[0],
        max(_numbers(left, r"reader\.(\d{1,3})\."), 1),
        slots,
        kernel.shape[2] - 1,
        resolution,
        hard,
        _numbers(left, r"predictor\.res\.res\.(\d{1,3})\."),
        decoder is None,
        reading_attention="reader.0.projector_summ.1.weight" in left,
        predict_attention="predictor.projector_pred.1.weight" in left,
        vocabulary=vocabulary,
        **kwargs,
    )
    model.build()
    values = []
    for place in _places(model):
        shape = place.from_keras(np.empty(place.variable.shape, "float32")).shape
        values.append(place.to_keras(take(left, place.name, shape, _WHOLE)))
    unknown(left, _WHOLE)
    for place, value in zip(_places(model), values, strict=True):
        place.variable.assign(value)
    return model


def prpn_to_arrays(model: PRPN) -> dict[str, np.ndarray]:
    """Converts the weights of a `PRPN` to the authors' state dict.

    The inverse of `prpn_from_arrays`. Tied models have no `decoder.weight`.

    Source: https://github.com/yikangshen/PRPN.

    Args:
        model: a `PRPN`, built.

    Returns:
        Dictionary from names to NumPy arrays, float64 where the model is float64, else float32.

    Raises:
        ValueError: if the model is not built.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models.prpn import PRPN
    >>> model = PRPN(20, embedding_dim=8, units=6, slots=3, lookback=2)
    >>> model.build()
    >>> convert.prpn_to_arrays(model)["parser.gate.1.weight"].shape
    (6, 8, 3)
    """
    if not model.built:
        raise ValueError("the model is not built: call it on ids, or model.build(), first.")
    return {place.name: place.from_keras(stored(place.variable)) for place in _places(model)}
