"""Text as ids: vocabularies, corpora, sentences in batches. No Keras."""

from keras_onlstm.text import corpus, sentences, vocabulary

__all__ = ["corpus", "sentences", "vocabulary"]
