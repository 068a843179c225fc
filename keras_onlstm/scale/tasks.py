"""What is done with the rows of large files: trees, or log-probabilities."""

import itertools
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.reader import open_reader
from keras_onlstm.text.splitting import NO_WORDS, without_number

__all__ = ["Parsing", "Record", "Scoring", "Task"]

_BLOCK = 512  # texts at once: memory does not grow with the shard


class Record(NamedTuple):
    """What came of a text.

    Attributes:
        words: integer, how many were read.
        fields: dictionary, by the names of the task's `columns` but `row`; `error` is why the
            others are empty, or `None`.
        unknown: the words that the model read as `<unk>`, of a task that names them.
    """

    words: int
    fields: dict[str, Any]
    unknown: Sequence[str] = ()


class Parsing(NamedTuple):
    """The trees of texts.

    Attributes:
        form: `"brackets"`, `"json"` or `"parquet"`: how they are written.
        column: string, which column of Parquet files has the texts.
        max_words: integer, of a sentence; a text with a longer one is not read. Or `None`.
        punctuation: whether it is in the trees.
        load: dictionary, the arguments of `Parser.load`.
    """

    form: str = "brackets"
    column: str = "text"
    max_words: int | None = None
    punctuation: bool = False
    load: Mapping[str, Any] = {}

    @property
    def forms(self) -> tuple[str, ...]:
        """What `form` may be."""
        return ("brackets", "json", "parquet")

    @property
    def columns(self) -> dict[str, Any]:
        """The kinds of the fields of a row; a list has that of its members."""
        return {"row": int, "words": [[str]], "trees": [str], "error": str}

    def begin(self) -> Callable[[Iterable[Any]], Iterator[Record]]:
        """Loads the model, and returns the function of texts that yields a `Record` for each."""
        parser = Parser.load(**self.load)

        def records(texts: Iterable[Any]) -> Iterator[Record]:
            for row in parser.read_rows(texts, _BLOCK, self.max_words, self.punctuation):
                trees = list(map(brackets, row.trees))
                fields = {"words": row.words, "trees": trees, "error": row.error}
                yield Record(sum(map(len, row.words)), fields)

        return records

    def line(self, fields: Mapping[str, Any]) -> str:
        """A row as text: its trees with blanks between them, or `#` and the error."""
        return f"# {fields['error']}" if fields["error"] else " ".join(fields["trees"])


class Scoring(NamedTuple):
    """The log-probabilities of texts, each scored on its own, end of sentence included.

    Attributes:
        form: `"json"` or `"parquet"`: how they are written.
        column: as in `Parsing`.
        max_words: integer, of a text; a longer one is not read. Or `None`.
        load: dictionary, the arguments of `reader.open_reader`.
    """

    form: str = "json"
    column: str = "text"
    max_words: int | None = None
    load: Mapping[str, Any] = {}

    @property
    def forms(self) -> tuple[str, ...]:
        """What `form` may be."""
        return ("json", "parquet")

    @property
    def columns(self) -> dict[str, Any]:
        """As in `Parsing`."""
        counts = {"tokens": int, "unknown_words": int}
        numbers = {"log_probability": float, "perplexity": float}
        return {"row": int, **counts, **numbers, "error": str}

    def begin(self) -> Callable[[Iterable[Any]], Iterator[Record]]:
        """As in `Parsing`."""
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
            return [], "is no UTF-8 text."
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
