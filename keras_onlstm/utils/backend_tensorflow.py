"""What other modules need of TensorFlow: compiled functions, gradients, loops and predictions."""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import keras
from keras import backend

from keras_onlstm.utils.types import DType, Shape, Tensor, Tensors

__all__ = ["compiled", "has_gpu", "piece", "refusing", "scan", "traced_once", "values"]

# Kernels of fewer entries do not earn the time that compiling a step takes.
_SMALL = 2**14


@functools.lru_cache(maxsize=64)
def compiled(
    function: Callable[..., Any], *first: Hashable, **options: Hashable
) -> Callable[..., Any]:
    """A function of tensors that XLA compiles once per size, shared by all callers.

    The first arguments and the options are fixed.
    """
    import tensorflow as tf

    return tf.function(functools.partial(function, *first, **options), jit_compile=True)


def piece(function: Callable[..., Any], entries: int) -> Callable[..., Any]:
    """A part of a step of a loop, compiled where the kernel has enough entries for that to pay.

    The function is to be found under its name in its module, so that it is always the same one.
    """
    if backend.backend() != "tensorflow" or entries < _SMALL:
        return function
    return compiled(function)


def has_gpu() -> bool:
    """Whether TensorFlow finds a GPU, which then computes whatever can be computed there."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def refusing(tensors: Sequence[Tensor], message: str) -> Sequence[Tensor]:
    """The same tensors; differentiating them raises `NotImplementedError` with the message."""
    import tensorflow as tf

    @tf.custom_gradient
    def identity(*tensors):
        def refuse(*_):
            raise NotImplementedError(message)

        return [tf.identity(x) for x in tensors], refuse

    return identity(*tensors)


def values(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, and the values of variables as they are now.

    The backward pass would read a variable again, after it may have been assigned a new value.
    """
    import tensorflow as tf

    return [tf.convert_to_tensor(x) for x in tensors]


def scan(
    function: Callable[[Tensors, Tensors], tuple[Tensors, Tensors]],
    carry: Tensors,
    xs: Tensors,
    ys_specs: Sequence[tuple[Shape, DType]],
    reverse: bool,
) -> tuple[Tensors, Tensors]:
    """See `keras_onlstm.utils.differentiable.scan`."""
    import tensorflow as tf

    static_length = xs[0].shape[0]
    length = tf.shape(xs[0])[0] if static_length is None else static_length

    def array(dtype, shape):
        return tf.TensorArray(dtype, size=length, element_shape=shape)

    inputs = [array(x.dtype, x.shape[1:]).unstack(x) for x in xs]
    carry = tuple(carry)

    def body(t, state, outputs):
        place = length - 1 - t if reverse else t
        new, ys = function(state, tuple(ta.read(place) for ta in inputs))
        written = (ta.write(place, y) for ta, y in zip(outputs, ys, strict=True))
        return t + 1, tuple(new), tuple(written)

    outputs = tuple(array(dtype, shape) for shape, dtype in ys_specs)
    _, carry, outputs = tf.while_loop(
        lambda t, *_: t < length, body, (0, carry, outputs), maximum_iterations=length
    )
    stacked = []
    for output, (shape, _) in zip(outputs, ys_specs, strict=True):
        rows = output.stack()
        rows.set_shape((static_length, *shape))
        stacked.append(rows)
    return carry, tuple(stacked)


def traced_once(model: keras.Model, axes: int) -> Callable[[Any], Any]:
    """`model.predict_on_batch`, traced for unknown sizes of the first axes before the first batch.

    Where other axes differ in size it traces the model again.
    """
    import tensorflow as tf

    # Keras traces the sizes of the first batch, then more general ones, and TensorFlow counts the
    # traces of all models in a process together: five of them in a few calls give a warning.
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
