"""Products in JAX that no device rounds."""

from keras_onlstm.utils.types import Tensor

__all__ = ["product"]


def product(x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices, or of stacks of them, in the precision of their numbers.

    By default a TPU rounds what it multiplies to bfloat16, and a GPU may round it to
    TensorFloat-32.

    Args:
        x: (..., M, K).
        y: (..., K, N).

    Returns:
        (..., M, N).
    """
    import jax.numpy

    return jax.numpy.matmul(x, y, precision="highest")
