"""Parser: trees of sentences from the distances of a trained language model.

Neither Keras nor NLTK is imported before it is needed: with the package's model or an exported one
Keras never is, and a parser is there in a fraction of the time.
"""

import itertools
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets.treebank import known_form
from keras_onlstm.loading import load_model
from keras_onlstm.parsing import brackets, build_tree, vote, with_punctuation
from keras_onlstm.parsing.trees import METHODS
from keras_onlstm.parsing.votes import check_methods
from keras_onlstm.runtime import FORMATS
from keras_onlstm.text import splitting, tokens
from keras_onlstm.text.sentences import DistanceModel, chosen_gates
from keras_onlstm.text.splitting import words_of
from keras_onlstm.text.tokens import Token
from keras_onlstm.text.vocabulary import check_vocabulary
from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.types import NltkTree, Sentence, StrPath

__all__ = ["Parsed", "Parser", "Row"]


class Parsed(NamedTuple):
    """A sentence that was read.

    Attributes:
        words: list.
        distances: array (rows, words), as `Parser.distances` has them, of the gate that counts.
        tree: `nltk.Tree`, or `None` if there is no word.
        tokens: list of `text.tokens.Token`: the words and the punctuation, each with its place in
            the text that was given.
        source: integer, which of the texts or lists of words that were given it is from, counted
            from 0: a text may have several sentences.
    """

    words: list[str]
    distances: np.ndarray
    tree: NltkTree | None
    tokens: list[Token]
    source: int


class Row(NamedTuple):
    """What came of one text of many.

    Attributes:
        words: list of lists, the words of each of its sentences that has any.
        trees: list of `nltk.Tree`, one for each of these.
        error: why the text could not be read, or `None`. Blank text is not an error.
    """

    words: list[list[str]]
    trees: list[NltkTree]
    error: str | None


