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

_BLOCK = 512  # texts per batch, so that memory does not grow with the shard


class Record(NamedTuple):
    """The result for a text."""

    words: int  # number of words read
    fields: dict[str, Any]  # the task's `columns` but `row`; `error` tells why others are empty
    unknown: Sequence[str] = ()  # words read as `<unk>`, if the task lists them


class Parsing(NamedTuple):
    """Parses texts into trees."""

    form: str = "brackets"  # one of `forms`
    column: str = "text"  # of Parquet files
    max_words: int | None = None  # texts with longer sentences are skipped
    punctuation: bool = False
    load: Mapping[str, Any] = {}  # arguments of `Parser.load`

    @property
    def forms(self) -> tuple[str, ...]:
        """Valid values of `form`."""
        return ("brackets", "json", "parquet")

    @property
    def columns(self) -> dict[str, Any]:
        """Types of the fields of a row; a list contains the type of its items."""
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
    """Computes log-probabilities of texts, each scored on its own, end of sentence included."""

    form: str = "json"  # one of `forms`
    column: str = "text"  # of Parquet files
    max_words: int | None = None  # longer texts are skipped
    load: Mapping[str, Any] = {}  # arguments of `reader.open_reader`

    @property
    def forms(self) -> tuple[str, ...]:
        """Valid values of `form`."""
        return ("json", "parquet")

    @property
    def columns(self) -> dict[str, Any]:
        """Types of the fields of a row."""
        counts = {"row": int, "tokens": int, "unknown_words": int}
        return {**counts, "log_probability": float, "perplexity": float, "error": str}

    def begin(self) -> Callable[[Iterable[Any]], Iterator[Record]]:
        """Loads the model and returns a function that yields a `Record` per text."""
        reader = open_reader(**self.load)

        def records(texts: Iterable[Any]) -> Iterator[Record]:
            texts = iter(texts)
            while batch := list(itertools.islice(texts, _BLOCK)):
                split = [self._split(text, reader) for text in batch]
                scores = iter(reader.model.score([words for words, _ in split if words]))
                for words, error in split:
                    word_scores = next(scores) if words else None
                    yield _score_record(word_scores, reader.unknown(words), error)

        return records

    def _split(self, text, reader):
        if isinstance(text, bytes):
            return [], "is not UTF-8 text."
        if not isinstance(text, str):
            return [], f"is {reprlib.repr(text)}, not a text."
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


def _score_record(scores, unknown, error):
    count, total, perplexity = 0, None, None
    if scores is not None:
        count, total = len(scores), float(scores.sum(dtype=float))
        perplexity = math.exp(min(-total / count, 700.0))
    counts = {"tokens": count, "unknown_words": len(unknown)}
    numbers = {"log_probability": total, "perplexity": perplexity}
    return Record(count, {**counts, **numbers, "error": error}, unknown)
