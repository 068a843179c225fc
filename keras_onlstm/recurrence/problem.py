"""What every version of the recurrence is given, and what it returns.

Axes as in `keras_onlstm.step`.
"""

from typing import Any, NamedTuple

__all__ = ["Problem", "Recurrence"]


class Problem(NamedTuple):
    """A recurrence over a whole sequence."""

    inputs: Any  # (B, T, D)
    h: Any  # (B, U) initial hidden state
    c: Any  # (B, U) initial cell state
    kernel: Any  # (D, K)
    recurrent_kernel: Any  # (U, K)
    bias: Any  # (K,) or None
    chunk_size: int  # C
    activation: Any  # as in `keras_onlstm.step.step`
    recurrent_activation: Any  # likewise
    mask: Any = None  # (B, T) boolean, False where the step is to be skipped, or None
    recurrent_mask: Any = None  # (B, U) factors of h wherever the gates read it, or None
    # Whether gradients are to be expected. TensorFlow cannot tell: without, the fused version keeps
    # nothing for them and runs once more where they are asked for all the same.
    training: bool = False


class Recurrence(NamedTuple):
    """What a recurrence returns."""

    h: Any  # (B, T, U) hidden state after every step, carried where masked
    last_h: Any  # (B, U)
    last_c: Any  # (B, U), float32 or wider
    forget_distance: Any  # (B, T), float32 or wider, 0 where masked
    input_distance: Any  # (B, T), float32 or wider, 0 where masked
