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

MAX_BYTES = 32 * 2**20  # of a JSON text: three times a vocabulary of a million words
MAX_VALUES = 2**21  # of a JSON text: in memory a value takes up to 100 times its size
MAX_RATIO = 20  # of unpacked to packed bytes: 3 to 10 for text, hardly above 1 for weights
SMALL_ARCHIVE = 256 * 2**20  # unpacked bytes; smaller archives may have any ratio
LOCK = ".lock"
_TEMPORARY = ".*.part"  # names of temporary directories, which a killed process leaves
_OLD = ".old"
_HOUR = 3600  # seconds; no file takes longer to write
_REMEDIES: dict[int | None, str] = {
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room on the disk, or ask for more.",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f).",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Make its directory writable."),
    errno.ENOENT: "Create its directory first.",
}


def cannot_write(path: StrPath, error: OSError) -> OSError:
    """The error for a file that cannot be written, with the path, the reason and a remedy."""
    remedy = _REMEDIES.get(error.errno, "")
    if error.errno == errno.ENOENT and Path(path).parent.exists():
        remedy = "Choose another directory."
    return type(error)(f"{path}: cannot be written ({error.strerror}). {remedy}".rstrip())


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Yields a temporary path, and moves it to `path` unless an exception was raised.

    Both may be a file or a directory. The temporary path is in a new private directory beside
    `path`. If a killed process leaves it, the next write of `path` removes it when it is an hour
    old: before that another process may still use it.
    """
    path = Path(path)
    _remove_old_temporaries(path)
    directory = None
    try:
        directory = Path(tempfile.mkdtemp(".part", f".{path.name}.", path.parent))
        yield directory / path.name
        _move(directory, path)
    except OSError as error:
        if error.errno is None or not _concerns(error.filename, path):
            raise  # it concerns another file, which was read in the meantime
        raise cannot_write(path, error) from error
    finally:
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


def _concerns(name, path):
    """Whether an error with this file name, or without one, was caused by writing `path`."""
    if name is None:
        return True
    name, path = (os.path.abspath(os.fsdecode(x)) for x in (name, path))
    directory, base = os.path.split(path)
    return name == path or name.startswith(os.path.join(directory, f".{base}."))


def _move(directory, path):
    """Moves the complete file or directory to `path`."""
    new, old = directory / path.name, directory / f"{path.name}{_OLD}"
    for file in new.rglob("*") if new.is_dir() else [new]:
        if not file.is_dir():
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
    try:
        if new.is_dir() and path.exists():  # os.replace would refuse a directory that is not empty
            os.replace(path, old)
        os.replace(new, path)
    finally:
        _restore(old, path)


def _restore(old, path):
    """Moves a directory back if its replacement was not moved to its path."""
    if old.exists() and not path.exists():
        os.replace(old, path)


def remove_left_overs(directory: StrPath) -> None:
    """Removes temporary files of killed processes, also from subdirectories.

    No other process may be writing there.
    """
    for path in list(Path(directory).rglob(_TEMPORARY)):
        shutil.rmtree(path, ignore_errors=True)


def is_left_over(path: StrPath) -> bool:
    """Whether this is the name of a temporary directory of `replacing`."""
    return Path(path).match(_TEMPORARY)


def _remove_old_temporaries(path):
    """Removes temporary files of processes that were killed while they wrote `path`."""
    for directory in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        try:
            age = time.time() - directory.stat().st_mtime
            _restore(directory / f"{path.name}{_OLD}", path)
            if age > _HOUR:
                shutil.rmtree(directory, ignore_errors=True)
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
    if len(text) > MAX_BYTES:
        raise ValueError(f"it has {len(text):,} bytes, above the limit of {MAX_BYTES:,}")
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
        text = file.read(MAX_BYTES + 1)
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
    """Raises a `ValueError` if an archive would unpack to far more bytes than any model file."""
    files = archive.infolist()
    unpacked = sum(file.file_size for file in files)
    if unpacked > max(SMALL_ARCHIVE, MAX_RATIO * sum(file.compress_size for file in files)):
        raise ValueError(f"it would unpack to {unpacked:,} bytes, too many for its size")


def read_npz(path: StrPath) -> dict[str, "np.ndarray"]:
    """The arrays of an `.npz` file by name, without pickled objects.

    Exceptions of NumPy and `zipfile` for damaged files are not caught.
    """
    import numpy as np

    with zipfile.ZipFile(path) as archive:
        check_unpacked(archive)
    with np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(array) for name, array in file.items()}


def describe(error: BaseException) -> str:
    """The message of an error, shortened so that it fits into one line."""
    return textwrap.shorten(str(error), 300) or type(error).__name__
