"""The loop over time of a reading layer: which version of it runs."""

from keras_onlstm.prpn.reading import Reading, readable
from keras_onlstm.prpn.reading_fused import fused
from keras_onlstm.utils.substitution import Substitution
from keras_onlstm.utils.types import Tensor

__all__ = ["run", "substituted"]

# A context in which every reading layer runs another function, of `Reading`, as `readable` is.
substituted = Substitution("reading")


def run(problem: Reading, fuse: bool) -> Tensor:
    """Runs the loop: the one place that chooses how.

    Args:
        problem: `Reading`.
        fuse: whether the fast version is wanted.

    Returns:
        Hidden and cell states after every step, (2, T, B, U).
    """
    other = substituted.function
    if other is not None:  # a model is exported, or compared with an exported one
        return other(problem)
    return fused(problem) if fuse else readable(problem)
