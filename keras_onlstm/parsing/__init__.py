"""Trees from distances, baselines, scores, pictures. Without Keras."""

from keras_onlstm.drawing.heat_maps import draw_heat_maps, save_heat_maps
from keras_onlstm.parsing.pictures import conll, draw, draw_pair, outline, save_picture
from keras_onlstm.parsing.report import draw_page, write_report
from keras_onlstm.parsing.scores import Scores, score
from keras_onlstm.parsing.trees import (
    balanced,
    brackets,
    build_tree,
    left_branching,
    nested_json,
    random_tree,
    right_branching,
    with_punctuation,
)
from keras_onlstm.parsing.votes import consensus, vote

__all__ = [
    "Scores",
    "balanced",
    "brackets",
    "build_tree",
    "conll",
    "consensus",
    "draw",
    "draw_heat_maps",
    "draw_page",
    "draw_pair",
    "left_branching",
    "nested_json",
    "outline",
    "random_tree",
    "right_branching",
    "save_heat_maps",
    "save_picture",
    "score",
    "vote",
    "with_punctuation",
    "write_report",
]
