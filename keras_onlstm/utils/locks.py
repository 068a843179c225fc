"""A lock on a directory, which the death of its holder opens."""

import contextlib
import errno
import importlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from keras_onlstm.utils.files import cannot_write
from keras_onlstm.utils.types import StrPath

fcntl: ModuleType | None
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # Windows
    fcntl = None

__all__ = ["LOCK", "check_unlocked", "locked"]

LOCK = ".lock"
_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)


@contextlib.contextmanager
def locked(directory: StrPath) -> Iterator[None]:
    """A context in which no other process has the lock of a directory, nor another thread.

    The operating system keeps the lock, so that nobody holds it who died; the file `.lock` says who
    holds it. Machines see each other's locks where their network file system knows `flock`. Where
    there are no such locks, on Windows for example, nobody is kept out.

    Args:
        directory: which has to exist.

    Raises:
        BlockingIOError: if another has the lock.
        OSError: if the directory cannot be written.

    Example:

    >>> import tempfile
    >>> from keras_onlstm.utils.locks import locked
    >>> with tempfile.TemporaryDirectory() as directory, locked(directory):
    ...     with locked(directory):  # doctest: +ELLIPSIS
    ...         pass
    Traceback (most recent call last):
    BlockingIOError: ... is in use by process ... Wait for it, stop it, or name another directory.
    """
    path = Path(directory) / LOCK
    holder = f"process {os.getpid()} on {socket.gethostname()}, since {time.ctime()}\n"
    with contextlib.ExitStack() as stack:
        try:
            file = _opened(path)
            stack.callback(os.close, file)
            os.truncate(file, 0)
            os.write(file, holder.encode())
        except OSError as error:
            raise error if error.errno is None else cannot_write(path, error) from error
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # the directory may be gone
                path.unlink()


def check_unlocked(directory: StrPath) -> None:
    """Refuses a directory whose lock another has.

    Args:
        directory: which need not exist.

    Raises:
        BlockingIOError: if so.
    """
    path = Path(directory) / LOCK
    try:
        file = os.open(path, _FLAGS)
    except OSError:  # there is none, or it is not ours to hold
        return
    try:
        _lock(file, path)
    finally:
        os.close(file)


def _opened(path):
    """A descriptor of the file, with its lock."""
    while True:
        file = os.open(path, _FLAGS | os.O_CREAT, 0o666)
        try:
            _lock(file, path)
            # Its last holder may have removed it meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(path)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file, path):
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            return  # the file system has no locks
        said = os.read(file, 200).decode(errors="replace").strip()
        holder = said if said and said.isprintable() else "another process"
        raise BlockingIOError(
            f"{path.parent}: is in use by {holder}. Wait for it, stop it, or name another "
            "directory."
        ) from None
