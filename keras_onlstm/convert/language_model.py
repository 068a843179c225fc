"""Conversion of a cell and of a language model from and to the authors' weights."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_onlstm.convert.array_files import StateDict, check_inferred, variable_array
from keras_onlstm.models import LanguageModel
from keras_onlstm.onlstm.gates import gate_width
from keras_onlstm.utils.validation import check_integer

_CELL = re.compile(r"rnn\.cells\.(0|[1-9]\d{0,3})\.")
_PARTS = ("ih.0.weight", "ih.0.bias", "hh.weight", "hh.bias")  # as `to_torch` returns them
_INFERRED = (
    "vocabulary_size", "embedding_dim", "units", "num_layers", "recurrent", "tie_weights",
)  # fmt: skip


def from_torch(
    ih_weight: npt.ArrayLike,
    ih_bias: npt.ArrayLike,
    hh_weight: npt.ArrayLike,
    hh_bias: npt.ArrayLike,
    chunk_size: int,
) -> list[np.ndarray]:
    """Converts the weights of one cell of the authors' implementation for `layer.set_weights`.

    The authors' parameters `ih.0.weight`, `ih.0.bias`, `hh.weight` and `hh.bias` have
    K = 4 * units + 2 * units // chunk_size rows in the order of `keras_onlstm.onlstm.step.GATES`.
    For a cell trained with weight dropout at rate p, pass `(1 - p) * hh.weight`.

    Source: https://github.com/yikangshen/Ordered-Neurons.

    Args:
        ih_weight: (K, input_dim) array.
        ih_bias: (K,) array.
        hh_weight: (K, units) array.
        hh_bias: (K,) array.
        chunk_size: the authors' `chunk_size`.

    Returns:
        `[kernel, recurrent_kernel, bias]`: arrays (input_dim, K), (units, K) and (K,); the bias is
        the sum of the two.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm import convert
    >>> kernel, recurrent_kernel, bias = convert.from_torch(
    ...     np.zeros((20, 3)), np.ones(20), np.zeros((20, 4)), np.ones(20), chunk_size=2
    ... )
    >>> kernel.shape, recurrent_kernel.shape, float(bias[0])
    ((3, 20), (4, 20), 2.0)
    """
    arrays = {
        "ih_weight": ih_weight, "hh_weight": hh_weight, "ih_bias": ih_bias, "hh_bias": hh_bias
    }  # fmt: skip
    kernel, recurrent_kernel, *biases = _checked(arrays, chunk_size, 0)
    return [kernel.T.copy(), recurrent_kernel.T.copy(), biases[0] + biases[1]]


def to_torch(
    kernel: npt.ArrayLike, recurrent_kernel: npt.ArrayLike, bias: npt.ArrayLike, chunk_size: int
) -> list[np.ndarray]:
    """Converts a layer's weights to the arguments of `from_torch`, its inverse; `hh_bias` is zeros.

    Args:
        kernel: (input_dim, K) array, K = 4 * units + 2 * units // chunk_size.
        recurrent_kernel: (units, K) array.
        bias: (K,) array.
        chunk_size: the layer's `chunk_size`.

    Example:

    >>> from keras_onlstm import ONLSTM, convert
    >>> layer = ONLSTM(4, chunk_size=2)
    >>> layer.build((None, None, 3))
    >>> [array.shape for array in convert.to_torch(*layer.get_weights(), chunk_size=2)]
    [(20, 3), (20,), (20, 4), (20,)]
    """
    arrays = {"kernel": kernel, "recurrent_kernel": recurrent_kernel, "bias": bias}
    weight, recurrent, offset = _checked(arrays, chunk_size, 1)
    return [weight.T.copy(), offset.copy(), recurrent.T.copy(), np.zeros_like(offset)]


def _checked(arrays, chunk_size, axis):
    """Checks the shapes of two matrices and their biases. The gates are on axis `axis`."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    (first, kernel), (second, recurrent_kernel), *_ = arrays.items()
    if kernel.ndim != 2 or recurrent_kernel.ndim != 2:
        form = ("(K, input_dim) and (K, units)", "(input_dim, K) and (units, K)")[axis]
        shapes = f"{kernel.shape} and {recurrent_kernel.shape}"
        raise ValueError(f"{first} and {second} must be matrices, {form}, got shapes {shapes}.")
    units = recurrent_kernel.shape[1 - axis]
    if isinstance(chunk_size, bool) or chunk_size < 1 or units % chunk_size:
        raise ValueError(f"chunk_size={chunk_size} does not divide the {units} units of {second}.")
    width = gate_width(units, int(chunk_size))
    for name, array in arrays.items():
        shape = array.shape[axis : axis + 1] if name in (first, second) else array.shape
        if shape != (width,):
            raise ValueError(
                f"{name} has {shape} {('rows', 'columns')[axis]}; {units} units with "
                f"chunk_size={chunk_size} have {width}, 4 * units + 2 * units // chunk_size."
            )
    return list(arrays.values())


