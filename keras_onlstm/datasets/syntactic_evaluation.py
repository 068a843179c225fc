"""Reads pickles of dictionaries of lists of tuples of strings. Runs no code in them."""

import io
import pickle
import pickletools
import re
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import describe, read_text, replacing

__all__ = [
    "CONTRASTS",
    "ROWS",
    "MinimalPair",
    "Row",
    "load",
    "read_lists",
    "read_table",
    "write_table",
]

_STRINGS = "STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE"
_LETTERS = {
    **dict.fromkeys(_STRINGS.split(), "s"),
    **{"MARK": "(", "TUPLE": "t", "TUPLE2": "2", "TUPLE3": "3", "STOP": "."},
    **{"EMPTY_LIST": "]", "LIST": "l", "APPEND": "a", "APPENDS": "e"},
    **{"EMPTY_DICT": "}", "DICT": "d", "SETITEM": "i", "SETITEMS": "u"},
    **dict.fromkeys(("PROTO", "FRAME"), ""),
}
_REFERENCES = {"s": "s", "t": "p", "2": "p", "3": "p"}  # to strings and tuples, not to lists
# Grammar of the published files, with opcodes as letters.
_TUPLE = r"(?>ss2|sss3|\(sss?t|p)"
_LIST = rf"(?>\]|\(l)(?>{_TUPLE}a|\({_TUPLE}++e)*+"
_DICTIONARY = re.compile(rf"(?>\}}|\(d)(?>s{_LIST}i|\((?>s{_LIST})++u)*+\.")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not a string, tuple, list or dictionary")


def read_lists(data: bytes) -> dict[str, list[tuple[str, ...]]]:
    """Reads a dictionary. Raises ValueError or UnpicklingError for any other pickle."""
    letters, memo = "", dict[Any, str]()
    for opcode, argument, _ in pickletools.genops(data):
        if "PUT" in opcode.name or opcode.name == "MEMOIZE":
            index = len(memo) if argument is None else argument
            if index > len(memo) + 1:  # allocates all smaller indices
                raise ValueError(f"it has a memo entry {index} after {len(memo)} others")
            memo[index] = _REFERENCES.get(letters[-1:], "?")
        elif "GET" in opcode.name:
            letters += memo.get(argument, "?")
        elif opcode.name not in _LETTERS:
            raise ValueError(f"it has the opcode {opcode.name}, which no list of strings needs")
        else:
            letters += _LETTERS[opcode.name]
        if isinstance(argument, str):
            argument.encode()  # fails for lone surrogates
    if not _DICTIONARY.fullmatch(letters):
        raise ValueError("it is not a dictionary of lists of tuples of two or three strings")
    return _Unpickler(io.BytesIO(data), encoding="utf-8").load()


# Indices of the two sentences that a row of the published table compares, the better one first.
CONTRASTS = {
    "grammatical vs. intrusive": (0, 1),
    "intrusive vs. ungrammatical": (1, 2),
    "grammatical vs. ungrammatical": (0, 2),
}
_COLUMNS = ("construction", "case", "grammatical", "intrusive", "ungrammatical")


class MinimalPair(NamedTuple):
    """Two or three sentences that differ in their grammar.

    Attributes:
        construction: string, such as `"simple_agrmt"`.
        case: string, such as `"sing_MS_MV"`.
        sentences: tuple of strings: (grammatical, ungrammatical) or (grammatical, intrusive,
            ungrammatical), words separated by blanks, no full stop.
    """

    construction: str
    case: str
    sentences: tuple[str, ...]


class Row(NamedTuple):
    """A row of the table of Shen et al. 2019.

    Attributes:
        distance: `"short"` or `"long"`.
        phenomenon: string, such as `"Reflexive anaphora"`.
        name: string, such as `"Simple"`.
        constructions: tuple of the pooled constructions.
        contrast: indices of the better and the worse sentence, or `None` for pairs.
    """

    distance: str
    phenomenon: str
    name: str
    constructions: tuple[str, ...]
    contrast: tuple[int, int] | None = None


def _npi(distance, name, constructions):
    return [
        Row(distance, "Negative polarity items", f"{name} ({contrast})", constructions, places)
        for contrast, places in CONTRASTS.items()
    ]


def _both(name):
    return f"{name}_anim", f"{name}_inanim"


ROWS = [
    Row("short", "Subject-verb agreement", "Simple", ("simple_agrmt",)),
    Row("short", "Subject-verb agreement", "In a sentential complement", ("sent_comp",)),
    Row("short", "Subject-verb agreement", "Short VP coordination", ("vp_coord",)),
    Row(
        "short",
        "Subject-verb agreement",
        "In an object relative clause",
        _both("obj_rel_within"),
    ),
    Row(
        "short",
        "Subject-verb agreement",
        "In an object relative (no that)",
        _both("obj_rel_no_comp_within"),
    ),
    Row("short", "Reflexive anaphora", "Simple", ("simple_reflexives",)),
    Row("short", "Reflexive anaphora", "In a sentential complement", ("reflexive_sent_comp",)),
    *_npi("short", "Simple", _both("simple_npi")),
    Row("long", "Subject-verb agreement", "Long VP coordination", ("long_vp_coord",)),
    Row("long", "Subject-verb agreement", "Across a prepositional phrase", _both("prep")),
    Row("long", "Subject-verb agreement", "Across a subject relative clause", ("subj_rel",)),
    Row(
        "long",
        "Subject-verb agreement",
        "Across an object relative clause",
        _both("obj_rel_across"),
    ),
    Row(
        "long",
        "Subject-verb agreement",
        "Across an object relative (no that)",
        _both("obj_rel_no_comp_across"),
    ),
    Row("long", "Reflexive anaphora", "Across a relative clause", ("reflexives_across",)),
    *_npi("long", "Across a relative clause", _both("npi_across")),
]

