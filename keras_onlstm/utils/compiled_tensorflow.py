"""Functions compiled with XLA, where TensorFlow runs what is around them one by one."""

import functools
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["compiled", "has_gpu"]


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


def has_gpu() -> bool:
    """Whether TensorFlow finds a GPU, which then computes whatever can be computed there."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))