def language_model_from_arrays(
    arrays: Mapping[str, npt.ArrayLike],
    chunk_size: int = 10,
    vocabulary: Sequence[str] | None = None,
    weight_dropout: float = 0.0,
    **kwargs: Any,
) -> LanguageModel:
    """Makes a `LanguageModel` with the weights of the authors' `RNNModel`.

    The arrays have the names and shapes of its state dict. With V words, word vectors of E
    features, K of `from_torch`, and for every layer i, starting at 0:

    - `encoder.weight` (V, E);
    - `rnn.cells.i.ih.0.weight` (K, size of the layer's input), `rnn.cells.i.ih.0.bias` (K,),
      `rnn.cells.i.hh.weight` (K, units), `rnn.cells.i.hh.bias` (K,);
    - `decoder.weight` (V, units of the last layer), `decoder.bias` (V,).

    If `decoder.weight` is missing or equals `encoder.weight`, weights are tied.
    `rnn.cells.i.hh._weight`, a copy of `hh.weight`, is ignored. `rnn.cells.i.hh.weight_raw`, the
    weight before AWD-LSTM's `WeightDrop`, is used instead of `hh.weight`.

    Source: https://github.com/yikangshen/Ordered-Neurons, `model.py` and `ON_LSTM.py`, and
    `weight_drop.py` of https://github.com/salesforce/awd-lstm-lm.

    Args:
        arrays: mapping from these names to arrays of floating-point numbers.
        chunk_size: the authors' `chunk_size`.
        vocabulary: list of V words in the order of their ids, or `None`.
        weight_dropout: the authors' `wdrop`, in [0, 1); 0.45 in their recipe. State dicts do not
            contain it. The recurrent kernel becomes `(1 - wdrop) * hh.weight`, with which their
            model evaluates; `hh.weight_raw` is not scaled. `wdrop` is also the default of the
            model's `recurrent_weight_dropout`.
        **kwargs: the dropouts, `seed`, `name` and `dtype` of `LanguageModel`.

    Raises:
        ValueError: if an array is missing, unknown, not finite or of a wrong shape or dtype, or if
            `LanguageModel` cannot have layers of these sizes.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models import LanguageModel
    >>> model = LanguageModel(20, embedding_dim=8, units=16, chunk_size=4)
    >>> model.build()
    >>> arrays = convert.language_model_to_arrays(model)
    >>> convert.language_model_from_arrays(arrays, chunk_size=4).count_params()
    5256
    """
    weight_dropout = _rate(weight_dropout)
    chunk_size = check_integer("chunk_size", chunk_size)
    check_inferred(kwargs, _INFERRED)
    state = StateDict(arrays, "RNNModel")
    embeddings = state.pop("encoder.weight", ("V", "E"))
    words, size = embeddings.shape
    indices = [int(match[1]) for match in map(_CELL.match, state.arrays) if match]
    cells, sizes = [], []
    for index in range(max(indices, default=0) + 1):
        cells.append(_pop_cell(state, index, size, chunk_size, 1 - weight_dropout))
        size = cells[-1][1].shape[0]
        sizes.append(size)
    bias = state.pop("decoder.bias", (words,), "encoder.weight has as many words")
    decoder = embeddings
    if "decoder.weight" in state:
        reason = "words of encoder.weight, units of the last layer"
        decoder = state.pop("decoder.weight", (words, size), reason)
    state.check_empty()
    tied = decoder is embeddings or np.array_equal(decoder, embeddings)
    _check_sizes(sizes, embeddings.shape[1], tied)
    model = LanguageModel(
        words,
        embeddings.shape[1],
        sizes[0],
        len(sizes),
        chunk_size,
        tie_weights=tied,
        vocabulary=vocabulary,
        **{"recurrent_weight_dropout": weight_dropout, **kwargs},
    )
    model.build()
    model.embeddings.assign(embeddings)
    for layer, weights in zip(model.recurrent_layers, cells, strict=True):
        layer.set_weights(weights)
    if model.softmax is None:
        model.softmax_bias.assign(bias)
    else:
        model.softmax.set_weights([decoder.T, bias])
    return model


