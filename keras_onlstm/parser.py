"""Parser: builds constituency trees from the distances of a trained language model.

Keras and NLTK are imported on first use. The package's model and exported models never need Keras,
so their parsers load in a fraction of the time.
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
from keras_onlstm.text import tokens
from keras_onlstm.text.sentences import DistanceModel, chosen_gates
from keras_onlstm.text.tokens import Token, words_of
from keras_onlstm.text.vocabulary import check_vocabulary
from keras_onlstm.utils import NltkTree, Sentence, StrPath
from keras_onlstm.utils.validation import (
    check_choice,
    check_integer,
    renamed_arguments,
    renamed_attribute,
)


class Parsed(NamedTuple):
    """A parsed sentence."""

    words: list[str]
    distances: np.ndarray  # (rows, words), see `Parser.distances`, for the parser's gate
    tree: NltkTree | None  # `None` if the sentence has no words
    tokens: list[Token]  # words and punctuation with their positions in the text
    source: int  # 0-based index of the input that has the sentence; a text may have several


class Row(NamedTuple):
    """The result for one text of many."""

    words: list[list[str]]  # of each of its sentences that has any
    trees: list[NltkTree]  # of these sentences
    error: str | None  # why the text could not be parsed. Blank text is not an error


class Parser:
    """Unsupervised constituency parser: its language model was never trained on trees.

    The model reads `<eos>` and then the words. The distances of a layer measure how much of the
    cell state is forgotten at each word; the tree is built from them. Several models combine the
    trees of all layers and both master gates by voting (`parsing.vote`), which is more accurate
    than any of them. Words outside the vocabulary are read in lower case, with every run of digits
    as `N`; the trees have the original words.

    Source: Shen et al. 2019, "Ordered Neurons", section 5.2, https://arxiv.org/abs/1810.09536.

    Args:
        model: `LanguageModel` of ON-LSTM layers, or `PRPN`, with a vocabulary, `models.Ensemble`,
            `compact.CompactModel` or `runtime.ExportedModel`; or a list of `LanguageModel`, which
            becomes an ensemble.
        layer: 1-based number of the layer, of every model, whose distances build the tree. Default:
            `model.default_layer`; for one ON-LSTM the second layer, as in the paper, or its only
            one; for several models all layers.
        method: `"greedy"` or `"binary"` applies `parsing.build_tree` to the mean distances;
            `"votes"` lets each used layer vote. Default: `"greedy"` for one model, as in the paper,
            `"votes"` for several.
        metadata: JSON-serializable object, where the model comes from.
        voters: which trees of a layer vote, `"greedy"`, `"binary"` or both.
        gate: master gate whose distances build the tree: `"forget"`, `"input"` or `"both"`.
            Default: `"forget"`, as in the paper; `"both"` for votes. PRPN has only `"syntactic"`.

    Attributes:
        rows: list of integers, indices of the used rows of the distances.

    Raises:
        ValueError: if a layer, method or voter does not exist, or models cannot be combined.

    Example:

    >>> from keras_onlstm import Parser
    >>> parser = Parser.load()
    >>> parser.parse("prices fell").leaves()
    ['prices', 'fell']
    >>> parser.distances("prices fell").shape
    (15, 2)
    """

    @renamed_arguments(about="metadata")
    def __init__(
        self,
        model: DistanceModel | Sequence[DistanceModel],
        layer: int | None = None,
        method: str | None = None,
        metadata: Any = None,
        voters: str | Iterable[str] = METHODS,
        gate: str | None = None,
    ) -> None:
        if isinstance(model, Sequence):
            model = model[0] if len(model) == 1 else _ensemble(model)
        layers = model.layers_per_model
        if not model.gates:
            raise ValueError(
                "This model has no distances, because it is an LSTM. Use recurrent='onlstm'."
            )
        if method is None:
            method = "greedy" if len(layers) == 1 else "votes"
        check_choice("method", method, (*METHODS, "votes"))
        layer = model.default_layer if layer is None else layer
        if gate is None:
            gate = "both" if method == "votes" and len(model.gates) == 2 else model.gates[0]
        self.gate = gate
        self.model = model
        self.layer = None if layer is None else check_integer("layer", layer, 1, min(layers))
        self.method = method
        self.metadata = metadata
        self.voters = check_methods("voters", voters)
        self.rows = _rows(layers, self.layer, len(chosen_gates(gate, model.gates)))
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
        """Loads a model and returns its parser.

        Args:
            name_or_path: a `.keras` file, a compact `.npz` file, the directory of a run, or an
                exported `.onnx` or `.tflite` file, which needs neither Keras nor TensorFlow; or a
                list of files that are not exported, whose models form an ensemble. Default: the
                package's models, which vote.
            layer: as of `Parser`, like `method`, `voters` and `gate`.
            method: `"greedy"`, `"binary"` or `"votes"`.
            provider: device for an exported file, `"cpu"` or `"cuda"`, as in `runtime.load`.
            threads: number of threads for an exported file; default: the runtime decides.
            voters: `"greedy"`, `"binary"` or both.
            gate: name of the master gate.
            keras: whether an `.npz` file becomes a Keras model, for `Parser.model` or a GPU.
                Without it, NumPy computes the distances of one such file of ON-LSTM layers.

        Raises:
            FileNotFoundError: if the file does not exist.
            ValueError: if it is damaged, is not a language model, or does not fit the arguments or
                the other models.
            ImportError: if the runtime of an exported file is missing.
        """
        paths: Sequence[Any] = (
            name_or_path if isinstance(name_or_path, list | tuple) else [name_or_path]
        )
        if len(paths) > 1:
            for path in paths:
                if Path(path).suffix in FORMATS:
                    raise ValueError(
                        f"{path}: exported models cannot be combined. Export the models as one: "
                        "save_eight_bit(Ensemble(models), PATH), then keras-onlstm export."
                    )
        keras = keras or len(paths) > 1  # an ensemble is a Keras model
        loaded = [load_model(path, provider, threads, keras) for path in paths]
        for path, (model, _) in zip(paths, loaded, strict=True):
            if not hasattr(model, "distances"):
                kind = type(model).__name__
                raise ValueError(f"{path}: must be a language model, got {kind}.")
            check_vocabulary(model.vocabulary, path)
        models, metadata = ([pair[i] for pair in loaded] for i in range(2))
        origin = metadata[0] if len(metadata) == 1 else metadata
        return cls(models, layer, method, origin, voters, gate)

    def __call__(
        self, sentence: Sentence, split: bool = True, punctuation: bool = False
    ) -> NltkTree:
        """Calls `parse`."""
        return self.parse(sentence, split, punctuation)

    def tokenize(self, sentence: Sentence) -> list[str]:
        """Splits text into the words of all its sentences as the Penn Treebank does.

        Words have a letter or a digit; `don't` becomes `do` and `n't`. A list of words is returned
        unchanged. Raises `ValueError` as `parse_detailed` does.
        """
        tokens.check_sentence(sentence)
        return words_of(*tokens.sentences_of(sentence, False))

    def parse(self, sentence: Sentence, split: bool = True, punctuation: bool = False) -> NltkTree:
        """Parses one sentence and returns its `nltk.Tree`.

        Args:
            sentence: text, or a list of words.
            split: whether to look for ends of sentences; a text of several is then a `ValueError`.
                If not, the whole text gets one tree.
            punctuation: whether the tree has punctuation.

        Raises:
            ValueError: if it has no words or several sentences, or as by `parse_detailed`.
        """
        tokens.check_sentence(sentence)
        sentences = tokens.sentences_of(sentence, split)
        if len(sentences) > 1:
            raise ValueError(
                f"sentence 1: the text has {len(sentences)} sentences, the second begins with "
                f"{reprlib.repr(sentences[1][0].text)}. parse_many([text]) returns a tree of each, "
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
        """Yields the `nltk.Tree` of each of many sentences.

        Arguments as of `parse_detailed`. A sentence without words raises `ValueError`.
        """
        for parsed in self.parse_detailed(sentences, block, split, punctuation):
            if parsed.tree is None:
                raise ValueError(f"sentence {parsed.source + 1}: has no words.")
            yield parsed.tree

    def parse_detailed(
        self,
        sentences: Iterable[Sentence],
        block: int = 2048,
        split: bool = True,
        punctuation: bool = False,
    ) -> Iterator[Parsed]:
        """Computes words, distances and trees of many sentences.

        Args:
            sentences: iterable of texts or lists of words.
            block: how many sentences to take from it at once.
            split: whether to split a text into sentences and parse each separately. If not, a text
                is one sentence, as a list of words always is.
            punctuation: whether `parsing.with_punctuation` adds the punctuation of a text to its
                trees. The model reads only the words.

        Yields:
            `Parsed`, at least one for each text. The tree of a sentence without words is `None`.

        Raises:
            ValueError: if a sentence is neither text nor a list of words, a word is empty or
                contains white space, or there are control characters.
        """
        tokens.check_sentences(sentences)
        numbered = tokens.numbered(sentences, split)
        while batch := list(itertools.islice(numbered, block)):
            batch_words = [words_of(sentence) for _, sentence in batch]
            results = zip(batch, batch_words, self._distances(batch_words, self.gate), strict=True)
            for (source, sentence), words, distances in results:
                tree = self._tree(sentence, words, distances, punctuation) if words else None
                yield Parsed(words, distances, tree, sentence, source)

    def _tree(self, sentence, words, distances, punctuation):
        tree = self.tree(distances, words)
        if not punctuation:
            return tree
        texts, _, _, is_word = zip(*sentence, strict=True)
        return with_punctuation(tree, texts, is_word)

    def parse_batch(
        self,
        texts: Iterable[Any],
        block: int = 2048,
        max_words: int | None = None,
        punctuation: bool = False,
    ) -> Iterator[Row]:
        """Yields a `Row` for each text. One that cannot be parsed has an error.

        Args:
            texts: iterable of texts or lists of words.
            block: how many texts to take from it at once.
            max_words: positive integer; texts with a longer sentence are not parsed.
            punctuation: whether trees have punctuation.

        >>> rows = list(Parser.load().parse_batch(["Prices fell. It rained.", "...", None]))
        >>> [len(row.trees) for row in rows], [row.error for row in rows][1:]
        ([2, 0, 0], ['has no words.', 'must be text or a list of words, got None.'])
        """
        maximum = None if max_words is None else check_integer("max_words", max_words)
        texts = iter(texts)
        while batch := list(itertools.islice(texts, block)):
            results = [tokens.sentences_or_error(text, maximum) for text in batch]
            sentences = list(itertools.chain.from_iterable(found for found, _ in results))
            words = list(map(words_of, sentences))
            trees = (
                self._tree(*parts, punctuation)
                for parts in zip(sentences, words, self._distances(words, self.gate), strict=True)
            )
            remaining = iter(words)
            for found, error in results:
                count = len(found)
                text_words = list(itertools.islice(remaining, count))
                yield Row(text_words, list(itertools.islice(trees, count)), error)

    def parse_dataset(
        self,
        dataset: Iterable[Mapping[str, Any]],
        column: str = "text",
        block: int = 2048,
        max_words: int | None = None,
        punctuation: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Parses a text column of a data set.

        Args:
            dataset: iterable of mappings, such as a split of Hugging Face's `datasets`; for an
                Arrow table, pass `table.to_pylist()`.
            column: name of the column.
            block: how many rows to take at once.
            max_words: positive integer; texts with a longer sentence are not parsed.
            punctuation: whether trees have punctuation.

        Yields:
            The rows as dictionaries, with `trees`, list of bracketed strings, `words`, list of
            lists, and `error`, why the text could not be parsed, or `None`.

        Raises:
            ValueError: if a row lacks the column.

        >>> list(Parser.load().parse_dataset([{"id": 7, "text": "Prices fell."}]))
        [{'id': 7, 'text': 'Prices fell.', 'words': [['Prices', 'fell']], \
'trees': ['(X Prices fell)'], 'error': None}]
        """
        rows = enumerate(dataset, 1)
        while batch := list(itertools.islice(rows, block)):
            for number, row in batch:
                if column not in row:
                    raise ValueError(f"row {number}: has no {column!r}; it has {', '.join(row)}.")
            results = self.parse_batch(
                [row[column] for _, row in batch], block, max_words, punctuation
            )
            for (_, row), result in zip(batch, results, strict=True):
                trees = list(map(brackets, result.trees))
                yield {**row, "words": result.words, "trees": trees, "error": result.error}

    def tree(self, distances: npt.ArrayLike, words: Sequence[str]) -> NltkTree:
        """Builds the `nltk.Tree` of words from their `distances` for the parser's gate.

        The array (rows, words) has the rows of all layers. The model does not run.
        """
        rows = np.asarray(distances)
        if rows.ndim != 2 or len(rows) <= max(self.rows):
            raise ValueError(
                f"distances must have at least {max(self.rows) + 1} rows, got shape "
                f"{rows.shape}. Compute them with distances(sentence, {self.gate!r})."
            )
        rows = rows[self.rows]
        if self.method == "votes":
            return vote(rows, words, self.voters)
        # In float64, so that the mean of one layer equals that layer exactly.
        return build_tree(rows.mean(axis=0, dtype="float64"), words, self.method)

    def distances(self, sentence: Sentence, gate: str | None = None) -> np.ndarray:
        """Computes the distances of every layer at every word of a sentence.

        Args:
            sentence: text, or a list of words.
            gate: one of the model's `gates`, or `"both"`. Default: the first, `"forget"` or
                `"syntactic"`.

        Returns:
            Array (rows, words) in [0, 1), with a row per layer, model after model. For both gates,
            the rows of the forget gates come first.
        """
        return self.distances_many([sentence], gate)[0]

    def distances_many(
        self, sentences: Iterable[Sentence], gate: str | None = None
    ) -> list[np.ndarray]:
        """Computes the `distances` of many texts or lists of words."""
        tokens.check_sentences(sentences)
        numbered = tokens.numbered(sentences, False)
        return self._distances([words_of(sentence) for _, sentence in numbered], gate)

    def _distances(self, sentences, gate):
        known = [[known_form(word, self._vocabulary) for word in words] for words in sentences]
        return self.model.distances(known, gate)

    about = renamed_attribute("about", "metadata")
    read = renamed_attribute("read", "parse_detailed")
    read_rows = renamed_attribute("read_rows", "parse_batch")
    measure = renamed_attribute("measure", "distances_many")


def _ensemble(models):
    from keras_onlstm.models import Ensemble  # imports Keras

    return Ensemble(models)


def _rows(layers_per_model, layer, gates):
    """Indices of the used rows: one layer, or all, of every model and gate."""
    rows: list[int] = []
    first = 0
    for layers in gates * tuple(layers_per_model):
        rows += range(first, first + layers) if layer is None else [first + layer - 1]
        first += layers
    return rows
