"""A function whose gradient is given, on every backend."""

from collections.abc import Callable, Sequence
from typing import Any

from keras import backend, ops

from keras_onlstm.utils import custom_gradient_tensorflow, custom_gradient_torch
from keras_onlstm.utils.types import Tensor

__all__ = ["with_gradient"]


def _derived_once(gradients, refusal):
    """The gradients as they are; in TensorFlow and PyTorch, who derives them again is refused."""
    if backend.backend() == "jax":  # which keeps how they follow from what is given
        return list(gradients)
    version = {"tensorflow": custom_gradient_tensorflow, "torch": custom_gradient_torch}
    refusing = version[backend.backend()].refusing
    again = iter(refusing([x for x in gradients if x is not None], refusal))
    return [None if x is None else next(again) for x in gradients]


def with_gradient(
    function: Callable[..., tuple[Tensor, Callable[[Tensor], Sequence[Tensor | None]]]],
    tensors: Sequence[Tensor],
    refusal: str,
) -> Tensor:
    """`keras.ops.custom_gradient`, in one form for all backends.

    Args:
        function: of the tensors; returns one tensor, and the function that maps its gradient to
            those of the tensors, `None` where there is none.
        tensors: list of what the function is given.
        refusal: message of the `NotImplementedError` for whom derives the gradients again, except
            on JAX, which can.

    Returns:
        The tensor that the function returns.
    """

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
        tensors = custom_gradient_tensorflow.values(tensors)
    return whole(*tensors)
