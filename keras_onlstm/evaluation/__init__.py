"""What trained models are asked, as linguists test people. No Keras."""

from keras_onlstm.evaluation import minimal_pairs

__all__ = ["minimal_pairs"]
