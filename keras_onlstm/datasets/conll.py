"""Dependency trees in column files: a word per line, a blank line after each sentence.

The first line that is not blank and does not begin with `#` determines the format of a file:

| format | columns |
|---|---|
| CoNLL-X | 10: ID, FORM, LEMMA, CPOSTAG, POSTAG, FEATS, HEAD, DEPREL, PHEAD, PDEPREL |
| CoNLL-U | 10: ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC |
| NLTK's, Malt-TAB | 3 or 4: word, tag, head, and the relation |

Columns are separated by tabs, or by blanks in lines without tabs. The multi-word tokens (`3-4`) and
the empty nodes (`3.1`) of CoNLL-U are left out.

Lines that begin with `#` are comments. In files of 3 or 4 columns a line that begins with `#` is a
word if it has as many columns as the other lines, the same separator, and a number as its head. If
all lines of a file begin with `#`, words need tabs. A file whose columns are separated by blanks
cannot contain comments such as `# page 3`.

Sources: Buchholz and Marsi 2006, https://aclanthology.org/W06-2920;
https://universaldependencies.org/format.html.
"""

import os
import re
import reprlib
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import lines, replacing
from keras_onlstm.utils.validation import check_choice

__all__ = ["Reader", "read", "write"]

EMPTY = "_"  # value of an empty column
TAGS = {"coarse": 3, "fine": 4}  # columns
_MAX_REASONS = 10
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")  # of a multi-word token or an empty node
_NUMBER = re.compile(r"[0-9]{1,9}")  # longer numbers are not positions and take long to convert


class _Columns(NamedTuple):
    """Number of columns, and the index of each; `None` if missing."""

    number: int
    id: int | None
    word: int
    tag: int
    head: int
    relation: int | None


_FORMATS = {
    3: _Columns(3, None, 0, 1, 2, None),
    4: _Columns(4, None, 0, 1, 2, 3),
    10: _Columns(10, 0, 1, TAGS["fine"], 6, 7),
}


class Reader(Iterator[DependencyTree]):
    """An iterator over the trees of a file, made by `read`. Holds one sentence at a time.

    Attributes:
        skipped: number of sentences skipped so far.
        reasons: list of the messages for the first ten of them.

    >>> reader = read(["a\\tDT\\t2", "cat\\tNN\\t1", "", "yes\\tUH\\t0"], invalid="skip")
    >>> [tree.words for tree in reader], reader.skipped
    ([('yes',)], 1)
    >>> reader.reasons
    ['lines, line 1: exactly one word must depend on ROOT, got no word.']
    """

    def __init__(self, name: StrPath, rows: Iterable[str], tags: str, skip: bool) -> None:
        self.skipped = 0
        self.reasons: list[str] = []
        self._trees = self._read(name, rows, tags, skip)

    def __next__(self) -> DependencyTree:
        return next(self._trees)

    def _read(self, name, rows, tags, skip):
        columns = None
        numbered = enumerate(rows, 1)
        start, first_word = _up_to_first_word(numbered)
        # Groups of lines: blank ones, or a sentence.
        for blank, group in groupby(chain(start, numbered), lambda row: not row[1].strip()):
            sentence: list[tuple[int, list[str]]] = []  # (number of the line, cells)
            for number, row in () if blank else group:
                if row[0] == "#" and not _is_word(row, first_word):
                    continue
                cells = _cells(row)
                try:
                    columns = columns or _format(cells, tags)
                    if _check_cells(cells, columns, len(sentence) + 1):
                        sentence.append((number, cells))
                except ValueError as error:
                    raise ValueError(f"{name}, line {number}{error}") from None
            if not sentence:
                continue
            try:
                tree = _tree([cells for _, cells in sentence], columns)
            except ValueError as error:
                message = f"{name}, line {sentence[0][0]}: {error}"
                if not skip:
                    raise ValueError(message) from None
                self.skipped += 1
                if len(self.reasons) < _MAX_REASONS:
                    self.reasons.append(message)
            else:
                yield tree


def _up_to_first_word(numbered):
    """The numbered lines up to the first that is not blank or `#...`, and this line."""
    start = []
    for number, row in numbered:
        start.append((number, row))
        if row.strip() and row[0] != "#":
            return start, row
    return start, None


def _cells(row):
    return row.split("\t") if "\t" in row else row.split()


def _is_word(row, first_word):
    """Whether a line that begins with # is a word, given the first other line or `None`."""
    cells = _cells(row)
    if len(cells) not in (3, 4) or not _NUMBER.fullmatch(cells[2]):
        return False
    if first_word is None:
        return "\t" in row
    return (len(cells), "\t" in row) == (len(_cells(first_word)), "\t" in first_word)


def _format(cells, tags):
    columns = _FORMATS.get(len(cells))
    if columns is None:
        raise ValueError(
            ": must have 10 columns separated by tabs (CoNLL-X, CoNLL-U), or 3 or 4 (word, tag, "
            f"head, relation), got {len(cells)}."
        )
    return columns._replace(tag=TAGS[tags]) if len(cells) == 10 else columns


