"""Conversion of a TreeLSTM from and to arrays with the names of the reference file."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_onlstm.convert.array_files import StateDict, check_inferred, variable_array
from keras_onlstm.models.tree_lstm import TreeLSTM

_INFERRED = (
    "vocabulary_size", "embedding_dim", "units", "num_layers", "left_dependents", "left_layers",
    "output_bias", "sequential",
)  # fmt: skip


def _depth(state, name):
    depth = 0
    while f"{name}.{depth}.hh.weight" in state:
        depth += 1
    return depth


def _layers(model):
    """Pairs of the name of a layer in the arrays, and its variables."""
    for lstm in (*model.generators, *([model.left] if model.left else [])):
        for index, layer in enumerate(lstm.variables_by_layer):
            yield f"{lstm.name}.{index}", layer


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

    Raises:
        ValueError: if an array is missing, unknown, not finite or of a wrong shape or dtype.

    Example:

    >>> from keras_onlstm import convert
    >>> from keras_onlstm.models import TreeLSTM
    >>> model = TreeLSTM(20, embedding_dim=4, units=8, left_dependents=True)
    >>> model.build()
    >>> arrays = convert.tree_lstm_to_arrays(model)
    >>> convert.tree_lstm_from_arrays(arrays).get_config()["left_dependents"]
    True
    """
    check_inferred(kwargs, _INFERRED)
    state = StateDict(arrays, "TreeLSTM")
    embeddings = state.pop("embedding", ("V", "E"))
    words, size = embeddings.shape
    output = state.pop("output", (words, "U"))
    bias = state.pop("output_bias", (words,)) if "output_bias" in state else None
    left_layers = _depth(state, "ld")
    model = TreeLSTM(
        words,
        size,
        output.shape[1],
        max(_depth(state, "gen_r"), 1),
        left_layers > 0,
        max(left_layers, 1),
        vocabulary=vocabulary,
        output_bias=bias is not None,
        sequential=not _depth(state, "gen_l"),
        **kwargs,
    )
    model.build()
    values = [(model.embeddings, embeddings), (model.softmax_kernel, output)]
    if bias is not None:
        values.append((model.softmax_bias, bias))
    for name, layer in _layers(model):
        for part, variable in (("ih", layer.kernel), ("hh", layer.recurrent_kernel)):
            weight = state.pop(f"{name}.{part}.weight", variable.shape[::-1])
            values.append((variable, np.ascontiguousarray(weight.T)))
        ih_bias, hh_bias = (state.pop(f"{name}.{p}.bias", layer.bias.shape) for p in ("ih", "hh"))
        values.append((layer.bias, ih_bias + hh_bias))
    state.check_empty()
    for variable, value in values:
        variable.assign(value)
    return model


def tree_lstm_to_arrays(model: TreeLSTM) -> dict[str, np.ndarray]:
    """Converts the weights of a built `TreeLSTM` to the arrays of `tree_lstm_from_arrays`.

    Its inverse, except that `hh.bias` is zeros.
    """
    if not model.built:
        raise ValueError("The model has no weights yet. Call model.build() first.")
    softmax = {"output": model.softmax_kernel, "output_bias": model.softmax_bias}
    variables = {"embedding": model.embeddings, **softmax}
    arrays = {name: variable_array(v) for name, v in variables.items() if v is not None}
    for name, layer in _layers(model):
        kernel, recurrent_kernel, bias = map(variable_array, layer)
        arrays[f"{name}.ih.weight"] = np.ascontiguousarray(kernel.T)
        arrays[f"{name}.ih.bias"] = bias
        arrays[f"{name}.hh.weight"] = np.ascontiguousarray(recurrent_kernel.T)
        arrays[f"{name}.hh.bias"] = np.zeros_like(bias)
    return arrays
