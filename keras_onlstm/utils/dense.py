"""Layers and models that read dense tensors, and refuse ragged ones before Keras asks for shapes.

TensorFlow is not imported: its ragged tensors are known by the name of their class.
"""

from typing import Any

import keras

__all__ = ["DenseInputs"]


def _is_ragged(tensor):
    return type(tensor).__name__ == "RaggedTensor" or getattr(tensor, "ragged", False)


class DenseInputs(keras.layers.Layer):
    """Base class of a layer or model, ahead of Keras's, that refuses ragged tensors."""

    dense_instead = "x.to_tensor() and mask=tf.sequence_mask(x.row_lengths())"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(map(_is_ragged, keras.tree.flatten((args, kwargs)))):
            raise ValueError(
                f"{self.name} takes no ragged tensors. In place of a ragged x pass "
                f"{self.dense_instead}."
            )
        return super().__call__(*args, **kwargs)
