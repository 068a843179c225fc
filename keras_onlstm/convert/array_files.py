"""Files of arrays, `.npz` and `.safetensors`, and the authors' state dicts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from keras import ops

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import describe, read_npz, replacing
from keras_onlstm.utils.libraries import not_installed


def read_arrays(path: StrPath) -> dict[str, np.ndarray]:
    """Reads the arrays of an `.npz` or `.safetensors` file, by name. Neither can run code.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it has another ending, is damaged, or contains anything except plain arrays.
        ImportError: if `safetensors` is needed and not installed.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm import convert
    >>> np.savez("weights.npz", **{"decoder.bias": np.zeros(3)})
    >>> convert.read_arrays("weights.npz")
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
                raise ValueError(f"{name} is not an array of numbers")
    except Exception as error:  # NumPy, its ZIP reader and safetensors raise many classes
        raise ValueError(
            f"{path}: not a complete {kind} file of NumPy arrays ({describe(error)}). Write it "
            "again, with bfloat16 converted to float32."
        ) from error
    return arrays


def write_arrays(path: StrPath, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Writes arrays of numbers, by name, atomically to an `.npz` or `.safetensors` file.

    Raises:
        ValueError: if the file has another ending, or an array cannot be stored without pickle.
        ImportError: if `safetensors` is needed and not installed.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm import convert
    >>> convert.write_arrays("weights.npz", {"decoder.bias": np.zeros(3)})
    """
    kind = _kind(path)
    plain: dict[str, Any] = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind not in "fiubc":  # numbers
            raise ValueError(
                f"{name} is {array.dtype}, not numbers that NumPy can store. Convert bfloat16 to "
                "float32, or leave it out."
            )
        # Native byte order and C order, because safetensors copies the bytes unchanged.
        plain[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    if kind == ".npz":
        with replacing(path) as temporary:
            np.savez(temporary, **plain)
        return
    safetensors = _safetensors()
    try:
        content = safetensors.save(plain)
    except Exception as error:  # its own class, for unsupported dtypes
        raise ValueError(f"{path}: {error}. Store another dtype, or write .npz.") from error
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _kind(path):
    kind = Path(path).suffix.lower()
    if kind not in (".npz", ".safetensors"):
        raise ValueError(f"{path}: must end in .npz or .safetensors.")
    return kind


def _safetensors():
    try:
        import safetensors.numpy
    except ImportError as error:
        raise not_installed("A .safetensors file", "safetensors", error=error) from error
    return safetensors.numpy


def variable_array(variable: Any) -> np.ndarray:
    """A copy of a variable as an array: float64 if it is float64, else float32."""
    array = np.asarray(ops.convert_to_numpy(variable))
    return np.array(array, "float64" if array.dtype == "float64" else "float32")


def check_inferred(kwargs: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises `ValueError` for arguments whose values are inferred from the arrays."""
    for name in names:
        if name in kwargs:
            raise ValueError(f"{name} follows from the arrays: leave it out.")


class StateDict:
    """The arrays of the authors' class `model`. Each is removed when it is read."""

    def __init__(self, arrays: Mapping[str, npt.ArrayLike], model: str) -> None:
        self.arrays = {str(name): array for name, array in arrays.items()}
        self.model = model

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def shape(self, name: str, shape: tuple[int | str, ...]) -> tuple[int, ...]:
        """The shape of an array, which is checked as by `pop` but not removed."""
        return StateDict(self.arrays, self.model).pop(name, shape).shape

    def pop(self, name: str, shape: tuple[int | str, ...], reason: str | None = None) -> np.ndarray:
        """Removes an array, checks it, and returns it in float32 or float64.

        `shape` has letters for unknown sizes; `reason` explains it in the message.
        """
        if name not in self.arrays:
            raise ValueError(
                f"{name} is missing. Pass the whole state dict of the authors' {self.model}."
            )
        array = np.asarray(self.arrays.pop(name))
        if array.dtype.kind != "f":
            raise ValueError(f"{name} is {array.dtype}, not floating point. Store it as float32.")
        fits = array.ndim == len(shape) and all(
            size == expected if isinstance(expected, int) else size > 0
            for size, expected in zip(array.shape, shape, strict=True)
        )
        if not fits:
            expected = str(shape).replace("'", "") + (f": {reason}" if reason else "")
            raise ValueError(
                f"{name} has shape {array.shape}, not {expected}. Pass the arrays of one model."
            )
        if not (np.abs(array) <= np.finfo("float32").max).all():
            raise ValueError(f"{name} is not finite in float32. Use another checkpoint.")
        return np.asarray(array, "float64" if array.dtype.itemsize > 4 else "float32")

    def check_empty(self) -> None:
        """Raises `ValueError` if arrays were not read; the message names the first."""
        if self.arrays:
            name, *others = self.arrays
            also = f", nor are {len(others)} more arrays" if others else ""
            raise ValueError(
                f"{name} is not in the state dict of the authors' {self.model}{also}. Leave out "
                "what the model does not need."
            )
