"""Parser: trees of sentences from the distances of a trained language model.

Neither Keras nor NLTK is imported before it is needed: with an exported model Keras never is, and a
parser is there in a fraction of the time.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.arguments import integer
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.parsing import build_tree
from keras_onlstm.parsing.trees import METHODS
from keras_onlstm.stored import load_model

__all__ = ["Parsed", "Parser"]


class Parsed(NamedTuple):
    """A sentence that was read.

    Attributes:
        words: list.
        distances: array (layers, words).
        tree: `nltk.Tree`, or `None` if there is no word.
    """

    words: list
    distances: np.ndarray
    tree: Any


class Parser:
    """Parses sentences without ever having seen a tree.

    A language model reads a sentence between two `<eos>`; the distances of one of its layers say
    how much of the order is forgotten at each word, and a tree follows from them. Words are read in
    lower case, with every run of digits as `N`, unless the vocabulary has them as they are; the
    trees have the words as they were given.

    Source: Shen et al. 2019, "Ordered Neurons", section 5.2, https://arxiv.org/abs/1810.09536.

    Args:
        model: `LanguageModel` of ON-LSTM layers, with a vocabulary, or `runtime.ExportedModel`.
        layer: integer from 1 on, whose distances count: 2 in the paper.
        method: `"greedy"` or `"binary"`, of `parsing.build_tree`.
        about: where the model comes from, kept as an attribute.

    Raises:
        ValueError: if the layer or the method does not exist.

    Example:

    >>> from keras_onlstm import Parser
    >>> parser = Parser.load()
    >>> parser.parse("prices fell").leaves()
    ['prices', 'fell']
    >>> parser.distances("prices fell").shape
    (3, 2)
    """

    def __init__(self, model, layer=2, method="greedy", about=None):
        if method not in METHODS:
            raise ValueError(f"method is 'greedy' or 'binary', not {method!r}.")
        self.model = model
        self.layer = integer("layer", layer, 1, model.num_layers)
        self.method = method
        self.about = about
        self._vocabulary = frozenset(model.vocabulary or ())

    @classmethod
    def load(cls, name_or_path=None, layer=2, method="greedy", provider="cpu", threads=None):
        """Loads a parser that works at once.

        Args:
            name_or_path: a `.keras` file, an `.npz` file of `save_compact`, the directory of a run
                of `examples/language_modeling.py`, or an exported `.onnx` or `.tflite` file, which
                needs neither Keras nor TensorFlow. Default: the model of the package.
            layer: as in the class.
            method: likewise.
            provider: where an exported file runs, `"cpu"` or `"cuda"`, as in `runtime.load`.
            threads: how many an exported file runs on; default: the runtime decides.

        Returns:
            `Parser`.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it is damaged, no language model, or does not go with the arguments.
            ImportError: if what an exported file runs on is not installed.
        """
        model, about = load_model(name_or_path, provider, threads)
        if not hasattr(model, "distances"):
            kind = type(model).__name__
            raise ValueError(f"{name_or_path}: a {kind}, not a LanguageModel.")
        return cls(model, layer, method, about)

    def tokenize(self, sentence):
        """The words of a sentence, as the Penn Treebank has them, without punctuation.

        Args:
            sentence: text, or a list of words, which is returned as it is.

        Returns:
            List of words: of text, those with a letter or a digit. `don't` is `do` and `n't`.
        """
        if not isinstance(sentence, str):
            return list(sentence)
        from nltk.tokenize import TreebankWordTokenizer

        found = TreebankWordTokenizer().tokenize(sentence)
        return [word for word in found if any(map(str.isalnum, word))]

    def parse(self, sentence):
        """The tree of a sentence.

        Args:
            sentence: text, or a list of words.

        Returns:
            `nltk.Tree`.

        Raises:
            ValueError: if there is no word in it.
        """
        return next(self.parse_many([sentence]))

    def parse_many(self, sentences, block=2048):
        """The trees of many sentences, which are read in batches of similar length.

        Args:
            sentences: iterable of texts or lists of words.
            block: how many sentences to take from it at once.

        Yields:
            `nltk.Tree`, in the order of the sentences.

        Raises:
            ValueError: if a sentence has no word.
        """
        for number, parsed in enumerate(self.read(sentences, block), 1):
            if parsed.tree is None:
                raise ValueError(f"sentence {number}: has no words.")
            yield parsed.tree

    def read(self, sentences, block=2048):
        """Words, distances and trees of many sentences.

        Args:
            sentences: as in `parse_many`.
            block: likewise.

        Yields:
            `Parsed`. The tree of a sentence without words is `None`.
        """
        sentences = map(self.tokenize, sentences)
        while batch := list(itertools.islice(sentences, block)):
            for words, distances in zip(batch, self.measure(batch), strict=True):
                chosen = distances[self.layer - 1]
                tree = build_tree(chosen, words, self.method) if words else None
                yield Parsed(words, distances, tree)

    def distances(self, sentence, gate="forget"):
        """The distances of every layer at every word of a sentence.

        Args:
            sentence: text, or a list of words.
            gate: `"forget"` or `"input"`, of `LanguageModel.distances`.

        Returns:
            Array (layers, words), in [0, 1).
        """
        return self.measure([sentence], gate)[0]

    def measure(self, sentences, gate="forget"):
        """The distances of many sentences.

        Args:
            sentences: list of texts or lists of words.
            gate: as in `distances`.

        Returns:
            List of arrays (layers, words).
        """
        sentences = map(self.tokenize, sentences)
        known = [[self._known(word) for word in sentence] for sentence in sentences]
        return self.model.distances(known, gate)

    def _known(self, word):
        """A word as the model knows it; `N`, which stands for digits already, stays."""
        return word if word in self._vocabulary else normalize(word)
