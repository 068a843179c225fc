"""Functions compiled with XLA, where TensorFlow runs what is around them one by one."""

import functools
from collections.abc import Callable, Hashable
from typing import Any

from keras import backend

__all__ = ["compiled", "has_gpu", "piece"]

# Kernels of fewer entries do not earn the time that compiling a step takes.
_SMALL = 2**14


@functools.lru_cache(maxsize=64)
def compiled(function: Callable[..., Any], **options: Hashable) -> Callable[..., Any]:
    """A function, compiled for each size of its tensors, once for all who ask.

    Args:
        function: of tensors.
        **options: keyword arguments that it always gets.

    Returns:
        `tf.function`.
    """
    import tensorflow as tf

    return tf.function(functools.partial(function, **options), jit_compile=True)


def piece(function: Callable[..., Any], entries: int) -> Callable[..., Any]:
    """A part of a step of a loop, compiled where that is worth it.

    Args:
        function: of tensors; to be found under its name in its module, so that it is always the
            same one.
        entries: integer, of the kernel that the step multiplies with.

    Returns:
        `function`, or on TensorFlow, where the kernel is large, `compiled(function)`.
    """
    if backend.backend() != "tensorflow" or entries < _SMALL:
        return function
    return compiled(function)


def has_gpu() -> bool:
    """Whether TensorFlow finds a GPU, which then computes whatever can be computed there."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))
