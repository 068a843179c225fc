"""Matrix products in JAX at full precision."""

from keras_onlstm.utils.types import Tensor

__all__ = ["product"]


def product(x: Tensor, y: Tensor) -> Tensor:
    """The product (..., M, N) of (..., M, K) and (..., K, N), in the precision of their dtype.

    By default a TPU rounds the factors to bfloat16, and a GPU may round them to TensorFloat-32.
    """
    import jax.numpy

    return jax.numpy.matmul(x, y, precision="highest")
