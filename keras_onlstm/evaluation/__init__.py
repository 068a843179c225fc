"""What trained models are asked, as linguists test people, and what trees they choose. No Keras."""

from keras_onlstm.evaluation import boundaries, candidates, minimal_pairs, reranking

__all__ = ["boundaries", "candidates", "minimal_pairs", "reranking"]
