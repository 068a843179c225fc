"""Helpers for TensorFlow (compiled functions, gradients, predictions) and for products on JAX."""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import keras

from keras_onlstm.utils import Tensor


@functools.lru_cache(maxsize=64)
def compiled(
    function: Callable[..., Any], *constants: Hashable, **options: Hashable
) -> Callable[..., Any]:
    """The function, with constants as first arguments and options, compiled with XLA.

    It is compiled once per shape and cached for all callers.
    """
    import tensorflow as tf

    return tf.function(functools.partial(function, *constants, **options), jit_compile=True)


def tensorflow_has_gpu() -> bool:
    """Whether TensorFlow uses a GPU."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def raise_on_gradient(tensors: Sequence[Tensor], message: str) -> Sequence[Tensor]:
    """The same tensors; differentiating them raises `NotImplementedError` with the message."""
    import tensorflow as tf

    @tf.custom_gradient
    def identity(*tensors):
        def fail(*_):
            raise NotImplementedError(message)

        return [tf.identity(x) for x in tensors], fail

    return identity(*tensors)


def values(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, with variables replaced by their current values.

    The backward pass would read a variable again, which may have been assigned a new value.
    """
    import tensorflow as tf

    return [tf.convert_to_tensor(x) for x in tensors]


def traced_once(model: keras.Model, axes: int) -> Callable[[Any], Any]:
    """`model.predict_on_batch`, traced with unknown sizes of the first `axes` axes.

    The model is traced again only if other axes differ in size.
    """
    import tensorflow as tf

    # Keras traces with the sizes of the first batch, then with more general ones. TensorFlow counts
    # the traces of all models together and warns after five in a few calls.
    traced = set()

    def specified(array):
        sizes = [None if axis < axes else size for axis, size in enumerate(array.shape)]
        return tf.TensorSpec(sizes, array.dtype)

    def predict(batch: Any) -> Any:
        specs = tf.nest.map_structure(specified, batch)
        signature = tuple(tf.nest.flatten(specs))
        if signature not in traced:
            model.make_predict_function()
            model.predict_function.get_concrete_function([(specs,)])
            traced.add(signature)
        return model.predict_on_batch(batch)

    return predict


def product(x: Tensor, y: Tensor) -> Tensor:
    """The product (..., M, N) of (..., M, K) and (..., K, N), in the precision of their dtype.

    By default a TPU rounds the factors to bfloat16, and a GPU may round them to TensorFloat-32.
    """
    import jax.numpy

    return jax.numpy.matmul(x, y, precision="highest")
