"""Files: atomic writing, a lock on a directory, and reading with one-line errors."""

import errno
import glob
import json
import os
import shutil
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.libraries import not_installed
from keras_onlstm.utils.validation import check_kind

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "LOCK",
    "cannot_write",
    "check_unlocked",
    "check_unpacked",
    "describe",
    "is_left_over",
    "lines",
    "locked",
    "parse_json",
    "read_json",
    "read_npz",
    "read_text",
    "remove_left_overs",
    "replacing",
    "write_json",
]

LARGEST = 32 * 2**20  # bytes of a JSON text: three times a vocabulary of a million words
MAX_VALUES = 2**21  # in a text: in memory a value takes up to 100 times its size
RATIO = 20  # of unpacked to packed bytes: 3 to 10 for text, hardly above 1 for weights
ALWAYS = 256 * 2**20  # bytes that any archive may unpack to, whatever the ratio
LOCK = ".lock"
_LEFT_OVER = ".*.part"  # names of temporary directories, which a killed process leaves
_OLD = ".old"
_HOUR = 3600  # seconds; no file takes longer to write
_REMEDIES: dict[int | None, str] = {
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room on the disk, or ask for more.",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f).",
    errno.EACCES: "Make its directory writable.",
    errno.EPERM: "Make its directory writable.",
    errno.EROFS: "Make its directory writable.",
    errno.ENOENT: "Create its directory first.",
}


def cannot_write(path: StrPath, error: OSError) -> OSError:
    """The error for a file that cannot be written, with the path, the reason and a remedy.

    Args:
        path: the file or directory.
        error: the `OSError` of the operating system.

    Returns:
        `OSError` of the class of `error`.
    """
    remedy = _REMEDIES.get(error.errno, "")
    return type(error)(f"{path}: cannot be written ({error.strerror}). {remedy}".rstrip())


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Yields a temporary path, and moves it to `path` unless an exception was raised.

    The temporary path is in a new private directory with a random name, beside `path`. If a killed
    process leaves it, the next writing of `path` removes it when it is an hour old: before that
    another process may still use it.

    Args:
        path: of the file or directory to write. An existing one is replaced only when the new one
            is complete.

    Raises:
        OSError: if it cannot be written.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.utils.files import replacing
    >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
    >>> with replacing(path) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> path.read_text()
    'whole'
    """
    path = Path(path)
    _tidy(path)
    place = None
    try:
        place = Path(tempfile.mkdtemp(".part", f".{path.name}.", path.parent))
        yield place / path.name
        _move(place, path)
    except OSError as error:
        if error.errno is None or not _concerns(error.filename, path):
            raise  # it concerns another file, read in the meantime
        raise cannot_write(path, error) from error
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)


def _concerns(name, path):
    """Whether an error with this file name, or without one, was caused by writing `path`."""
    if name is None:
        return True
    name, whole = (os.path.abspath(os.fsdecode(one)) for one in (name, path))
    return name == whole or name.startswith(os.path.join(os.path.dirname(whole), f".{path.name}."))


def _move(place, path):
    """Moves the complete file or directory to `path`."""
    made, old = place / path.name, place / f"{path.name}{_OLD}"
    for file in made.rglob("*") if made.is_dir() else [made]:
        if not file.is_dir():
            with open(file, "rb") as written:
                os.fsync(written.fileno())
    try:
        if made.is_dir() and path.exists():  # os.replace would refuse a directory that is not empty
            os.replace(path, old)
        os.replace(made, path)
    finally:
        _restore(old, path)


def _restore(old, path):
    """Moves a directory back if the one that should replace it was not moved there."""
    if old.exists() and not path.exists():
        os.replace(old, path)


def remove_left_overs(directory: StrPath) -> None:
    """Removes temporary files of killed processes from a directory and its subdirectories.

    Args:
        directory: path. No other process may be writing there.
    """
    for place in list(Path(directory).rglob(_LEFT_OVER)):
        shutil.rmtree(place, ignore_errors=True)


def is_left_over(path: StrPath) -> bool:
    """Whether this is the name of a temporary directory of `replacing`."""
    return Path(path).match(_LEFT_OVER)


def _tidy(path):
    """Removes temporary files of processes that were killed while they wrote `path`."""
    for place in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        try:
            age = time.time() - place.stat().st_mtime
            _restore(place / f"{path.name}{_OLD}", path)
            if age > _HOUR:
                shutil.rmtree(place, ignore_errors=True)
        except OSError:  # another process has removed it
            continue


def write_json(path: StrPath, content: Any) -> None:
    """Writes `content` as indented JSON, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@contextmanager
def locked(directory: StrPath) -> Iterator[None]:
    """A context that locks a directory for other processes and threads.

    The operating system releases the lock when its holder dies. The lock file remains.

    Raises:
        BlockingIOError: if another one holds the lock.
        ImportError: if `filelock` is not installed.
        OSError: if the directory cannot be written.
    """
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise not_installed(directory, "filelock", error=error) from error
    path = Path(directory) / LOCK
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(
            f"{directory}: is in use by another process. Wait for it, stop it, or name another "
            "directory."
        ) from None
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield
    finally:
        lock.release()


def check_unlocked(directory: StrPath) -> None:
    """Raises the `BlockingIOError` of `locked` if another process holds the lock."""
    if (Path(directory) / LOCK).exists():
        with locked(directory):
            pass


def parse_json(text: bytes, kind: Any) -> Any:
    """Parses a JSON text of a kind, up to the size limits of this module."""
    if len(text) > LARGEST:
        raise ValueError(f"it has {len(text):,} bytes, above the limit of {LARGEST:,}")
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MAX_VALUES:
        raise ValueError(f"it has {values:,} values, above the limit of {MAX_VALUES:,}")
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


def describe(error: BaseException) -> str:
    """The message of an error, shortened so that it fits into one line."""
    return textwrap.shorten(str(error), 300) or type(error).__name__
