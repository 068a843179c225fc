"""Loops, and functions with hand-written gradients, that work the same on every backend."""

from collections.abc import Callable, Sequence
from typing import Any

from keras import backend, ops

from keras_onlstm.utils import backend_tensorflow, backend_torch
from keras_onlstm.utils.types import DType, Shape, Tensor, Tensors

__all__ = ["scan", "with_gradient"]


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
        return backend_tensorflow.scan(function, carry, xs, ys_specs, reverse)
    if xs[0].shape[0] == 0:
        # The function runs once on a row of zeros, to learn the shapes of its rows; none is kept.
        row = tuple(ops.cast(ops.sum(x, 0), x.dtype) for x in xs)
        return carry, tuple(ops.expand_dims(y, 0)[:0] for y in function(carry, row)[1])
    return ops.scan(function, carry, xs, reverse=reverse)


def _derived_once(gradients, refusal):
    """The gradients as they are; in TensorFlow and PyTorch, who derives them again is refused."""
    if backend.backend() == "jax":  # which keeps how they follow from what is given
        return list(gradients)
    version = {"tensorflow": backend_tensorflow, "torch": backend_torch}
    refusing = version[backend.backend()].refusing
    again = iter(refusing([x for x in gradients if x is not None], refusal))
    return [None if x is None else next(again) for x in gradients]


def with_gradient(
    function: Callable[..., tuple[Tensor, Callable[[Tensor], Sequence[Tensor | None]]]],
    tensors: Sequence[Tensor],
    alternative: str,
) -> Tensor:
    """`keras.ops.custom_gradient`, in one form for all backends.

    Args:
        function: of the tensors; returns one tensor, and the function that maps its gradient to
            those of the tensors, `None` where there is none.
        tensors: list of what the function is given.
        alternative: what has second derivatives, for the message of the `NotImplementedError`
            of those who ask for them, except on JAX, which has them.

    Returns:
        The tensor that the function returns.
    """

    refusal = (
        "This fast computation has no second derivatives, no forward-mode derivatives and no "
        f"torch.vmap: {alternative} has them."
    )

    @ops.custom_gradient
    def whole(*values: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        result, derive = function(*values)

        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> Any:
            upstream = arguments[0] if upstream is None else upstream
            gradients = _derived_once(derive(upstream), refusal)
            if backend.backend() == "jax":
                gradients = [
                    ops.zeros_like(value) if x is None else x
                    for value, x in zip(values, gradients, strict=True)
                ]
            return tuple(gradients)

        return result, gradient

    if backend.backend() == "tensorflow":
        tensors = backend_tensorflow.values(tensors)
    return whole(*tensors)
