"""Rows of a table, such as word vectors, with a gradient that every optimizer reads alike."""

from keras import ops

from keras_onlstm.utils.types import Tensor

__all__ = ["take_rows"]


def take_rows(table: Tensor, ids: Tensor) -> Tensor:
    """The rows of a table, whose gradient is a whole table.

    TensorFlow's gradient of `take` lists the rows that were taken, those that were taken twice
    twice. Keras 3.15's optimizers square them one by one where they should square their sum: Adam
    then steps further than its rate, and a norm to clip at comes out wrong. With a reshape in
    between the gradient is a whole table.

    Args:
        table: (V, E), a tensor or a variable.
        ids: integers of any shape, below V.

    Returns:
        (..., E).

    Example:

    >>> from keras import ops
    >>> from keras_onlstm.utils.rows import take_rows
    >>> print(ops.convert_to_numpy(take_rows(ops.eye(3), ops.array([2, 2]))))
    [[0. 0. 1.]
     [0. 0. 1.]]
    """
    return ops.take(ops.reshape(table, (-1, table.shape[1])), ids, axis=0)
