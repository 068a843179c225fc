"""Syntactic evaluation (Marvin and Linzen 2018): minimal pairs from published pickles and tables.

The published files are pickles of dictionaries of lists of tuples of strings. Their opcodes are
checked before they are loaded, so that they cannot run code.
"""

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
    "CONTRASTS", "ROWS", "MinimalPair", "Row", "load", "read_lists", "read_table", "write_table",
]  # fmt: skip

_STRINGS = "STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE"
_LETTERS = {  # of opcodes
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
    """Reads the pickle of a dictionary of lists of tuples of strings.

    Any other pickle is a `ValueError` or `pickle.UnpicklingError`.
    """
    letters, memo = "", dict[Any, str]()
    for opcode, argument, _ in pickletools.genops(data):
        if "PUT" in opcode.name or opcode.name == "MEMOIZE":
            index = len(memo) if argument is None else argument
            if index > len(memo) + 1:  # allocates all smaller indices
                raise ValueError(f"it has the memo entry {index} after {len(memo)} entries")
            memo[index] = _REFERENCES.get(letters[-1:], "?")
        elif "GET" in opcode.name:
            letters += memo.get(argument, "?")
        elif opcode.name not in _LETTERS:
            raise ValueError(f"it has the opcode {opcode.name}, which is not for lists of strings")
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
    """Two or three sentences that differ in their grammar: words without a full stop."""

    construction: str  # such as "simple_agrmt"
    case: str  # such as "sing_MS_MV"
    sentences: tuple[str, ...]  # grammatical, intrusive if there are three, ungrammatical


class Row(NamedTuple):
    """A row of the table of Shen et al. 2019."""

    distance: str  # "short" or "long"
    phenomenon: str  # such as "Reflexive anaphora"
    name: str  # such as "Simple"
    constructions: tuple[str, ...]  # which are pooled
    contrast: tuple[int, int] | None = None  # better and worse sentence of triples


def _polarity_rows(distance, name, constructions):
    return [
        Row(distance, "Negative polarity items", f"{name} ({contrast})", constructions, indices)
        for contrast, indices in CONTRASTS.items()
    ]


def _animacies(name):
    return f"{name}_anim", f"{name}_inanim"


_VERBS, _ANAPHORA = "Subject-verb agreement", "Reflexive anaphora"
_NO_THAT = "object relative (no that)"
ROWS = [
    Row("short", _VERBS, "Simple", ("simple_agrmt",)),
    Row("short", _VERBS, "In a sentential complement", ("sent_comp",)),
    Row("short", _VERBS, "Short VP coordination", ("vp_coord",)),
    Row("short", _VERBS, "In an object relative clause", _animacies("obj_rel_within")),
    Row("short", _VERBS, f"In an {_NO_THAT}", _animacies("obj_rel_no_comp_within")),
    Row("short", _ANAPHORA, "Simple", ("simple_reflexives",)),
    Row("short", _ANAPHORA, "In a sentential complement", ("reflexive_sent_comp",)),
    *_polarity_rows("short", "Simple", _animacies("simple_npi")),
    Row("long", _VERBS, "Long VP coordination", ("long_vp_coord",)),
    Row("long", _VERBS, "Across a prepositional phrase", _animacies("prep")),
    Row("long", _VERBS, "Across a subject relative clause", ("subj_rel",)),
    Row("long", _VERBS, "Across an object relative clause", _animacies("obj_rel_across")),
    Row("long", _VERBS, f"Across an {_NO_THAT}", _animacies("obj_rel_no_comp_across")),
    Row("long", _ANAPHORA, "Across a relative clause", ("reflexives_across",)),
    *_polarity_rows("long", "Across a relative clause", _animacies("npi_across")),
]

_CONSTRUCTIONS = sorted({name for row in ROWS for name in row.constructions})


def load(directory: StrPath) -> list[MinimalPair]:
    """Reads the published sentences.

    Args:
        directory: that of the 22 `.pickle` files, or one with them in `EMNLP2018/templates`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file contains anything but sentences.

    >>> len(load("LM_syneval"))  # doctest: +SKIP
    163124
    """
    directory = Path(directory)
    if (directory / "EMNLP2018" / "templates").is_dir():
        directory = directory / "EMNLP2018" / "templates"
    pairs: list[MinimalPair] = []
    for construction in _CONSTRUCTIONS:
        path = directory / f"{construction}.pickle"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: no such file. git clone https://github.com/BeckyMarvin/LM_syneval first."
            )
        pairs += _read_pickle(path, construction)
    return pairs


