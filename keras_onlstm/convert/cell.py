"""Conversion of the weights of one cell."""

import numpy as np
import numpy.typing as npt

from keras_onlstm.onlstm.step import gate_width

__all__ = ["from_torch", "to_torch"]


def from_torch(
    ih_weight: npt.ArrayLike,
    ih_bias: npt.ArrayLike,
    hh_weight: npt.ArrayLike,
    hh_bias: npt.ArrayLike,
    chunk_size: int,
) -> list[np.ndarray]:
    """Converts the weights of one cell of the authors' implementation for `layer.set_weights`.

    The authors' parameters are named `ih.0.weight`, `ih.0.bias`, `hh.weight` and `hh.bias`, with
    K = 4 * units + 2 * units // chunk_size rows in the order of `keras_onlstm.onlstm.step.GATES`.
    The two biases are added. For a cell trained with weight dropout at rate p, pass
    `(1 - p) * hh.weight`, which it uses at evaluation.

    Source: https://github.com/yikangshen/Ordered-Neurons.

    Args:
        ih_weight: (K, input_dim) array.
        ih_bias: (K,) array.
        hh_weight: (K, units) array.
        hh_bias: (K,) array.
        chunk_size: integer, the authors' `chunk_size`.

    Returns:
        `[kernel, recurrent_kernel, bias]`: NumPy arrays (input_dim, K), (units, K) and (K,) of the
        same dtype.

    Raises:
        ValueError: if the shapes do not fit an ON-LSTM cell with that `chunk_size`.

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
        "ih_weight": ih_weight,
        "hh_weight": hh_weight,
        "ih_bias": ih_bias,
        "hh_bias": hh_bias,
    }
    kernel, recurrent_kernel, *biases = _checked(arrays, chunk_size, 0)
    return [kernel.T.copy(), recurrent_kernel.T.copy(), biases[0] + biases[1]]


def to_torch(
    kernel: npt.ArrayLike, recurrent_kernel: npt.ArrayLike, bias: npt.ArrayLike, chunk_size: int
) -> list[np.ndarray]:
    """Converts the weights of a layer to those of a cell of the authors' implementation.

    The inverse of `from_torch`, except for the authors' two biases: `ih_bias` is their sum,
    `hh_bias` is zeros.

    Source: https://github.com/yikangshen/Ordered-Neurons.

    Args:
        kernel: (input_dim, K) array, K = 4 * units + 2 * units // chunk_size.
        recurrent_kernel: (units, K) array.
        bias: (K,) array.
        chunk_size: integer, the layer's `chunk_size`.

    Returns:
        `[ih_weight, ih_bias, hh_weight, hh_bias]`: NumPy arrays (K, input_dim), (K,), (K, units)
        and (K,) of the same dtype, in the order of the arguments of `from_torch`.

    Raises:
        ValueError: if the shapes do not fit an ON-LSTM layer with that `chunk_size`.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm import ONLSTM, convert
    >>> layer = ONLSTM(4, chunk_size=2)
    >>> layer.build((None, None, 3))
    >>> arrays = convert.to_torch(*layer.get_weights(), chunk_size=2)
    >>> [array.shape for array in arrays]
    [(20, 3), (20,), (20, 4), (20,)]
    >>> again = convert.from_torch(*arrays, chunk_size=2)
    >>> all(map(np.array_equal, again, layer.get_weights()))
    True
    """
    arrays = {"kernel": kernel, "recurrent_kernel": recurrent_kernel, "bias": bias}
    whole, recurrent, offset = _checked(arrays, chunk_size, 1)
    return [whole.T.copy(), offset.copy(), recurrent.T.copy(), np.zeros_like(offset)]


def _checked(given, chunk_size, axis):
    """Checks the shapes of two matrices and their biases. The gates are on axis `axis`."""
    arrays = {name: np.asarray(array) for name, array in given.items()}
    (first, kernel), (second, recurrent_kernel), *_ = arrays.items()
    if kernel.ndim != 2 or recurrent_kernel.ndim != 2:
        form = ("(K, input_dim) and (K, units)", "(input_dim, K) and (units, K)")[axis]
        raise ValueError(
            f"{first} and {second} are matrices, {form}, not arrays of shapes {kernel.shape} and "
            f"{recurrent_kernel.shape}."
        )
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
