"""The values that shape the training of a TreeLSTM. No Keras: `--help` prints them."""

from keras_onlstm.training.settings import Setting
from keras_onlstm.utils.reading import Choice, Integer, Number

__all__ = ["TREE_SETTINGS", "TREE_VALUES"]

_RATE = Number(0.0, 1.0)
TREE_SETTINGS = {
    "embedding_dim": Setting(Integer(1), "size of word vectors"),
    "units": Setting(Integer(1), "size of the layers"),
    "num_layers": Setting(Integer(1, 100), "layers of each of the four LSTMs"),
    "left_layers": Setting(Integer(1, 100), "layers of the one that reads left dependents"),
    "input_dropout": Setting(_RATE, "share of the word vectors' numbers dropped"),
    "output_dropout": Setting(_RATE, "the same before the softmax"),
    "normalize": Setting(bool, "words in lower case, digits as N"),
    "least_count": Setting(Integer(1), "words of the training trees that are rarer are unknown"),
    "longest": Setting(Integer(1), "sentences of more words are not trained on"),
    "epochs": Setting(Integer(1), "epochs, of halved the most there are"),
    "batch_size": Setting(Integer(1), "trees in a batch"),
    "optimizer": Setting(Choice(("adam", "halved")), "adam: up, and down along a cosine; halved: "
                         "SGD on the sum over a sentence, half the rate and the best weights when "
                         "validation stops falling (the published recipe)"),
    "learning_rate": Setting(Number(0.0), "learning rate, of adam the highest"),
    "warmup": Setting(_RATE, "share of all steps in which that of adam rises"),
    "clip": Setting(Number(0.0), "largest norm of the gradient"),
    "noise": Setting(Integer(0), "words of noise for every word, by noise-contrastive estimation; "
                     "0: the softmax"),
    "ln_z": Setting(Number(), "logarithm of its constant Z at the start"),
    "learn": Setting(Choice(("ln_z", "z", "nothing")), "what of it is learnt; z: as published"),
}  # fmt: skip
TREE_VALUES = {  # where a preset does not say
    "num_layers": 1, "left_layers": 1, "input_dropout": 0.0, "normalize": True, "least_count": 2,
    "longest": 150, "clip": 5.0, "warmup": 0.05, "noise": 0, "ln_z": 9.0, "learn": "ln_z",
}  # fmt: skip