def _read_pickle(path, construction):
    try:
        cases = read_lists(path.read_bytes())
    except (ValueError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"{path}: refused, because it must be a pickle of sentences only ({describe(error)}). "
            "Get the file from github.com/BeckyMarvin/LM_syneval."
        ) from error
    if not cases:
        raise ValueError(f"{path}: has no cases.")
    pairs = []
    for case, items in cases.items():
        for number, sentences in enumerate(items, 1):
            if not all(map(str.strip, sentences)):
                raise ValueError(
                    f"{path}: case {reprlib.repr(case)}, item {number} has a blank sentence."
                )
            pairs.append(MinimalPair(construction, case, sentences))
    return pairs


def read_table(path: StrPath) -> list[MinimalPair]:
    """Reads minimal pairs from a tab-separated text file.

    Its first line names the columns: `construction`, `case`, `grammatical`, `ungrammatical`, and
    for triples `intrusive`, which is empty for pairs. Any other line is a `ValueError`.

    >>> write_table("pairs.tsv", [MinimalPair("number", "plural", ("two cats", "two cat"))])
    >>> read_table("pairs.tsv")[0].sentences
    ('two cats', 'two cat')
    """
    lines = io.StringIO(read_text(path), newline=None)
    header = [name.strip() for name in next(lines, "").split("\t")]
    required = [name for name in _COLUMNS if name != "intrusive"]
    if not set(required) <= set(header) <= set(_COLUMNS) or len(set(header)) != len(header):
        raise ValueError(
            f"{path}: the first line must name the columns {', '.join(required)}, separated by "
            "tabs, and intrusive if there are three sentences."
        )
    pairs = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        cells = line.rstrip("\n").split("\t")
        if len(cells) != len(header):
            raise ValueError(
                f"{path}, line {number}: must have {len(header)} columns like the first line, got "
                f"{len(cells)}."
            )
        row = dict(zip(header, (" ".join(cell.split()) for cell in cells), strict=True))
        empty = [name for name in header if name != "intrusive" and not row[name]]
        if empty:
            raise ValueError(f"{path}, line {number}: {', '.join(empty)} is empty.")
        sentences = tuple(row[name] for name in _COLUMNS[2:] if row.get(name))
        if len(set(sentences)) != len(sentences):
            raise ValueError(f"{path}, line {number}: the sentences must differ.")
        pairs.append(MinimalPair(row["construction"], row["case"], sentences))
    if not pairs:
        raise ValueError(f"{path}: has no minimal pairs.")
    return pairs


def write_table(path: StrPath, pairs: Sequence[MinimalPair]) -> None:
    """Writes minimal pairs for `read_table`; `ValueError` for tabs and line ends in them."""
    three = any(len(pair.sentences) == 3 for pair in pairs)
    lines = ["\t".join(name for name in _COLUMNS if three or name != "intrusive")]
    for pair in pairs:
        first, *middle, last = pair.sentences
        cells = [pair.construction, pair.case, first, *(middle or [""] * three), last]
        if any(character in cell for cell in cells for character in "\t\r\n"):
            raise ValueError(f"pairs must not contain tabs or line ends, got {pair}.")
        lines.append("\t".join(cells))
    with replacing(path) as temporary:
        Path(temporary).write_text("\n".join(lines) + "\n", encoding="utf-8")