def language_model_to_arrays(
    model: LanguageModel, weight_dropout: float = 0.0
) -> dict[str, np.ndarray]:
    """Converts the weights of a `LanguageModel` to the authors' state dict.

    The inverse of `language_model_from_arrays`. A tied model's matrix occurs twice, as
    `encoder.weight` and `decoder.weight`; `hh.bias` is zeros. The last layer of the authors' class
    always has E units, so it can load untied models only if `embedding_dim == units`.

    Args:
        model: a `LanguageModel` of ON-LSTM layers, built.
        weight_dropout: the `wdrop` of the authors' model, in [0, 1): `hh.weight` is divided by
            `1 - wdrop`, because that model multiplies with it at evaluation.

    Raises:
        ValueError: if the model has LSTM layers or is not built.
    """
    weight_dropout = _rate(weight_dropout)
    config = model.get_config()
    if config["recurrent"] != "onlstm":
        raise ValueError(
            "The model has LSTM layers, but the authors' has ON-LSTM. Save it with model.save."
        )
    if not model.built:
        raise ValueError("The model has no weights yet. Call model.build() first.")
    arrays = {"encoder.weight": variable_array(model.embeddings)}
    for index, layer in enumerate(model.recurrent_layers):
        variables = layer.cell.kernel, layer.cell.recurrent_kernel, layer.cell.bias
        kernel, recurrent_kernel, bias = map(variable_array, variables)
        parts = to_torch(kernel, recurrent_kernel, bias, config["chunk_size"])
        parts[2] /= 1 - weight_dropout
        for part, array in zip(_PARTS, parts, strict=True):
            arrays[f"rnn.cells.{index}.{part}"] = array
    if model.softmax is None:
        arrays["decoder.weight"] = arrays["encoder.weight"].copy()
        arrays["decoder.bias"] = variable_array(model.softmax_bias)
    else:
        arrays["decoder.weight"] = variable_array(model.softmax.kernel).T.copy()
        arrays["decoder.bias"] = variable_array(model.softmax.bias)
    return arrays


def _rate(weight_dropout):
    if isinstance(weight_dropout, bool) or not 0 <= weight_dropout < 1:
        raise ValueError(f"weight_dropout must be a rate in [0, 1), got {weight_dropout!r}.")
    return float(weight_dropout)


def _pop_cell(state, index, inputs, chunk_size, scale):
    """Kernel, recurrent kernel and bias of a layer that reads `inputs` features."""
    prefix = f"rnn.cells.{index}."
    name = f"{prefix}hh.weight"
    if f"{name}_raw" in state:
        state.arrays.pop(name, None)
        name, scale = f"{name}_raw", 1
    hh_weight = state.pop(name, ("K", "units"))
    duplicate = state.arrays.pop(f"{prefix}hh._weight", hh_weight)
    if not np.array_equal(duplicate, hh_weight):
        raise ValueError(
            f"{prefix}hh._weight differs from {name}, but must be a copy of it. Pass only {name}."
        )
    rows, units = hh_weight.shape
    if units % chunk_size or rows != gate_width(units, chunk_size):
        chunks, rest = divmod(rows - 4 * units, 2)
        fits = chunks > 0 and not rest and units % chunks == 0
        hint = f"Pass chunk_size={units // chunks}" if fits else "It is not of an ON-LSTM layer"
        raise ValueError(
            f"{name} has {rows} rows for {units} units, not the 4 * units + 2 * units / "
            f"chunk_size of chunk_size={chunk_size}. {hint}."
        )
    reason = f"{name} has {rows} rows, and the layer reads {inputs} features"
    ih_weight = state.pop(f"{prefix}ih.0.weight", (rows, inputs), reason)
    ih_bias = state.pop(f"{prefix}ih.0.bias", (rows,), reason)
    hh_bias = state.pop(f"{prefix}hh.bias", (rows,), reason)
    return from_torch(ih_weight, ih_bias, scale * hh_weight, hh_bias, chunk_size)


def _check_sizes(sizes, embedding_dim, tied):
    wanted = [sizes[0]] * (len(sizes) - 1) + [embedding_dim if tied else sizes[0]]
    for index, (size, expected) in enumerate(zip(sizes, wanted, strict=True)):
        if size != expected:
            tying = "tied, the last has embedding_dim" if tied else "not tied, all have one size"
            raise ValueError(
                f"rnn.cells.{index}.hh.weight has {size} units, not {expected}. The layers of a "
                "LanguageModel have one size; where decoder.weight and encoder.weight are "
                f"{tying}. Build other structures from ONLSTM layers, with from_torch."
            )
