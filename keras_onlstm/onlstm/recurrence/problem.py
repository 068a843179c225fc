"""What every version of the recurrence is given, and what it returns.

Axes as in `keras_onlstm.onlstm.step`.
"""

from typing import NamedTuple

from keras_onlstm.utils.types import Activation, Tensor

__all__ = ["Problem", "Recurrence"]


class Problem(NamedTuple):
    """A recurrence over a whole sequence."""

    inputs: Tensor  # (B, T, D)
    h: Tensor  # (B, U) initial hidden state
    c: Tensor  # (B, U) initial cell state
    kernel: Tensor  # (D, K)
    recurrent_kernel: Tensor  # (U, K)
    bias: Tensor | None  # (K,)
    chunk_size: int  # C
    activation: Activation  # as in `keras_onlstm.onlstm.step.step`
    recurrent_activation: Activation  # likewise
    mask: Tensor | None = None  # (B, T) boolean, False where the step is to be skipped
    recurrent_mask: Tensor | None = None  # (B, U) factors of h wherever the gates read it
    # Whether gradients will probably be asked for, which TensorFlow cannot know before. If not, the
    # fused version keeps nothing for the backward pass, and runs again should there be one.
    training: bool = False


class Recurrence(NamedTuple):
    """What a recurrence returns."""

    h: Tensor  # (B, T, U) hidden state after every step, carried where masked
    last_h: Tensor  # (B, U)
    last_c: Tensor  # (B, U), float32 or wider
    forget_distance: Tensor  # (B, T), float32 or wider, 0 where masked
    input_distance: Tensor  # (B, T), float32 or wider, 0 where masked
