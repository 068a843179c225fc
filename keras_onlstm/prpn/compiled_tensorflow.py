"""Parts of a step of PRPN, compiled with XLA where TensorFlow runs the rest one by one."""

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["compiled"]


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled once for all who ask."""
    import tensorflow as tf

    return tf.function(function, jit_compile=True)