def _check_cells(cells, columns, position):
    """Checks a line. Returns False for multi-word tokens and empty nodes."""
    if len(cells) != columns.number:
        raise ValueError(f": must have {columns.number} columns like the first, got {len(cells)}.")
    if columns.id is not None:
        if _SKIPPED_ID.fullmatch(cells[columns.id]):
            return False
        if cells[columns.id] != str(position):
            raise ValueError(
                f", column {columns.id + 1}: the ID must be {position}, got "
                f"{reprlib.repr(cells[columns.id])}. IDs number the words of a sentence, and a "
                "blank line ends it."
            )
    head = cells[columns.head]
    if head != EMPTY and not _NUMBER.fullmatch(head):
        raise ValueError(
            f", column {columns.head + 1}: the head must be the number of a word, or 0 for ROOT, "
            f"got {reprlib.repr(head)}."
        )
    for column in (columns.word, columns.tag, columns.relation):
        if column is not None and not cells[column]:
            raise ValueError(f", column {column + 1}: is empty.")
    return True


def _tree(rows, columns):
    def labels(index):
        values = [EMPTY if index is None else row[index] for row in rows]
        return None if set(values) == {EMPTY} else values

    words, heads = ([row[index] for row in rows] for index in (columns.word, columns.head))
    if EMPTY in heads:
        index = heads.index(EMPTY)
        raise ValueError(f"word {index + 1}, {reprlib.repr(words[index])}, has no head.")
    return DependencyTree(
        words, list(map(int, heads)), labels(columns.tag), labels(columns.relation)
    )


def read(
    source: StrPath | Iterable[str] | Iterable[bytes],
    tags: str = "fine",
    invalid: str = "raise",
    encoding: str = "utf-8",
    name: str | None = None,
) -> Reader:
    """Reads the dependency trees of a file, one by one.

    Args:
        source: path, lines, or an open stream of bytes or text, such as `sys.stdin.buffer`.
        tags: tags of files of 10 columns: `"fine"`, POSTAG or XPOS; or `"coarse"`, CPOSTAG or UPOS.
        invalid: what to do with sentences that are not trees under one word, or lack a head: `_`:
            `"raise"` an error, or `"skip"` and count them. Damaged lines always raise an error.
        encoding: encoding of files and streams of bytes, in which lines end as in ASCII.
        name: name of the source for messages. Default: that of the file or stream.

    Returns:
        `Reader`. Tags or relations that are `_` throughout a sentence are `None`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if an argument is unknown; during iteration, if a line is malformed or a
            sentence is not a tree.

    >>> [tree.heads for tree in read(["the\\tDT\\t2", "cat\\tNN\\t3", "sleeps\\tVBZ\\t0"])]
    [(2, 3, 0)]
    """
    check_choice("tags", tags, TAGS)
    check_choice("invalid", invalid, ("raise", "skip"))
    if isinstance(source, str | os.PathLike):
        if not Path(source).is_file():
            raise FileNotFoundError(f"{source}: no such file.")
        name, source = name or str(source), _lines_of_file(source)
    elif name is None:
        name = getattr(source, "name", None)
        name = name if isinstance(name, str) else "lines"  # a stream may have a number for a name
        name = "standard input" if name == "<stdin>" else name
    return Reader(name, _rows(name, source, encoding), tags, invalid == "skip")


def _lines_of_file(path):
    with open(path, "rb") as file:
        yield from file


def _rows(name, stream, encoding):
    """The lines of a stream of bytes or text, without line ends."""
    stream = iter(stream)
    first = next(stream, "")
    if isinstance(first, bytes):
        remedy = "Convert it, or pass its encoding: encoding=..."
        yield from lines(name, chain([first], stream), encoding, remedy)
    else:
        yield from (row.strip("\r\n") for row in chain([first.removeprefix("\ufeff")], stream))


def write(trees: Iterable[DependencyTree], path: StrPath) -> None:
    """Writes dependency trees as CoNLL-X, which `read` and readers of CoNLL-U accept.

    Both tag columns contain the tags. The file is written atomically. A tab or line end in a word,
    tag or relation is a `ValueError`.

    >>> write([DependencyTree(["yes", "indeed"], [0, 1])], "trees.conll")
    >>> print(Path("trees.conll").read_text().expandtabs(8))
    1       yes     _       _       _       _       0       _       _       _
    2       indeed  _       _       _       _       1       _       _       _
    """
    with replacing(path) as temporary, open(temporary, "wb") as file:
        for number, tree in enumerate(trees, 1):
            none = (EMPTY,) * len(tree)
            columns = tree.words, tree.tags or none, tree.relations or none, tree.heads
            for position, (word, tag, relation, head) in enumerate(zip(*columns, strict=True), 1):
                cells = position, word, EMPTY, tag, tag, EMPTY, head, relation, EMPTY, EMPTY
                line = "\t".join(map(str, cells))
                if line.count("\t") != 9 or re.search("[\n\r\ud800-\udfff]", line):
                    raise ValueError(
                        f"tree {number}, word {position}, {reprlib.repr(word)}: the word, its tag "
                        "and its relation must not contain tabs, line ends or unpaired surrogates."
                    )
                file.write(f"{line}\n".encode())
            file.write(b"\n")
