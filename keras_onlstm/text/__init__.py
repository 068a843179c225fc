"""Token ids: vocabularies, corpora, sentence batches. Without Keras."""

from keras_onlstm.text import corpus, sentences, vocabulary

__all__ = ["corpus", "sentences", "vocabulary"]
