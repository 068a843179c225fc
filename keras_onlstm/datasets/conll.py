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
TAGS = {"coarse": 3, "fine": 4}
INVALID = ("raise", "skip")
STANDARD_INPUT = "standard input"
_REASONS = 10  # messages that are kept
_LEFT_OUT = re.compile(r"[0-9]+[-.][0-9]+")
_NUMBER = re.compile(r"[0-9]{1,9}")  # no sentence has a thousand million words


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
    """An iterator over the trees of a file, which `read` returns. Holds one sentence at a time.

    Args:
        name: name of the file, for messages.
        rows: its lines.
        tags: `"fine"` or `"coarse"`.
        skip: whether to skip sentences that are not trees.

    Attributes:
        skipped: integer, number of sentences skipped so far.
        reasons: list of the messages for the first ten of them.

    Example:

    >>> from keras_onlstm.datasets import conll
    >>> reader = conll.read(["a\\tDT\\t2", "cat\\tNN\\t1", "", "yes\\tUH\\t0"], invalid="skip")
    >>> [tree.words for tree in reader], reader.skipped
    ([('yes',)], 1)
    >>> reader.reasons
    ['lines, line 1: no word: exactly one word must depend on ROOT, not 0.']
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
        ahead, first = _up_to_first_word(numbered)
        # Groups of lines: blank ones, or a sentence.
        for blank, group in groupby(chain(ahead, numbered), lambda row: not row[1].strip()):
            sentence: list[tuple[int, list[str]]] = []  # (number of the line, cells)
            for number, row in () if blank else group:
                if row[0] == "#" and not _is_word(row, first):
                    continue
                cells = _cells(row)
                try:
                    columns = columns or _format(cells, tags)
                    if _checked(cells, columns, len(sentence) + 1):
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
                self.reasons += [message][: _REASONS - len(self.reasons)]
            else:
                yield tree


def _up_to_first_word(numbered):
    """The numbered lines up to the first that is not blank or `#...`, and this line."""
    ahead = []
    for number, row in numbered:
        ahead.append((number, row))
        if row.strip() and row[0] != "#":
            return ahead, row
    return ahead, None


def _cells(row):
    return row.split("\t") if "\t" in row else row.split()


def _is_word(row, first):
    """Whether a line that begins with # is a word, given the first other line or `None`."""
    cells = _cells(row)
    if len(cells) not in (3, 4) or not _NUMBER.fullmatch(cells[2]):
        return False
    if first is None:
        return "\t" in row
    return (len(cells), "\t" in row) == (len(_cells(first)), "\t" in first)


def _format(cells, tags):
    columns = _FORMATS.get(len(cells))
    if columns is None:
        raise ValueError(
            f": has {len(cells)} columns. CoNLL-X and CoNLL-U have 10, apart by tabs; word, tag "
            "and head are 3, with the relation 4."
        )
    return columns._replace(tag=TAGS[tags]) if len(cells) == 10 else columns


def _checked(cells, columns, place):
    """Checks a line. Returns False for multi-word tokens and empty nodes."""
    if len(cells) != columns.number:
        raise ValueError(f": has {len(cells)} columns, the lines before {columns.number}.")
    if columns.id is not None:
        if _LEFT_OUT.fullmatch(cells[columns.id]):
            return False
        if cells[columns.id] != str(place):
            found = reprlib.repr(cells[columns.id])
            raise ValueError(
                f", column {columns.id + 1}: the ID is {found}, not {place}. IDs count the words "
                "of a sentence from 1 on, and a blank line ends it."
            )
    if cells[columns.head] != EMPTY and not _NUMBER.fullmatch(cells[columns.head]):
        found = reprlib.repr(cells[columns.head])
        raise ValueError(
            f", column {columns.head + 1}: the head is {found}, not the place of a word, or 0 for "
            "ROOT."
        )
    for column in (columns.word, columns.tag, columns.relation):
        if column is not None and not cells[column]:
            raise ValueError(f", column {column + 1}: is empty.")
    return True


def _tree(rows, columns):
    def column(place):
        return [row[place] for row in rows]

    def optional(place):
        values = [EMPTY] if place is None else column(place)
        return None if set(values) == {EMPTY} else values

    words, heads = column(columns.word), column(columns.head)
    if EMPTY in heads:
        place = heads.index(EMPTY)
        raise ValueError(f"word {place + 1}, {reprlib.repr(words[place])}: has no head.")
    tags, relations = optional(columns.tag), optional(columns.relation)
    return DependencyTree(words, list(map(int, heads)), tags, relations)


