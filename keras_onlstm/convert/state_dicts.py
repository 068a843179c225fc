"""Arrays out of the authors' state dicts, checked one by one, and into them."""

from typing import Any

import numpy as np
import numpy.typing as npt
from keras import ops

__all__ = ["stored", "take", "unknown"]


def stored(variable: Any) -> np.ndarray:
    """A variable as an array of its own, float64 where it is float64, else float32."""
    array = np.asarray(ops.convert_to_numpy(variable))
    return np.array(array, "float64" if array.dtype == "float64" else "float32")


def take(
    left: dict[str, npt.ArrayLike],
    name: str,
    shape: tuple[int | str, ...],
    whole: str,
    reason: str | None = None,
) -> np.ndarray:
    """The array of that name, out of `left`, float32 or float64.

    Args:
        left: dictionary from names to arrays, from which it is taken.
        name: of the array.
        shape: sizes, or letters where a size is still open.
        whole: the authors' class, whose state dict it is.
        reason: why it has that shape, for the message.

    Returns:
        NumPy array.

    Raises:
        ValueError: if it is missing, of another shape, not of floating point, or not finite.
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
    """Refuses what is left of a state dict.

    Args:
        left: dictionary from names to arrays that were not taken.
        whole: the authors' class.

    Raises:
        ValueError: if there is any; the message names the first.
    """
    if left:
        raise ValueError(
            f"{next(iter(left))} is not in the state dict of the authors' {whole}"
            + (f", nor are {len(left) - 1} more arrays. " if len(left) > 1 else ". ")
            + "Leave out what the model does not need."
        )
