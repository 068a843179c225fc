"""What `custom_gradient` has of its own for TensorFlow."""

from collections.abc import Sequence

from keras_onlstm.utils.types import Tensor

__all__ = ["refusing", "values"]


def refusing(tensors: Sequence[Tensor], message: str) -> Sequence[Tensor]:
    """The tensors, of which there is no gradient but a `NotImplementedError` with the message."""
    import tensorflow as tf

    @tf.custom_gradient
    def identity(*tensors):
        def refuse(*_):
            raise NotImplementedError(message)

        return [tf.identity(x) for x in tensors], refuse

    return identity(*tensors)


def values(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, and the values of variables as they are now.

    A variable would be read again on the way back, after whatever was assigned to it meanwhile.
    """
    import tensorflow as tf

    return [tf.convert_to_tensor(x) for x in tensors]
