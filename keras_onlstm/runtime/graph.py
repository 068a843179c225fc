"""Base class of graphs of every format. It checks arrays before it runs a graph."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.utils.reading import reason
from keras_onlstm.utils.types import StrPath

__all__ = ["Graph", "Tensor"]


class Tensor(NamedTuple):
    """An input of a graph.

    Attributes:
        shape: tuple of integers, `None` where any is allowed; or `None` if the shape is unknown.
        dtype: NumPy dtype.
    """

    shape: tuple[int | None, ...] | None
    dtype: np.dtype


class Graph:
    """An exported graph, ready to run. `load` makes one.

    Args:
        path: path of the file.
        metadata: dictionary.
        inputs: dictionary from names to `Tensor`.
        outputs: list of names.
    """

    def __init__(
        self,
        path: StrPath,
        metadata: dict[str, Any],
        inputs: Mapping[str, Tensor],
        outputs: Iterable[str],
    ) -> None:
        self.path = path
        self.metadata = metadata
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._tensors = inputs
        first = {tensor.shape[0] for tensor in inputs.values() if tensor.shape}
        self.batch = first.pop() if len(first) == 1 else None

    def run(self, **arrays: npt.ArrayLike) -> dict[str, np.ndarray]:
        """Runs the graph once.

        Args:
            **arrays: one for each of `inputs`, by name. Integers are converted if none changes.

        Returns:
            Dictionary from the names of `outputs` to arrays.

        Raises:
            ValueError: if an array is missing, unknown, or has the wrong dtype or shape; or if the
                graph cannot be run on the arrays.
        """
        if arrays.keys() != self._tensors.keys():
            raise ValueError(
                f"{self.path}: its inputs are {', '.join(self.inputs)}, not "
                f"{', '.join(arrays) or 'none'}."
            )
        feeds = {name: self._converted(name, array) for name, array in arrays.items()}
        try:
            return self._run(feeds)
        except Exception as error:  # each runtime has its own classes
            shapes = ", ".join(f"{name} {array.shape}" for name, array in feeds.items())
            raise ValueError(f"{self.path}: cannot run on {shapes} ({reason(error)}).") from error

    def _converted(self, name, array):
        array, (shape, dtype) = np.asarray(array), self._tensors[name]
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"{self.path}: {name} is of {dtype}, not of {array.dtype}.")
        if shape is not None and (
            array.ndim != len(shape)
            or any(want not in (None, size) for want, size in zip(shape, array.shape, strict=True))
        ):
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(f"{self.path}: {name} has shape ({wanted}), not {array.shape}.")
        converted = np.ascontiguousarray(array, dtype).reshape(array.shape)
        if np.issubdtype(dtype, np.integer) and (converted != array).any():
            raise ValueError(f"{self.path}: {name} has numbers that {dtype} cannot hold.")
        return converted

    def _run(self, feeds):
        raise NotImplementedError
