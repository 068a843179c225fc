"""The fast recurrence: who can have it, and which file runs it.

`fused_step` has its equations, and says what makes it fast.
"""

from keras import activations, backend, ops

from keras_onlstm.onlstm.recurrence import fused_jax, fused_tensorflow, fused_torch
from keras_onlstm.onlstm.recurrence.fused_step import Given, Sizes
from keras_onlstm.onlstm.recurrence.problem import Problem, Recurrence
from keras_onlstm.utils.types import Activation

__all__ = ["refusal", "run"]

_VERSIONS = {"tensorflow": fused_tensorflow, "jax": fused_jax, "torch": fused_torch}


def refusal(activation: Activation, recurrent_activation: Activation) -> str | None:
    """Why these activations cannot be fused, or `None`: the gradients of one pair are derived."""
    for name, function, fusible in (
        ("activation", activation, activations.tanh),
        ("recurrent_activation", recurrent_activation, activations.sigmoid),
    ):
        if function is not fusible:
            shown = getattr(function, "__name__", None) or repr(function)
            return f"{name} is {shown}, and only {fusible.__name__} is fused"
    return None


def run(problem: Problem) -> Recurrence:
    """The whole recurrence, with tanh and sigmoid.

    Args:
        problem: `Problem`, whose activations `refusal` does not refuse.

    Returns:
        `Recurrence`.
    """
    dtype = backend.standardize_dtype(problem.h.dtype)
    sizes = Sizes(problem.h.shape[-1], problem.chunk_size, dtype)
    tensors = Given(
        ops.cast(problem.inputs, dtype),
        problem.h,
        ops.cast(problem.c, sizes.wide),
        ops.cast(problem.kernel, dtype),
        ops.cast(problem.recurrent_kernel, dtype),
        None if problem.bias is None else ops.cast(problem.bias, dtype),
        problem.mask,
        problem.recurrent_mask,
    )
    return Recurrence(*_VERSIONS[backend.backend()].run(tensors, sizes, problem.training))
