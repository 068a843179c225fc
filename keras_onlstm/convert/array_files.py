"""Files of plain arrays, `.npz` and `.safetensors`, and checks of the authors' state dicts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from keras import ops

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import describe, read_npz, replacing
from keras_onlstm.utils.libraries import not_installed

__all__ = ["read_arrays", "stored", "take", "unknown", "write_arrays"]


def read_arrays(path: StrPath) -> dict[str, np.ndarray]:
    """Reads the arrays of an `.npz` or `.safetensors` file. Neither can run code.

    Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html and
    https://github.com/huggingface/safetensors.

    Args:
        path: the file, ending in `.npz` or `.safetensors`.

    Returns:
        Dictionary from names to NumPy arrays.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it has another ending, is damaged, or contains anything except plain arrays,
            such as pickled objects.
        ImportError: if `safetensors` is needed and not installed.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from keras_onlstm import convert
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "weights.npz"
    ...     np.savez(path, **{"decoder.bias": np.zeros(3)})
    ...     convert.read_arrays(path)
    {'decoder.bias': array([0., 0., 0.])}
    """
    path, kind = Path(path), _kind(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    read = read_npz if kind == ".npz" else _safetensors().load_file
    try:
        arrays = read(path)
        for name, array in arrays.items():
            if array.dtype.kind in "SV":  # not an array, or bfloat16
                raise ValueError(f"{name} is none")
    except Exception as error:  # NumPy, its ZIP reader and safetensors raise many classes
        raise ValueError(
            f"{path}: not a complete {kind} file of arrays that NumPy knows ({describe(error)}). "
            "Write it anew from its source; bfloat16 as float32."
        ) from error
    return arrays


def write_arrays(path: StrPath, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Writes arrays atomically to an `.npz` or `.safetensors` file.

    Source: see `read_arrays`.

    Args:
        path: the file, ending in `.npz` or `.safetensors`.
        arrays: mapping from names to arrays of numbers.

    Raises:
        ValueError: if the file has another ending, or an array cannot be stored in it without
            pickle.
        ImportError: if `safetensors` is needed and not installed.

    Example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from keras_onlstm import convert
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "weights.npz"
    ...     convert.write_arrays(path, {"decoder.bias": np.zeros(3)})
    ...     convert.read_arrays(path)
    {'decoder.bias': array([0., 0., 0.])}
    """
    kind = _kind(path)
    plain: dict[str, Any] = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind not in "fiubc":  # numbers
            raise ValueError(
                f"{name} is {array.dtype}, not numbers as NumPy stores them. Leave it out, or "
                "convert it: bfloat16 to float32."
            )
        # Native byte order and C order, because safetensors copies the bytes unchanged.
        plain[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    if kind == ".npz":
        with replacing(path) as temporary:
            np.savez(temporary, **plain)
        return
    save = _safetensors().save
    try:
        content = save(plain)
    except Exception as error:  # its own class, for unsupported dtypes
        raise ValueError(f"{path}: {error}. Store another dtype, or write .npz.") from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _kind(path):
    kind = Path(path).suffix.lower()
    if kind not in (".npz", ".safetensors"):
        raise ValueError(f"{path}: arrays are kept in .npz or .safetensors files.")
    return kind


def _safetensors():
    try:
        import safetensors.numpy
    except ImportError as error:
        raise not_installed("A .safetensors file", "safetensors", error=error) from error
    return safetensors.numpy


def stored(variable: Any) -> np.ndarray:
    """A copy of a variable as an array: float64 if it is float64, else float32."""
    array = np.asarray(ops.convert_to_numpy(variable))
    return np.array(array, "float64" if array.dtype == "float64" else "float32")


def take(
    left: dict[str, npt.ArrayLike],
    name: str,
    shape: tuple[int | str, ...],
    whole: str,
    reason: str | None = None,
) -> np.ndarray:
    """Removes an array from `left` and returns it in float32 or float64.

    `shape` has letters for unknown sizes; `reason` explains it in the message. Raises `ValueError`
    for arrays that are missing, of another shape, not of floating point, or not finite.
    """
    if name not in left:
        raise ValueError(
            f"{name} is missing. Give the whole state dict of the authors' {whole}, under its "
            "names."
        )
    array = np.asarray(left.pop(name))
    if array.dtype.kind != "f":
        raise ValueError(f"{name} is {array.dtype}, not floating point. Store it as float32.")
    fits = array.ndim == len(shape) and all(
        size == wanted if isinstance(wanted, int) else size > 0
        for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = str(shape).replace("'", "")
        raise ValueError(
            f"{name} has shape {array.shape}, not {wanted}"
            + (f": {reason}." if reason else ".")
            + " Give the arrays of one model, as its state dict has them."
        )
    if not (np.abs(array) <= np.finfo("float32").max).all():
        raise ValueError(
            f"{name} is not finite in float32: training diverged, or the file is damaged. Take "
            "another checkpoint."
        )
    return np.asarray(array, "float64" if array.dtype.itemsize > 4 else "float32")


def unknown(left: dict[str, npt.ArrayLike], whole: str) -> None:
    """Raises `ValueError` if arrays are left in a state dict; the message names the first."""
    if left:
        raise ValueError(
            f"{next(iter(left))} is not in the state dict of the authors' {whole}"
            + (f", nor are {len(left) - 1} more arrays. " if len(left) > 1 else ". ")
            + "Leave out what the model does not need."
        )
