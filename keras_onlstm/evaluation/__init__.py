"""What trained models are asked, as linguists test people, and what they do for a parser. No Keras."""

from keras_onlstm.evaluation import boundaries, minimal_pairs, reranking

__all__ = ["boundaries", "minimal_pairs", "reranking"]
