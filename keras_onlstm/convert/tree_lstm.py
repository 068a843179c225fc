"""Conversion of a TreeLSTM from and to arrays with the names of the reference file."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_onlstm.convert.array_files import stored, take, unknown
from keras_onlstm.models.tree_lstm import TreeLSTM

__all__ = ["tree_lstm_from_arrays", "tree_lstm_to_arrays"]

_WHOLE = "TreeLSTM"
_INFERRED = (
    *("vocabulary_size", "embedding_dim", "units", "num_layers"),
    *("left_dependents", "left_layers", "output_bias", "sequential"),
)


def _depth(arrays, name):
    depth = 0
    while f"{name}.{depth}.hh.weight" in arrays:
        depth += 1
    return depth


def _lstms(model):
    return [*model.generators, *([model.left] if model.left else [])]


def tree_lstm_from_arrays(
    arrays: Mapping[str, npt.ArrayLike], vocabulary: Sequence[str] | None = None, **kwargs: Any
) -> TreeLSTM:
    """Makes a `TreeLSTM` with the weights of the authors' model.

    With V words, word vectors of E features and U units: `embedding` (V, E); `output` (V, U);
    `output_bias` (V,), optional; and for each NAME of `gen_l`, `gen_r`, `gen_nx_l`, `gen_nx_r` and
    layer i, starting at 0, `NAME.i.ih.weight` (4 U, size of its input), `NAME.i.ih.bias` (4 U,),
    `NAME.i.hh.weight` (4 U, U) and `NAME.i.hh.bias` (4 U,), with rows in the order of the gates
    input, forget, output, candidate. With arrays named `ld` it is an LdTreeLSTM; with only those of
    `gen_r` it is sequential. The two biases of a layer are added.

    Source: https://github.com/XingxingZhang/td-treelstm.

    Args:
        arrays: mapping from these names to arrays of floating-point numbers.
        vocabulary: list of V words in the order of their ids, or `None`.
        **kwargs: the dropouts, `seed`, `name` and `dtype` of `TreeLSTM`.

    Returns:
        The `TreeLSTM`, built.

    Raises:
        ValueError: if an array is missing, unknown, of another shape, not of floating point or not
            finite; the message names the array.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models import TreeLSTM
    >>> model = TreeLSTM(20, embedding_dim=4, units=8, left_dependents=True)
    >>> model.build()
    >>> again = convert.tree_lstm_from_arrays(convert.tree_lstm_to_arrays(model))
    >>> again.get_config()["left_dependents"]
    True
    """
    for name in _INFERRED:
        if name in kwargs:
            raise ValueError(f"{name} follows from the arrays: leave it out.")
    left = {str(name): array for name, array in arrays.items()}
    embeddings = take(left, "embedding", ("V", "E"), _WHOLE)
    words, size = embeddings.shape
    output = take(left, "output", (words, "U"), _WHOLE)
    bias = take(left, "output_bias", (words,), _WHOLE) if "output_bias" in left else None
    depth = _depth(left, "ld")
    model = TreeLSTM(
        words,
        size,
        output.shape[1],
        max(_depth(left, "gen_r"), 1),
        depth > 0,
        max(depth, 1),
        vocabulary=vocabulary,
        output_bias=bias is not None,
        sequential=not _depth(left, "gen_l"),
        **kwargs,
    )
    model.build()
    values = [(model.embeddings, embeddings), (model.softmax_kernel, output)]
    if bias is not None:
        values.append((model.softmax_bias, bias))
    for lstm in _lstms(model):
        for index, layer in enumerate(lstm.variables_by_layer):
            name = f"{lstm.name}.{index}"
            for part, variable in (("ih", layer.kernel), ("hh", layer.recurrent_kernel)):
                weight = take(left, f"{name}.{part}.weight", variable.shape[::-1], _WHOLE)
                values.append((variable, np.ascontiguousarray(weight.T)))
            biases = [
                take(left, f"{name}.{part}.bias", layer.bias.shape, _WHOLE) for part in ("ih", "hh")
            ]
            values.append((layer.bias, biases[0] + biases[1]))
    unknown(left, _WHOLE)
    for variable, value in values:
        variable.assign(value)
    return model


def tree_lstm_to_arrays(model: TreeLSTM) -> dict[str, np.ndarray]:
    """Converts the weights of a `TreeLSTM` to the arrays of `tree_lstm_from_arrays`.

    Its inverse, except the two biases of a layer: `ih.bias` is their sum, `hh.bias` is zero.

    Source: https://github.com/XingxingZhang/td-treelstm.

    Args:
        model: a `TreeLSTM`, built.

    Returns:
        Dictionary from names to NumPy arrays, float64 where the model is float64, else float32.

    Raises:
        ValueError: if the model is not built.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models import TreeLSTM
    >>> model = TreeLSTM(20, embedding_dim=4, units=8)
    >>> model.build()
    >>> convert.tree_lstm_to_arrays(model)["gen_nx_l.0.ih.weight"].shape
    (32, 4)
    """
    if not model.built:
        raise ValueError("the model is not built: score a tree, or model.build(), first.")
    arrays = {"embedding": stored(model.embeddings), "output": stored(model.softmax_kernel)}
    if model.softmax_bias is not None:
        arrays["output_bias"] = stored(model.softmax_bias)
    for lstm in _lstms(model):
        for index, layer in enumerate(lstm.variables_by_layer):
            name = f"{lstm.name}.{index}"
            arrays[f"{name}.ih.weight"] = np.ascontiguousarray(stored(layer.kernel).T)
            arrays[f"{name}.ih.bias"] = stored(layer.bias)
            arrays[f"{name}.hh.weight"] = np.ascontiguousarray(stored(layer.recurrent_kernel).T)
            arrays[f"{name}.hh.bias"] = np.zeros_like(arrays[f"{name}.ih.bias"])
    return arrays
