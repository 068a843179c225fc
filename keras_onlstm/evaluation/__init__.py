"""Evaluation of trained models on linguistic tasks. Does not import Keras."""

from keras_onlstm.evaluation import boundaries, minimal_pairs, reranking, sentence_completion

__all__ = ["boundaries", "minimal_pairs", "reranking", "sentence_completion"]
