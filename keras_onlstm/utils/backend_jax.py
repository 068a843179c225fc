"""Products in JAX that no device rounds."""

from keras_onlstm.utils.types import Tensor

__all__ = ["product"]


def product(x: Tensor, y: Tensor) -> Tensor:
    """The product (..., M, N) of (..., M, K) and (..., K, N), in the precision of their numbers.

    By default a TPU rounds what it multiplies to bfloat16, and a GPU may round it to
    TensorFloat-32.
    """
    import jax.numpy

    return jax.numpy.matmul(x, y, precision="highest")