class Parser:
    """Parses sentences without ever having seen a tree.

    A language model reads a sentence between two `<eos>`; the distances of one of its layers say
    how much of the order is forgotten at each word, and a tree follows from them. Several models
    put the trees of all their layers and of both master gates together by votes, `parsing.vote`,
    which is better than any of them. Words are read in lower case, with every run of digits as `N`,
    unless the vocabulary has them as they are; the trees have the words as they were given.

    Source: Shen et al. 2019, "Ordered Neurons", section 5.2, https://arxiv.org/abs/1810.09536.

    Args:
        model: `LanguageModel` of ON-LSTM layers, or `PRPN`, with a vocabulary, `models.Ensemble`,
            `compact.model.CompactModel` or `runtime.ExportedModel`; or a list of the first of
            these, of which an ensemble is made.
        layer: integer from 1 on, whose distances count, of every model. Default: what the model
            says; of one ON-LSTM the second, as in the paper, or its only one; of several all.
        method: `"greedy"` or `"binary"`: the tree of `parsing.build_tree` of the mean distances;
            `"votes"`: each layer that counts votes. Default: `"greedy"` of one model, as in the
            paper, `"votes"` of several.
        about: where the model comes from, kept as an attribute.
        voters: which trees of a layer vote, `"greedy"`, `"binary"` or both.
        gate: `"forget"`, `"input"` or `"both"`, whose distances count. Default: `"forget"`, as in
            the paper, of votes `"both"`. PRPN's only one is `"syntactic"`.

    Attributes:
        rows: list of integers, which rows of the distances count.

    Raises:
        ValueError: if the layer, the method or a voter does not exist, or models do not go
            together.

    Example:

    >>> from keras_onlstm import Parser
    >>> parser = Parser.load()
    >>> parser.parse("prices fell").leaves()
    ['prices', 'fell']
    >>> parser.distances("prices fell").shape
    (15, 2)
    """

    def __init__(
        self,
        model: DistanceModel | Sequence[DistanceModel],
        layer: int | None = None,
        method: str | None = None,
        about: Any = None,
        voters: str | Iterable[str] = METHODS,
        gate: str | None = None,
    ) -> None:
        if isinstance(model, Sequence):
            model = model[0] if len(model) == 1 else _together(model)
        members = model.members
        if not model.gates:
            raise ValueError("An LSTM has no distances: recurrent='onlstm' has.")
        if method is None:
            method = "greedy" if len(members) == 1 else "votes"
        if method not in (*METHODS, "votes"):
            raise ValueError(f"method is 'greedy', 'binary' or 'votes', not {method!r}.")
        if layer is None:
            layer = model.default_layer
        if gate is None:
            gate = "both" if method == "votes" and len(model.gates) == 2 else model.gates[0]
        self.gate = gate
        self.model = model
        self.layer = None if layer is None else integer("layer", layer, 1, min(members))
        self.method = method
        self.about = about
        self.voters = check_methods("voters", voters)
        self.rows = _rows(members, self.layer, len(chosen_gates(gate, model.gates)))
        self._vocabulary = frozenset(model.vocabulary or ())

    @classmethod
    def load(
        cls,
        name_or_path: StrPath | Sequence[StrPath] | None = None,
        layer: int | None = None,
        method: str | None = None,
        provider: str = "cpu",
        threads: int | None = None,
        voters: str | Iterable[str] = METHODS,
        gate: str | None = None,
        keras: bool = False,
    ) -> Self:
        """Loads a parser that works at once.

        Args:
            name_or_path: a `.keras` file, an `.npz` file of `save_eight_bit`, the directory of a
                run of `examples/language_modeling.py`, or an exported `.onnx` or `.tflite` file,
                which needs neither Keras nor TensorFlow; or a list of such, none of them exported,
                whose models parse together. Default: the models of the package, which vote.
            layer: as in the class.
            method: likewise.
            provider: where an exported file runs, `"cpu"` or `"cuda"`, as in `runtime.load`.
            threads: how many an exported file runs on; default: the runtime decides.
            voters: as in the class.
            gate: likewise.
            keras: whether the model of an `.npz` file, and so that of the package, is to be one of
                Keras: for `Parser.model`, or on a GPU. Default: NumPy alone reads it, if it is the
                only file and of ON-LSTM layers.

        Returns:
            `Parser`.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it is damaged, no language model, or does not go with the arguments or
                with the others.
            ImportError: if what an exported file runs on is not installed.
        """
        source = name_or_path
        paths: Sequence[Any] = source if isinstance(source, list | tuple) else [source]
        if len(paths) > 1:
            for path in paths:
                if Path(path).suffix in FORMATS:
                    raise ValueError(
                        f"{path}: an exported file parses by itself. Put the models into one "
                        "before they are exported: save_eight_bit(Ensemble(models), PATH)."
                    )
        keras = keras or len(paths) > 1  # which puts models together
        loaded = [load_model(path, provider, threads, keras) for path in paths]
        for path, (model, _) in zip(paths, loaded, strict=True):
            if not hasattr(model, "distances"):
                kind = type(model).__name__
                raise ValueError(f"{path}: {kind}, not a LanguageModel.")
            check_vocabulary(model.vocabulary, path)
        models, about = [model for model, _ in loaded], [about for _, about in loaded]
        return cls(models, layer, method, about[0] if len(about) == 1 else about, voters, gate)

    def __call__(
        self, sentence: Sentence, split: bool = True, punctuation: bool = False
    ) -> NltkTree:
        """The tree of a sentence, as `parse`."""
        return self.parse(sentence, split, punctuation)

    def tokenize(self, sentence: Sentence) -> list[str]:
        """The words of a sentence, as the Penn Treebank has them, without punctuation.

        Args:
            sentence: text, or a list of words, which is returned as it is.

        Returns:
            List of words: of text, those with a letter or a digit, of all its sentences. `don't` is
            `do` and `n't`.

        Raises:
            ValueError: if it is neither, or a word is empty or holds white space, or there are
                control characters.
        """
        tokens.check_sentence(sentence)
        return words_of(*splitting.sentences_of(sentence, False))

    def parse(self, sentence: Sentence, split: bool = True, punctuation: bool = False) -> NltkTree:
        """The tree of a sentence.

        Args:
            sentence: text, or a list of words.
            split: whether a text of several sentences is refused; if not, one tree is made of all.
            punctuation: as in `read`.

        Returns:
            `nltk.Tree`.

        Raises:
            ValueError: if there is no word in it, if it has several sentences, or as `read` does.
        """
        tokens.check_sentence(sentence)
        found = splitting.sentences_of(sentence, split)
        if len(found) > 1:
            raise ValueError(
                f"sentence 1: has {len(found)} sentences, the second begins with "
                f"{reprlib.repr(found[1][0].text)}. parse_many([text]) gives a tree of each, "
                "parse(text, split=False) one tree of all."
            )
        return next(self.parse_many([sentence], split=split, punctuation=punctuation))

    def parse_many(
        self,
        sentences: Iterable[Sentence],
        block: int = 2048,
        split: bool = True,
        punctuation: bool = False,
    ) -> Iterator[NltkTree]:
        """The trees of many sentences, which are read in batches of similar length.

        Args:
            sentences: iterable of texts or lists of words.
            block: how many sentences to take from it at once.
            split: as in `read`.
            punctuation: likewise.

        Yields:
            `nltk.Tree`, in the order of the sentences.

        Raises:
            ValueError: if a sentence has no word, or as `read` does.
        """
        for parsed in self.read(sentences, block, split, punctuation):
            if parsed.tree is None:
                raise ValueError(f"sentence {parsed.source + 1}: has no words.")
            yield parsed.tree

    def read(
        self,
        sentences: Iterable[Sentence],
        block: int = 2048,
        split: bool = True,
        punctuation: bool = False,
    ) -> Iterator[Parsed]:
        """Words, distances and trees of many sentences.

        Args:
            sentences: as in `parse_many`.
            block: likewise.
            split: whether a text is split into its sentences, and each is read by itself. If not,
                a text is one sentence, as a list of words always is.
            punctuation: whether the trees have the punctuation of a text, as
                `parsing.with_punctuation` puts it there. The model reads the words alone.

        Yields:
            `Parsed`, at least one of each text. The tree of a sentence without words is `None`.

        Raises:
            ValueError: if a sentence is neither text nor a list of words, a word is empty or holds
                white space, or there are control characters; the message has its number.
        """
        tokens.check_sentences(sentences)
        found = splitting.numbered(sentences, split)
        while batch := list(itertools.islice(found, block)):
            split_words = [words_of(sentence) for _, sentence in batch]
            measured = self._measure(split_words, self.gate)
            for (source, sentence), words, distances in zip(
                batch, split_words, measured, strict=True
            ):
                tree = self._tree(sentence, words, distances, punctuation) if words else None
                yield Parsed(words, distances, tree, sentence, source)

    def _tree(self, sentence, words, distances, punctuation):
        tree = self.tree(distances, words)
        if not punctuation:
            return tree
        texts, _, _, is_word = zip(*sentence, strict=True)
        return with_punctuation(tree, texts, is_word)

    def read_rows(
        self,
        texts: Iterable[Any],
        block: int = 2048,
        max_words: int | None = None,
        punctuation: bool = False,
    ) -> Iterator[Row]:
        """The trees of texts of any kind, where one that cannot be read ends nothing.

        Args:
            texts: iterable of texts or lists of words.
            block: how many texts to take from it at once.
            max_words: positive integer, of a sentence; a text with a longer one is not read.
            punctuation: as in `read`.

        Yields:
            `Row`, one for each text.

        Example:

        >>> from keras_onlstm import Parser
        >>> rows = list(Parser.load().read_rows(["Prices fell. It rained.", "...", None]))
        >>> [len(row.trees) for row in rows], [row.error for row in rows][1:]
        ([2, 0, 0], ['has no words.', 'is None, neither text nor a list of words.'])
        """
        most = None if max_words is None else integer("max_words", max_words)
        texts = iter(texts)
        while batch := list(itertools.islice(texts, block)):
            split = [splitting.sentences_or_error(text, most) for text in batch]
            found = [sentence for sentences, _ in split for sentence in sentences]
            words = list(map(words_of, found))
            trees = (
                self._tree(*given, punctuation)
                for given in zip(found, words, self._measure(words, self.gate), strict=True)
            )
            left = iter(words)
            for sentences, error in split:
                count = len(sentences)
                of_text = list(itertools.islice(left, count))
                yield Row(of_text, list(itertools.islice(trees, count)), error)

    def parse_dataset(
        self,
        dataset: Iterable[Mapping[str, Any]],
        column: str = "text",
        block: int = 2048,
        max_words: int | None = None,
        punctuation: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """The rows of a data set with the trees of a column, one block after the other.

        Args:
            dataset: iterable of mappings, such as a split of Hugging Face's `datasets`; of an Arrow
                table `table.to_pylist()`.
            column: string, of the texts.
            block: as in `read_rows`.
            max_words: likewise.
            punctuation: likewise.

        Yields:
            Dictionaries: those of the data set with `trees`, list of texts in brackets, `words`,
            list of lists, and `error`, why the text could not be read, or `None`.

        Raises:
            ValueError: if a row has no such column.

        Example:

        >>> from keras_onlstm import Parser
        >>> list(Parser.load().parse_dataset([{"id": 7, "text": "Prices fell."}]))
        [{'id': 7, 'text': 'Prices fell.', 'words': [['Prices', 'fell']], \
'trees': ['(X Prices fell)'], 'error': None}]
        """
        given = iter(dataset)
        for first in itertools.count(1, block):
            batch = list(itertools.islice(given, block))
            if not batch:
                return
            for number, row in enumerate(batch, first):
                if column not in row:
                    raise ValueError(f"row {number}: has no {column!r}; it has {', '.join(row)}.")
            texts = [row[column] for row in batch]
            for row, found in zip(
                batch, self.read_rows(texts, block, max_words, punctuation), strict=True
            ):
                trees = list(map(brackets, found.trees))
                yield {**row, "words": found.words, "trees": trees, "error": found.error}

    def tree(self, distances: npt.ArrayLike, words: Sequence[str]) -> NltkTree:
        """The tree that distances give, without reading the sentence again.

        Args:
            distances: array (rows, words) of all layers, as `distances` gives it of the gate that
                counts.
            words: list.

        Returns:
            `nltk.Tree`.

        Raises:
            ValueError: if there is no word, or not a distance for each in every row that counts.
        """
        distances = np.asarray(distances)
        if distances.ndim != 2 or len(distances) <= max(self.rows):
            raise ValueError(
                f"distances have the shape {distances.shape}, and row {max(self.rows) + 1} counts: "
                f"distances(sentence, {self.gate!r}) has it."
            )
        counting = distances[self.rows]
        if self.method == "votes":
            return vote(counting, words, self.voters)
        # In double precision, where the mean of one layer is that layer to the bit.
        return build_tree(counting.mean(axis=0, dtype="float64"), words, self.method)

    def distances(self, sentence: Sentence, gate: str | None = None) -> np.ndarray:
        """The distances of every layer at every word of a sentence.

        Args:
            sentence: text, or a list of words.
            gate: of the model's `gates`, or `"both"`. Default: the first one, that of the forget
                gates of ON-LSTM.

        Returns:
            Array (rows, words), in [0, 1): the layers of the model, of several one after the other;
            of both gates those of the forget gates first.
        """
        return self.measure([sentence], gate)[0]

    def measure(self, sentences: Iterable[Sentence], gate: str | None = None) -> list[np.ndarray]:
        """The distances of many sentences.

        Args:
            sentences: list of texts or lists of words.
            gate: as in `distances`.

        Returns:
            List of arrays (rows, words).
        """
        tokens.check_sentences(sentences)
        return self._measure(
            [words_of(found) for _, found in splitting.numbered(sentences, False)], gate
        )

    def _measure(self, sentences, gate):
        known = [[known_form(word, self._vocabulary) for word in words] for words in sentences]
        return self.model.distances(known, gate)


def _together(models):
    from keras_onlstm.models import Ensemble  # Keras

    return Ensemble(models)


def _rows(members, layer, gates):
    """The rows of the distances that count: of every gate, one layer of every model or all."""
    rows: list[int] = []
    first = 0
    for layers in gates * tuple(members):
        rows += range(first, first + layers) if layer is None else [first + layer - 1]
        first += layers
    return rows
