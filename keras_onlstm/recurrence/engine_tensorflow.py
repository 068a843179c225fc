"""Loops over time on TensorFlow: `tf.while_loop`, so that one trace serves all lengths.

XLA compiles the steps, or their pointwise parts, once per batch size. If the whole model is
compiled with XLA, the loops are compiled with it.
"""

from typing import Any

from keras import ops, tree

from keras_onlstm.utils import Tensor, Tensors
from keras_onlstm.utils.backends_tensorflow_jax import raise_on_gradient, tensorflow_has_gpu, values


def packed(matrix: Tensor, columns: int) -> Tensor:
    """A matrix (M, K) in the form in which `product` multiplies it fastest."""
    return matrix


def product(matrix: Tensor, x: Tensor) -> Tensor:
    """The product of a `packed` matrix with (K, columns)."""
    import tensorflow as tf

    columns = x.shape[1]
    partial = 0 if columns is None or x.dtype == "bfloat16" else columns % 8
    if not partial or columns < 8 or tensorflow_has_gpu():
        return matrix @ x
    # XLA on CPUs multiplies in blocks of 8 columns. A partial block slows down the whole product
    # unless it is a product of its own.
    parts = tf.split(x, [columns - partial, partial], 1)
    return tf.concat([matrix @ part for part in parts], 1)


def rows_product(x: Tensor, matrix: Tensor) -> Tensor:
    """The product of the rows (T, B, K) with a matrix (K, N)."""
    rows = ops.reshape(x, (-1, x.shape[-1])) @ matrix
    return ops.reshape(rows, (*ops.shape(x)[:-1], matrix.shape[1]))


def summed_product(x: Tensor, y: Tensor) -> Tensor:
    """The product (M, N) of the transpose of (T, B, M) and (T, B, N)."""
    import tensorflow as tf

    x, y = (tf.reshape(z, (-1, z.shape[-1])) for z in (x, y))
    return tf.matmul(x, y, transpose_a=True)


def stacked(series: Any) -> Tensor:
    """All rows (T, ...) that a loop saved."""
    return series.stack()


def _array(length, shape, dtype):
    import tensorflow as tf

    # The backward loop reads what a step saved, and may run twice, on a persistent tape.
    return tf.TensorArray(dtype, size=length, element_shape=shape, clear_after_read=False)


def scan(
    function: Any, carry: Tensors, xs: Any, ys_specs: Any, saved_specs: Any, reverse: bool
) -> Tensors:
    """See `keras_onlstm.recurrence.engine.scan`."""
    import tensorflow as tf

    static = xs[0].shape[0]
    length = tf.shape(xs[0])[0] if static is None else static
    rows = [
        x if x is None or hasattr(x, "read") else _array(length, x.shape[1:], x.dtype).unstack(x)
        for x in xs
    ]

    def body(t, state, arrays):
        index = length - 1 - t if reverse else t
        state, ys, saved = function(state, tuple(x if x is None else x.read(index) for x in rows))
        arrays = [a.write(index, y) for a, y in zip(arrays, (*ys, *saved), strict=True)]
        return t + 1, tuple(state), tuple(arrays)

    specs = [*ys_specs, *saved_specs]
    arrays = tuple(_array(length, shape, dtype) for shape, dtype in specs)
    _, carry, arrays = tf.while_loop(
        lambda t, *_: t < length, body, (0, tuple(carry), arrays), maximum_iterations=length
    )
    ys = [array.stack() for array in arrays[: len(ys_specs)]]
    for y, (shape, _) in zip(ys, ys_specs, strict=True):
        y.set_shape((static, *shape))
    return carry, tuple(ys), arrays[len(ys_specs) :]


def run(
    forward: Any, backward: Any, step: Any, arguments: Any, training: bool, unsupported: str
) -> Any:
    """See `keras_onlstm.recurrence.engine.run`."""
    import tensorflow as tf

    leaves = tree.flatten(arguments)
    eager, structure = tf.executing_eagerly(), []

    def restored(tensors):
        """The arguments, from their tensors without `None`."""
        tensors = iter(tensors)
        return tree.pack_sequence_as(arguments, [x if x is None else next(tensors) for x in leaves])

    @tf.custom_gradient
    def differentiable(*tensors):
        results, saved = forward(step, restored(tensors), training)
        structure.append(results)

        def gradient(*upstream):
            # A graph, in which Jacobians are computed, cannot read the arrays of eager execution.
            again = not training or eager is not tf.executing_eagerly()
            series = forward(step, restored(tensors), True)[1] if again else saved
            upstream = tree.pack_sequence_as(results, list(upstream))
            gradients = tree.flatten(backward(step, restored(tensors), results, series, upstream))
            gradients = [d for d, x in zip(gradients, leaves, strict=True) if x is not None]
            # Second derivatives would miss how the saved series depend on the arguments.
            checked = iter(raise_on_gradient([d for d in gradients if d is not None], unsupported))
            return [None if d is None else next(checked) for d in gradients]

        return tree.flatten(results), gradient

    outputs = differentiable(*values([x for x in leaves if x is not None]))
    return tree.pack_sequence_as(structure[0], outputs)