_CONSTRUCTIONS = sorted({name for row in ROWS for name in row.constructions})


def _unpickle(path):
    try:
        return read_lists(path.read_bytes())
    except (ValueError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"{path}: refused, no pickle of sentences alone ({describe(error)}). Get the file from "
            "github.com/BeckyMarvin/LM_syneval."
        ) from error


def _checked(path, construction, cases):
    """The pairs of a file; blank sentences are errors."""
    if not cases:
        raise ValueError(f"{path}: holds no cases.")
    pairs = []
    for case, items in cases.items():
        for number, sentences in enumerate(items, 1):
            if not all(map(str.strip, sentences)):
                raise ValueError(
                    f"{path}: case {reprlib.repr(case)}, item {number} has a blank sentence: "
                    f"{reprlib.repr(sentences)}"
                )
            pairs.append(MinimalPair(construction, case, sentences))
    return pairs


def load(directory: StrPath) -> list[MinimalPair]:
    """Reads the published sentences.

    Args:
        directory: directory with the 22 `.pickle` files, or with them in
            `EMNLP2018/templates`.

    Returns:
        List of `MinimalPair`, by construction.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file contains anything but sentences.

    Example, which needs the files:

    >>> from keras_onlstm.datasets import syntactic_evaluation
    >>> len(syntactic_evaluation.load("LM_syneval"))  # doctest: +SKIP
    163124
    """
    directory = Path(directory)
    if (directory / "EMNLP2018" / "templates").is_dir():
        directory = directory / "EMNLP2018" / "templates"
    pairs = []
    for construction in _CONSTRUCTIONS:
        path = directory / f"{construction}.pickle"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: no such file. git clone https://github.com/BeckyMarvin/LM_syneval "
                "fetches the published sentences."
            )
        pairs += _checked(path, construction, _unpickle(path))
    return pairs


def read_table(path: StrPath) -> list[MinimalPair]:
    """Reads minimal pairs from a tab-separated text file.

    Its first line names the columns: `construction`, `case`, `grammatical`, `ungrammatical`, and
    for triples `intrusive`, which is empty for pairs.

    Args:
        path: path of the UTF-8 file.

    Returns:
        List of `MinimalPair`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if a line is not a minimal pair; the message names it.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm.datasets import syntactic_evaluation
    >>> rows = "construction case grammatical ungrammatical", "numbers plural two_cats two_cat"
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "pairs.tsv"
    ...     _ = path.write_text("\\n".join("\\t".join(row.split()) for row in rows))
    ...     syntactic_evaluation.read_table(path)[0].sentences
    ('two_cats', 'two_cat')
    """
    lines = io.StringIO(read_text(path), newline=None)
    header = [name.strip() for name in next(lines, "").split("\t")]
    needed = [name for name in _COLUMNS if name != "intrusive"]
    if not set(needed) <= set(header) <= set(_COLUMNS) or len(set(header)) != len(header):
        raise ValueError(
            f"{path}: its first line does not name the columns {', '.join(needed)}, apart by tabs "
            "(and intrusive, where there are three sentences)."
        )
    pairs = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        cells = line.rstrip("\n").split("\t")
        if len(cells) != len(header):
            raise ValueError(
                f"{path}, line {number}: has {len(cells)} columns, the first line {len(header)}."
            )
        row = dict(zip(header, (" ".join(cell.split()) for cell in cells), strict=True))
        empty = [name for name in header if name != "intrusive" and not row[name]]
        if empty:
            raise ValueError(f"{path}, line {number}: {', '.join(empty)} is empty.")
        sentences = tuple(row[name] for name in _COLUMNS[2:] if row.get(name))
        if len(set(sentences)) != len(sentences):
            raise ValueError(f"{path}, line {number}: two of its sentences are the same.")
        pairs.append(MinimalPair(row["construction"], row["case"], sentences))
    if not pairs:
        raise ValueError(f"{path}: holds no minimal pairs.")
    return pairs


def write_table(path: StrPath, pairs: Sequence[MinimalPair]) -> None:
    """Writes minimal pairs as `read_table` reads them.

    Args:
        path: file, which is written atomically.
        pairs: list of `MinimalPair`.

    Raises:
        ValueError: if a text contains a tab or a line end.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from keras_onlstm.datasets import syntactic_evaluation, syntactic_grammar
    >>> pairs = syntactic_grammar.generate(count=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     syntactic_evaluation.write_table(Path(directory) / "pairs.tsv", pairs)
    ...     syntactic_evaluation.read_table(Path(directory) / "pairs.tsv") == pairs
    True
    """
    three = any(len(pair.sentences) == 3 for pair in pairs)
    lines = ["\t".join(name for name in _COLUMNS if three or name != "intrusive")]
    for pair in pairs:
        first, *middle, last = pair.sentences
        cells = [pair.construction, pair.case, first, *(middle or [""] * three), last]
        if any(character in cell for cell in cells for character in "\t\r\n"):
            raise ValueError(f"{pair}: a tab or the end of a line does not fit into a table.")
        lines.append("\t".join(cells))
    with replacing(path) as temporary:
        Path(temporary).write_text("\n".join(lines) + "\n", encoding="utf-8")
