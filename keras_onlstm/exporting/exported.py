"""What the formats have in common: what is refused before, and what is told afterwards."""

import os
from pathlib import Path
from typing import NamedTuple

import keras

from keras_onlstm.exporting.checks import Difference
from keras_onlstm.utils.libraries import is_installed
from keras_onlstm.utils.types import StrPath

__all__ = ["Exported", "check_request", "describe"]


class Exported(NamedTuple):
    """A file that was written.

    Attributes:
        path: `Path`.
        graphs: tuple of names.
        size: integer, in bytes.
        operators: dictionary of names of operators and how often each occurs, most first.
        difference: `Difference` from Keras, or `None` if it was not checked.
        latency: seconds of a run with batch 1 and 17 tokens, median of 15; `None` likewise.
    """

    path: Path
    graphs: tuple[str, ...]
    size: int
    operators: dict[str, int]
    difference: Difference | None
    latency: float | None


def check_request(
    path: StrPath,
    suffix: str,
    quantize: str | None = None,
    quantizations: tuple[str, ...] = (),
) -> Path:
    """Refuses what cannot be written, before time is spent on it.

    Args:
        path: where the file shall be.
        suffix: how it has to end, or "" for a directory.
        quantize: as the user gave it.
        quantizations: tuple of those that the format has.

    Returns:
        `Path`.

    Raises:
        ValueError: if the ending, the quantization or Keras's backend is another.
        OSError: if the directory is missing or cannot be written.
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        install = "" if is_installed("tensorflow") else "pip install tensorflow, "
        raise ValueError(
            f"exporting goes by way of TensorFlow, and Keras runs on {backend}. Save the model, "
            f"{install}and export it with KERAS_BACKEND=tensorflow."
        )
    if quantize not in (None, *quantizations):
        known = ", ".join(map(repr, (None, *quantizations[:-1])))
        raise ValueError(f"quantize is {known} or {quantizations[-1]!r}, not {quantize!r}.")
    path = Path(path)
    if path.suffix != suffix and suffix:
        raise ValueError(f"{path}: a file of this format ends in {suffix}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such directory. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent}: cannot be written. Name another directory.")
    if suffix and path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory. Name a file.")
    return path


def describe(exported: Exported) -> str:
    """A few lines on what was written."""
    most = [f"{name} {count}" for name, count in list(exported.operators.items())[:8]]
    lines = [
        f"{exported.path}: {', '.join(exported.graphs)}",
        f"  size        {exported.size / 1e6:.2f} MB",
        f"  operators   {sum(exported.operators.values())}: {', '.join(most)}, ...",
    ]
    if exported.difference is None or exported.latency is None:
        lines.append("  not checked")
    else:
        lines.append(f"  from Keras  {exported.difference.largest:.2g} at most")
        lines.append(f"  latency     {1e3 * exported.latency:.2f} ms, one sentence of 17 tokens")
    return "\n".join(lines)
