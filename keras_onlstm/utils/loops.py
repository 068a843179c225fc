"""A differentiable loop over the leading axis, the same on every backend."""

from collections.abc import Callable, Sequence

from keras import backend, ops

from keras_onlstm.utils import loops_tensorflow
from keras_onlstm.utils.types import DType, Shape, Tensors

__all__ = ["scan"]


def scan(
    function: Callable[[Tensors, Tensors], tuple[Tensors, Tensors]],
    carry: Tensors,
    xs: Tensors,
    ys_specs: Sequence[tuple[Shape, DType]],
    reverse: bool = False,
) -> tuple[Tensors, Tensors]:
    """`carry, y = function(carry, x)` for every row `x` of `xs`; the rows `y` are stacked.

    `keras.ops.scan`, but for TensorFlow, where that one demands rows shaped like the carry.

    Args:
        function: maps `(carry, x)` to `(carry, y)`; carry, x and y are tuples of tensors.
        carry: tuple of tensors, whose shapes and dtypes the function keeps.
        xs: tuple of tensors with a common leading axis (T, ...).
        ys_specs: tuple of `(shape, dtype)` of each `y`, with `None` for a size that is not known.
        reverse: whether the last row comes first; rows `y` stand where their `x` does.

    Returns:
        `(carry, ys)`: the carry after the last row, and a tuple of tensors (T, ...).
    """
    if backend.backend() == "tensorflow":
        return loops_tensorflow.scan(function, carry, xs, ys_specs, reverse)
    if xs[0].shape[0] == 0:
        # The function runs once on a row of zeros, to learn the shapes of its rows; none is kept.
        row = tuple(ops.cast(ops.sum(x, 0), x.dtype) for x in xs)
        return carry, tuple(ops.expand_dims(y, 0)[:0] for y in function(carry, row)[1])
    return ops.scan(function, carry, xs, reverse=reverse)
