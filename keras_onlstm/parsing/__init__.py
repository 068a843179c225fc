"""Trees from distances, their scores, and baselines. No Keras."""

from keras_onlstm.parsing.scores import Scores, score
from keras_onlstm.parsing.trees import (
    balanced,
    brackets,
    build_tree,
    left_branching,
    random_tree,
    right_branching,
)

__all__ = [
    "Scores",
    "balanced",
    "brackets",
    "build_tree",
    "left_branching",
    "random_tree",
    "right_branching",
    "score",
]
