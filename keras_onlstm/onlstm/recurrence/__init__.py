"""The loop over time: what it is given, what it returns, and which version of it runs.

- `reference`: the readable one, `step` in a loop, or without a loop for one row of time. What is
  faster must equal it.
- `fused`: the fast one, with gradients derived by hand; one file a backend, and what they share in
  `fused_step`, the equations, and `fused_groups`, the layout of the states.
"""

from keras_onlstm.onlstm.recurrence import fused, reference
from keras_onlstm.onlstm.recurrence.problem import Problem, Recurrence
from keras_onlstm.utils.substitution import Substitution

__all__ = ["Problem", "Recurrence", "readable", "refusal", "run", "substituted"]

refusal = fused.refusal

# A context in which every `ONLSTM` runs another function from `Problem` to `Recurrence`, whichever
# it would have chosen.
substituted = Substitution("recurrence")


def run(problem: Problem, fuse: bool) -> Recurrence:
    """Runs the recurrence over a whole sequence, fused or not: the one place that chooses how."""
    other = substituted.function
    if other is not None:  # a model is exported, or compared with an exported one
        return other(problem)
    return fused.run(problem) if fuse else readable(problem)


def readable(problem: Problem) -> Recurrence:
    """`run` without the fused version: its loop, if any, runs wherever the backend does."""
    return (reference.run_single if problem.inputs.shape[1] == 1 else reference.run)(problem)
