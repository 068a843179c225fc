"""Reading files that anybody may have written: what they say of themselves is checked first.

A few bytes can claim to be gigabytes, and a JSON text can hold anything in any place. So sizes have
limits before anything is unpacked, and JSON has a kind, which says what stands where:

- `str`, `bool`, `float` (any number), `list`, `dict`, `None`, `object` (anything);
- `Integer(least, most)`, `Number(least, most)` and `Choice(values)`, which are narrower;
- `[kind]`, a list; `{"name": kind}`, an object with at least these names; `{str: kind}`, one of any
  names;
- `(kind, kind)`, one or the other; with `...` among them the name may also be missing.
"""

import json
import math
import reprlib
import textwrap
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.utils.types import StrPath

__all__ = [
    "SEEDS", "STARTS", "Choice", "Integer", "Number",
    "check_kind", "check_unpacked", "lines", "parse_json", "read_json", "read_text", "reason",
    "unzipped",
]  # fmt: skip

LARGEST = 32 * 2**20  # bytes of a JSON text: a million words of a vocabulary have a third of it
MOST_VALUES = 2**21  # in one: a value takes up to a hundred times the bytes of its text
RATIO = 20  # of unpacked to packed bytes: text gets 3 to 10 times smaller, weights hardly
ALWAYS = 16 * 2**20  # so many unpacked bytes do no harm, whatever the ratio


class Integer(NamedTuple):
    """The kind of integers from `least` to `most`.

    Attributes:
        least: the least that will do.
        most: the greatest.
    """

    least: int = 0
    most: int = 2**63 - 1


class Number(NamedTuple):
    """The kind of numbers from `least` to `most`, which may be infinite.

    Attributes:
        least: the least that will do.
        most: the greatest.
    """

    least: float = -math.inf
    most: float = math.inf


class Choice(NamedTuple):
    """The kind of these values alone.

    Attributes:
        values: tuple of strings.
    """

    values: tuple[str, ...]


SEEDS = Integer(0, 2**32 - 1)  # what every random generator takes
STARTS = Choice(("scaled", "published"))  # of the weights of a model: see models.starts


def check_kind(value: Any, kind: Any, name: str = "it") -> None:
    """Refuses a value that is of another kind.

    Args:
        value: what JSON can hold.
        kind: as the module describes.
        name: of the value, for the message.

    Raises:
        ValueError: if it is of another kind, at the first place where it is.

    Example:

    >>> from keras_onlstm.utils.reading import Integer, check_kind
    >>> kind = {"epochs": [{"epoch": Integer(1), "loss": float}]}
    >>> check_kind({"epochs": [{"epoch": 1, "loss": 2.5}]}, kind)
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
    """Where a value is not of a kind, and what is the matter there; or `None`."""
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
    """Whether a value is of a kind, whatever it holds."""
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
    except UnicodeEncodeError:  # half of a pair of surrogates, which no file and no screen takes
        return False
    return True


def _words(kind):
    """A kind in words."""
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
    """The value of a JSON text.

    Args:
        text: bytes.
        kind: of the value, as the module describes.

    Returns:
        The value.

    Raises:
        ValueError: if it is no JSON, of another kind, or larger than any such text of the package.

    Example:

    >>> from keras_onlstm.utils.reading import parse_json
    >>> parse_json(b'{"words": ["the", "cat"]}', {"words": [str]})
    {'words': ['the', 'cat']}
    """
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
    """The value of a JSON file.

    Args:
        path: the file.
        kind: of the value, as the module describes.
        remedy: what the user can do if it cannot be read, as a sentence.

    Returns:
        The value.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds something else; the message names the file and the place.
    """
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
    """The text of a file.

    Args:
        path: of the file, UTF-8, with or without a mark of it at its beginning.
        remedy: what the user can do if it cannot be read, as a sentence. Default: to convert it.

    Returns:
        String; a line ends as it does in the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8 text.
    """
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
    """The lines of a stream of bytes, without their ends.

    Args:
        name: of the stream, for messages.
        stream: lines of bytes.
        encoding: of the text. That of UTF-8 may have a mark of it at its beginning.
        remedy: what the user can do if a line is no such text, as a sentence.

    Yields:
        Strings.

    Raises:
        ValueError: if a line is not text in that encoding; the message names it.

    Example:

    >>> from keras_onlstm.utils.reading import lines
    >>> list(lines("notes.txt", [b"a dog\\r\\n", b"a cat"]))
    ['a dog', 'a cat']
    """
    first = "utf-8-sig" if encoding == "utf-8" else encoding
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode(first if number == 1 else encoding).strip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: is not {encoding.upper()} text ({error.reason}). {remedy}"
            ) from error


def check_unpacked(unpacked: int, packed: int) -> None:
    """Refuses a claim of more bytes than so few packed ones rightly hold.

    Args:
        unpacked: integer, how many bytes there are said to be.
        packed: integer, how many there are in the file.

    Raises:
        ValueError: if so.

    Example:

    >>> from keras_onlstm.utils.reading import check_unpacked
    >>> check_unpacked(10**12, 1000)
    Traceback (most recent call last):
    ...
    ValueError: 1,000 bytes claim to be 1,000,000,000,000
    """
    if unpacked > max(ALWAYS, RATIO * packed):
        raise ValueError(f"{packed:,} bytes claim to be {unpacked:,}")


def unzipped(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of a member of a ZIP archive.

    Args:
        archive: `zipfile.ZipFile`.
        name: of the member.

    Returns:
        Bytes.

    Raises:
        ValueError: if it says that it is larger than it rightly can be. What the archive raises
            where it is damaged goes through.
    """
    member = archive.getinfo(name)
    check_unpacked(member.file_size, member.compress_size)
    return archive.read(member)


def reason(error: BaseException) -> str:
    """What a library said of a damaged file, in a part of a line.

    Args:
        error: the exception; its text may have many lines, or none.

    Returns:
        String.

    Example:

    >>> from keras_onlstm.utils.reading import reason
    >>> reason(MemoryError())
    'MemoryError'
    """
    return textwrap.shorten(str(error), 300) or type(error).__name__