def read(
    source: StrPath | Iterable[str] | Iterable[bytes],
    tags: str = "fine",
    invalid: str = "raise",
    encoding: str = "utf-8",
    name: str | None = None,
) -> Reader:
    """Reads the dependency trees of a file, one by one.

    Args:
        source: path of the file; or an open stream of bytes or text, such as `sys.stdin.buffer`;
            or lines.
        tags: which of the two tags to use in files of 10 columns: `"fine"`, the second one, POSTAG
            or XPOS, or `"coarse"`, the first one, CPOSTAG or UPOS.
        invalid: what to do with sentences that are not trees under one word, or have a word without
            a head, `_`: `"raise"` an error, or `"skip"` and count them. Damaged lines always raise
            an error.
        encoding: encoding of files and streams of bytes, in which lines end as in ASCII.
        name: name of the source for messages. Default: that of the file or stream.

    Returns:
        `Reader`, an iterator over `DependencyTree`. Tags or relations that are `_` throughout a
        sentence are `None`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if an argument is unknown; during iteration, if a line is malformed or a
            sentence is not a tree. The message names file, line and column, or line and word.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm.datasets import conll
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "trees.tab"
    ...     _ = path.write_text("the\\tDT\\t2\\ncat\\tNN\\t3\\nsleeps\\tVBZ\\t0\\n")
    ...     [tree.heads for tree in conll.read(path)]
    [(2, 3, 0)]
    """
    check_choice("tags", tags, TAGS)
    check_choice("invalid", invalid, INVALID)
    if isinstance(source, str | os.PathLike):
        if not Path(source).is_file():
            raise FileNotFoundError(f"{source}: no such file.")
        name, source = name or str(source), _open(source)
    elif name is None:
        name = getattr(source, "name", None)
        name = name if isinstance(name, str) else "lines"  # a stream may have a number for a name
        name = STANDARD_INPUT if name == "<stdin>" else name
    return Reader(name, _rows(name, source, encoding), tags, invalid == "skip")


def _open(path):
    with open(path, "rb") as file:
        yield from file


def _rows(name, stream, encoding):
    """The lines of a stream of bytes or text, without line ends."""
    stream = iter(stream)
    first = next(stream, "")
    if isinstance(first, bytes):
        remedy = "Convert it first, or say which encoding it has: encoding=..."
        yield from lines(name, chain([first], stream), encoding, remedy)
    else:
        yield from (row.strip("\r\n") for row in chain([first.removeprefix("\ufeff")], stream))


def write(trees: Iterable[DependencyTree], path: StrPath) -> None:
    """Writes dependency trees as CoNLL-X, which `read` and readers of CoNLL-U accept.

    Both tag columns contain the tags. Missing values are `_`.

    Args:
        trees: iterable of `DependencyTree`, written one by one.
        path: path of the file, which is written atomically.

    Raises:
        ValueError: if a word, tag or relation contains a tab or line end, or UTF-8 cannot encode
            it.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm.datasets import conll
    >>> from keras_onlstm.dependencies import chain
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     conll.write([chain(["yes", "indeed"])], Path(directory) / "trees.conll")
    ...     print((Path(directory) / "trees.conll").read_text().expandtabs(8))
    1       yes     _       _       _       _       0       _       _       _
    2       indeed  _       _       _       _       1       _       _       _
    """
    with replacing(path) as temporary, open(temporary, "wb") as file:
        for number, tree in enumerate(trees, 1):
            none = (EMPTY,) * len(tree)
            columns = tree.words, tree.tags or none, tree.relations or none, tree.heads
            for place, (word, tag, relation, head) in enumerate(zip(*columns, strict=True), 1):
                cells = place, word, EMPTY, tag, tag, EMPTY, head, relation, EMPTY, EMPTY
                line = "\t".join(map(str, cells))
                if line.count("\t") != 9 or re.search("[\n\r\ud800-\udfff]", line):
                    raise ValueError(
                        f"tree {number}, word {place}, {reprlib.repr(word)}: a tab, the end of a "
                        "line or half a character does not fit into a file of columns."
                    )
                file.write(f"{line}\n".encode())
            file.write(b"\n")
