"""What trained models are asked, as linguists test people. No Keras."""

from keras_onlstm.evaluation import blanks, boundaries, minimal_pairs, sentence_completion

__all__ = ["blanks", "boundaries", "minimal_pairs", "sentence_completion"]
