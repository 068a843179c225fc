"""Training steps whose results depend, bit for bit, only on the batch and the variables.

Keras on TensorFlow traces a step with the shapes of the first batch, then with more general shapes
that fit all batches so far. The rounding of a step depends on its trace, and a resumed run begins
with other batches than the original run.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

__all__ = ["traced_alike"]


@contextmanager
def traced_alike(model: keras.Model, lengths_vary: bool) -> Iterator[None]:
    """A context in which `model.train_on_batch` traces every batch as if it were the first.

    If `lengths_vary`, traces leave the size of axis 1 open, so batches that differ only in it share
    a trace. On JAX, PyTorch and in eager TensorFlow the context does nothing.

    Args:
        model: compiled `keras.Model`.
        lengths_vary: whether axis 1 of the arrays is time and varies in size.
    """
    if keras.backend.backend() != "tensorflow" or model.run_eagerly:
        yield
        return
    import tensorflow as tf

    steps = {}

    def specified(array):
        shape = [None if lengths_vary and axis == 1 else n for axis, n in enumerate(array.shape)]
        return tf.TensorSpec(shape, tf.as_dtype(array.dtype))

    def traced(batch, arrays):
        # A new function each time: Keras's own remembers the shapes of earlier batches.
        model.make_train_function(force=True)
        function, model.train_function = model.train_function, train

        def step(*tensors):
            following = iter(tensors)
            flat = [None if array is None else next(following) for array in arrays]
            return function(iter([tf.nest.pack_sequence_as(batch, flat, expand_composites=True)]))

        return tf.function(step, autograph=False)

    def train(batches):
        batch = next(batches)
        arrays = tf.nest.flatten(batch, expand_composites=True)  # such as PerReplica
        tensors = [array for array in arrays if array is not None]
        signature = tuple(map(specified, tensors))
        if signature not in steps:
            steps[signature] = traced(batch, arrays).get_concrete_function(*signature)
        return steps[signature](*map(tf.convert_to_tensor, tensors))

    before, model.train_function = model.train_function, train
    try:
        yield
    finally:
        model.train_function = before
