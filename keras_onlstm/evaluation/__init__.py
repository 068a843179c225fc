"""What trained models are asked, as linguists test people, and what they choose. No Keras."""

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
