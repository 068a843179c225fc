"""Evaluation of trained models on linguistic tasks. Does not import Keras."""

from keras_onlstm.evaluation import (
    blanks,
    boundaries,
    candidates,
    minimal_pairs,
    reranking,
    sentence_completion,
)

__all__ = [
    "blanks",
    "boundaries",
    "candidates",
    "minimal_pairs",
    "reranking",
    "sentence_completion",
]
