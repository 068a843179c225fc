"""The loop over time in TensorFlow: one `tf.while_loop` that XLA can compile and differentiate."""

from collections.abc import Callable, Sequence

from keras_onlstm.utils.types import DType, Shape, Tensors

__all__ = ["scan"]


def scan(
    function: Callable[[Tensors, Tensors], tuple[Tensors, Tensors]],
    carry: Tensors,
    xs: Tensors,
    ys_specs: Sequence[tuple[Shape, DType]],
    reverse: bool,
) -> tuple[Tensors, Tensors]:
    """See `keras_onlstm.utils.loops.scan`."""
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
