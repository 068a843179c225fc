"""Reading `.npz` files: what their arrays claim to be is known, and checked, before one is read.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html describes them: ZIP archives
of arrays, each behind a header with its dtype and shape. NumPy makes room for whatever a header
says. Pickled objects are never read.
"""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from keras_onlstm.utils.reading import check_unpacked
from keras_onlstm.utils.types import StrPath

__all__ = ["Header", "Npz", "open_npz"]

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Header(NamedTuple):
    """What an array says of itself.

    Attributes:
        shape: tuple of integers.
        dtype: NumPy's.
    """

    shape: tuple[int, ...]
    dtype: np.dtype


class Npz:
    """The arrays of an open `.npz` file.

    Args:
        archive: `zipfile.ZipFile`.

    Attributes:
        headers: dictionary from names, without `.npy`, to `Header`, in the order of the file.

    Raises:
        ValueError: if there is something else in it, or arrays are larger than the file rightly
            can hold. What the archive raises where it is damaged goes through.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        members = archive.infolist()
        check_unpacked(
            sum(member.file_size for member in members),
            sum(member.compress_size for member in members),
        )
        self.headers: dict[str, Header] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename or name in self.headers:
                raise ValueError(f"{member.filename} is no array, or there twice")
            with archive.open(member) as file:
                self.headers[name] = _header(name, file, member.file_size)

    def read(self, name: str) -> np.ndarray:
        """One of the arrays.

        Args:
            name: one of `headers`.

        Returns:
            NumPy array.
        """
        with self._archive.open(f"{name}.npy") as file:
            array = npy.read_array(file, allow_pickle=False)
            file.read(1)  # at its end the archive compares the checksum
        return array

    def read_all(self) -> dict[str, np.ndarray]:
        """All arrays.

        Returns:
            Dictionary, in the order of the file.
        """
        return {name: self.read(name) for name in self.headers}


def _header(name, file, size):
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"{name} is of version {version}, and arrays of numbers are of (1, 0)")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"{name} holds pickled objects")
    if min(shape, default=0) < 0 or file.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} claims {dtype} of shape {shape}, and has {size:,} bytes in all")
    return Header(shape, dtype)


@contextmanager
def open_npz(path: StrPath) -> Iterator[Npz]:
    """Opens an `.npz` file.

    Args:
        path: the file.

    Yields:
        `Npz`.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from keras_onlstm.utils.npz import open_npz
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "weights.npz"
    ...     np.savez(path, bias=np.zeros(3))
    ...     with open_npz(path) as file:
    ...         print(file.headers["bias"].shape, file.read("bias"))
    (3,) [0. 0. 0.]
    """
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        yield Npz(archive)
