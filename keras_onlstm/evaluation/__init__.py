"""What trained models are asked, as linguists test people. No Keras."""

from keras_onlstm.evaluation import boundaries, minimal_pairs

__all__ = ["boundaries", "minimal_pairs"]
