"""Reading files with one-line errors.

JSON from a file is checked against a kind, which describes the expected structure:

- `str`, `bool`, `float` (any number), `list`, `dict`, `None`, `object` (anything);
- `Integer(least, most)`, `Number(least, most)` and `Choice(values)`, which are narrower;
- `[kind]`, a list; `{"name": kind}`, an object with at least these names; `{str: kind}`, with any;
- `(kind, kind)`, one or the other; with `...` in it the name may be missing.
"""

import json
import math
import reprlib
import textwrap
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_onlstm.utils.types import StrPath

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "SEEDS", "STARTS", "Choice", "Integer", "Number",
    "check_kind", "check_unpacked", "lines", "parse_json", "read_json", "read_npz", "read_text",
    "reason",
]  # fmt: skip

LARGEST = 32 * 2**20  # bytes of a JSON text: three times a vocabulary of a million words
MOST_VALUES = 2**21  # in a text: in memory a value takes up to 100 times its size
RATIO = 20  # of unpacked to packed bytes: 3 to 10 for text, hardly above 1 for weights
ALWAYS = 256 * 2**20  # bytes that any archive may unpack to, whatever the ratio


class Integer(NamedTuple):
    """The kind of integers from `least` to `most`."""

    least: int = 0
    most: int = 2**63 - 1


class Number(NamedTuple):
    """The kind of numbers from `least` to `most`, which may be infinite."""

    least: float = -math.inf
    most: float = math.inf


class Choice(NamedTuple):
    """The kind of strings that are one of `values`."""

    values: tuple[str, ...]


SEEDS = Integer(0, 2**32 - 1)  # valid for every random generator
STARTS = Choice(("scaled", "published"))  # initial weights: see models.starts


def check_kind(value: Any, kind: Any, name: str = "it") -> None:
    """Checks that a value is of a kind; if not, the `ValueError` names the position in it.

    Example:

    >>> from keras_onlstm.utils.reading import Integer, check_kind
    >>> kind = {"epochs": [{"epoch": Integer(1), "loss": float}]}
    >>> check_kind({"epochs": [{"epoch": 1, "loss": "low"}]}, kind)
    Traceback (most recent call last):
    ...
    ValueError: epochs[0].loss is a number, not 'low'

    """
    fault = _fault(value, kind)
    if fault is not None:
        place, message = fault
        raise ValueError(f"{place.removeprefix('.') or name} {message}")


def _fault(value, kind):
    """The position where a value is not of a kind and a message, or `None`."""
    kinds = _alternatives(kind)
    for one in kinds:
        if _fits(value, one):
            return _fault_within(value, one)
    wanted = " or ".join(_words(one) for one in kinds if one is not ...)
    return "", f"is {wanted}, not {reprlib.repr(value)}"


def _fault_within(value, kind):
    if isinstance(kind, list):
        faults = ((f"[{place}]", _fault(item, kind[0])) for place, item in enumerate(value))
    elif isinstance(kind, dict) and str in kind:
        faults = ((f".{reprlib.repr(name)}", _fault(name, str) or _fault(item, kind[str]))
                 for name, item in value.items())  # fmt: skip
    elif isinstance(kind, dict):
        faults = ((f".{name}", _fault_of(value, name, wanted)) for name, wanted in kind.items())
    else:
        return None
    return next(((place + fault[0], fault[1]) for place, fault in faults if fault), None)


def _fault_of(value, name, kind):
    if name in value:
        return _fault(value[name], kind)
    return None if ... in _alternatives(kind) else ("", "is missing")


def _alternatives(kind):
    return kind if type(kind) is tuple else (kind,)


def _fits(value, kind):
    """Whether a value is of a kind, without a check of its items."""
    if kind is str:
        return isinstance(value, str) and _is_encodable(value)
    if kind is float:
        return type(value) is float or (type(value) is int and abs(value) < 2**63)
    if isinstance(kind, Integer):
        return type(value) is int and kind.least <= value <= kind.most
    if isinstance(kind, Number):
        return type(value) in (int, float) and kind.least <= value <= kind.most
    if isinstance(kind, Choice):
        return isinstance(value, str) and value in kind.values
    if isinstance(kind, list | dict):
        return type(value) is type(kind)
    return kind is object or value is kind or type(value) is kind


def _is_encodable(text):
    try:
        text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate, which cannot be encoded
        return False
    return True


def _words(kind):
    """A description of a kind, for messages."""
    if isinstance(kind, Integer):
        if kind.most == Integer().most:
            return f"an integer, {kind.least} or above"
        return f"an integer from {kind.least} to {kind.most}"
    if isinstance(kind, Number):
        if kind.most == math.inf:
            return f"a number, {kind.least:g} or above"
        return f"a number from {kind.least:g} to {kind.most:g}"
    if isinstance(kind, Choice):
        return " or ".join(map(repr, kind.values))
    return _NAMES[type(kind) if isinstance(kind, list | dict) else kind]


_NAMES: dict[Any, str] = {
    str: "a text",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    None: "null",
}


def parse_json(text: bytes, kind: Any) -> Any:
    """Parses a JSON text of a kind, up to the size limits of this module."""
    if len(text) > LARGEST:
        raise ValueError(f"it has {len(text):,} bytes, above the limit of {LARGEST:,}")
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MOST_VALUES:
        raise ValueError(f"it has {values:,} values, above the limit of {MOST_VALUES:,}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {error}") from error
    check_kind(value, kind)
    return value


def read_json(path: StrPath, kind: Any, remedy: str) -> Any:
    """Reads a JSON file of a kind; errors name the file and position and end with the remedy."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file. {remedy}")
    with open(path, "rb") as file:
        text = file.read(LARGEST + 1)
    try:
        return parse_json(text, kind)
    except ValueError as error:
        raise ValueError(f"{path}: {error}. {remedy}") from error


def read_text(path: StrPath, remedy: str = "") -> str:
    """Reads a UTF-8 file, with or without a byte order mark; errors end with the remedy."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file. {remedy}".rstrip())
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        remedy = remedy or "Convert it first."
        raise ValueError(f"{path}: is not UTF-8 text ({error.reason}). {remedy}") from None


def lines(
    name: StrPath,
    stream: Iterable[bytes],
    encoding: str = "utf-8",
    remedy: str = "Convert it first.",
) -> Iterator[str]:
    """Decodes the lines of a stream, without line ends; errors name line and remedy."""
    first = "utf-8-sig" if encoding == "utf-8" else encoding
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode(first if number == 1 else encoding).strip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: is not {encoding.upper()} text ({error.reason}). {remedy}"
            ) from error


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Checks that an archive does not unpack to far more bytes than any model file.

    Args:
        archive: `zipfile.ZipFile`.

    Raises:
        ValueError: if it does.
    """
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(ALWAYS, RATIO * sum(member.compress_size for member in members)):
        raise ValueError(f"it would unpack to {unpacked:,} bytes, too many for its size")


def read_npz(path: StrPath) -> dict[str, "np.ndarray"]:
    """The arrays of an `.npz` file, without pickled objects.

    Args:
        path: the file.

    Returns:
        Dictionary from names to arrays, in the order of the file. Exceptions of NumPy and `zipfile`
        for damaged files are not caught.
    """
    import numpy as np

    with zipfile.ZipFile(path) as archive:
        check_unpacked(archive)
    with np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(array) for name, array in file.items()}


def reason(error: BaseException) -> str:
    """The message of an error, shortened so that it fits into one line."""
    return textwrap.shorten(str(error), 300) or type(error).__name__
