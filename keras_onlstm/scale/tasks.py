"""Tasks for rows of large files: parsing and scoring."""

import itertools
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.reader import open_reader
from keras_onlstm.text.tokens import NO_WORDS, without_number

__all__ = ["Parsing", "Record", "Scoring", "Task"]

_BLOCK = 512  # texts at once: memory does not grow with the shard


class Record(NamedTuple):
    """The result for a text.

    Attributes:
        words: integer, words read.
        fields: dictionary with the task's `columns` except `row`; `error` is why the others are
            empty, or `None`.
        unknown: the words that the model read as `<unk>`, if the task lists them.
    """

    words: int
    fields: dict[str, Any]
    unknown: Sequence[str] = ()


class Parsing(NamedTuple):
    """Parses texts into trees.

    Attributes:
        form: output format, `"brackets"`, `"json"` or `"parquet"`.
        column: string, the Parquet column of the texts.
        max_words: integer, skips texts with longer sentences; or `None`.
        punctuation: whether trees contain punctuation.
        load: dictionary, the arguments of `Parser.load`.
    """

    form: str = "brackets"
    column: str = "text"
    max_words: int | None = None
    punctuation: bool = False
    load: Mapping[str, Any] = {}

    @property
    def forms(self) -> tuple[str, ...]:
        """Possible values of `form`."""
        return ("brackets", "json", "parquet")

    @property
    def columns(self) -> dict[str, Any]:
        """Types of the fields of a row; a list has the type of its items."""
        return {"row": int, "words": [[str]], "trees": [str], "error": str}

    def begin(self) -> Callable[[Iterable[Any]], Iterator[Record]]:
        """Loads the model and returns a function that yields a `Record` per text."""
        parser = Parser.load(**self.load)

        def records(texts: Iterable[Any]) -> Iterator[Record]:
            for row in parser.parse_batch(texts, _BLOCK, self.max_words, self.punctuation):
                trees = list(map(brackets, row.trees))
                fields = {"words": row.words, "trees": trees, "error": row.error}
                yield Record(sum(map(len, row.words)), fields)

        return records

    def line(self, fields: Mapping[str, Any]) -> str:
        """A row as text: its trees separated by spaces, or `#` and the error."""
        return f"# {fields['error']}" if fields["error"] else " ".join(fields["trees"])


class Scoring(NamedTuple):
    """Computes log-probabilities of texts, each scored on its own, end of sentence included.

    Attributes:
        form: output format, `"json"` or `"parquet"`.
        column: string, the Parquet column of the texts.
        max_words: integer, skips texts with more words; or `None`.
        load: dictionary, the arguments of `reader.open_reader`.
    """

    form: str = "json"
    column: str = "text"
    max_words: int | None = None
    load: Mapping[str, Any] = {}

    @property
    def forms(self) -> tuple[str, ...]:
        """Possible values of `form`."""
        return ("json", "parquet")

    @property
    def columns(self) -> dict[str, Any]:
        """Types of a row's fields."""
        counts = {"tokens": int, "unknown_words": int}
        numbers = {"log_probability": float, "perplexity": float}
        return {"row": int, **counts, **numbers, "error": str}

    def begin(self) -> Callable[[Iterable[Any]], Iterator[Record]]:
        """Loads the model and returns a function that yields `Record`s."""
        reader = open_reader(**self.load)

        def records(texts: Iterable[Any]) -> Iterator[Record]:
            texts = iter(texts)
            while batch := list(itertools.islice(texts, _BLOCK)):
                split = [self._split(text, reader) for text in batch]
                scores = iter(reader.model.score([words for words, _ in split if words]))
                for words, error in split:
                    found = next(scores) if words else None
                    yield _scored(found, reader.unknown(words), error)

        return records

    def _split(self, text, reader):
        if isinstance(text, bytes):
            return [], "is not UTF-8 text."
        if not isinstance(text, str):
            return [], f"is {reprlib.repr(text)}, no text."
        if not text.strip():
            return [], None
        try:
            words = reader.tokens(text)
        except ValueError as error:
            return [], without_number(error)
        if not words:
            return [], NO_WORDS
        if self.max_words is not None and len(words) > self.max_words:
            return [], f"has {len(words):,} words, more than {self.max_words:,}."
        return words, None


Task = Parsing | Scoring


def _scored(scores, unknown, error):
    count = 0 if scores is None else len(scores)
    total = None if scores is None else float(scores.sum(dtype=float))
    perplexity = None if total is None else math.exp(min(-total / count, 700.0))
    counts = {"tokens": count, "unknown_words": len(unknown)}
    numbers = {"log_probability": total, "perplexity": perplexity}
    return Record(count, {**counts, **numbers, "error": error}, unknown)
