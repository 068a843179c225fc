"""Exported graphs, run by ONNX Runtime or LiteRT. Arrays are checked before a graph runs."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.runtime import metadata
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import describe
from keras_onlstm.utils.libraries import not_installed


class Tensor(NamedTuple):
    """An input of a graph. Sizes that may vary are `None`, as is an unknown shape."""

    shape: tuple[int | None, ...] | None
    dtype: np.dtype


class Graph:
    """An exported graph, ready to run. `load` makes one."""

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
        """Runs the graph once, on an array for each of `inputs`: the arrays of `outputs`, by name.

        Integers are converted if none changes. Raises `ValueError` if an array is missing, unknown,
        or has the wrong dtype or shape, or if the graph cannot be run on the arrays.
        """
        if arrays.keys() != self._tensors.keys():
            raise ValueError(
                f"{self.path}: the inputs must be {', '.join(self.inputs)}, got "
                f"{', '.join(arrays) or 'none'}."
            )
        feeds = {name: self._converted(name, array) for name, array in arrays.items()}
        try:
            return self._run(feeds)
        except Exception as error:  # each runtime has its own classes
            shapes = ", ".join(f"{name} {array.shape}" for name, array in feeds.items())
            raise ValueError(f"{self.path}: cannot run on {shapes} ({describe(error)}).") from error

    def _converted(self, name, array):
        array, (shape, dtype) = np.asarray(array), self._tensors[name]
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"{self.path}: {name} must have dtype {dtype}, got {array.dtype}.")
        if shape is not None and (
            array.ndim != len(shape)
            or any(size not in (None, own) for size, own in zip(shape, array.shape, strict=True))
        ):
            sizes = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(f"{self.path}: {name} must have shape ({sizes}), got {array.shape}.")
        converted = np.ascontiguousarray(array, dtype).reshape(array.shape)
        if np.issubdtype(dtype, np.integer) and (converted != array).any():
            raise ValueError(f"{self.path}: {name} contains values out of range for {dtype}.")
        return converted

    def _run(self, feeds):
        raise NotImplementedError


PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class OnnxGraph(Graph):
    """The graph of an `.onnx` file. `load` opens it.

    Attributes:
        metadata: dictionary of the file's metadata.
        inputs: list of names.
        outputs: list of names.
        batch: the only batch size; `None`: any.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> graph = runtime.load("parser.onnx")  # doctest: +SKIP
    >>> graph.run(ids=[[0, 5, 7]], lengths=[3])["forget_distances"].shape  # doctest: +SKIP
    (1, 3, 3)
    """

    def __init__(self, path: Path, provider: str = "cpu", threads: int | None = None) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise not_installed(path, "onnxruntime", error=error) from error
        providers = _providers(path, provider, onnxruntime.get_available_providers())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 4  # errors are raised as well
        try:
            session = onnxruntime.InferenceSession(
                path,
                options,
                providers=providers,
                enable_fallback=int(provider != "cpu"),  # otherwise it prints, then fails again
            )
            text = session.get_modelmeta().custom_metadata_map.get(metadata.KEY)
            inputs = {value.name: _tensor(value) for value in session.get_inputs()}
        except Exception as error:  # ONNX Runtime has many classes of errors
            raise ValueError(
                f"{path}: not a complete ONNX file ({describe(error)}). {metadata.REMEDY}"
            ) from error
        if providers[0] not in session.get_providers():
            raise ValueError(
                f"{path}: ONNX Runtime cannot start {providers[0]}. Install the driver and the "
                "libraries of CUDA, or use the provider 'cpu'."
            )
        fields = metadata.loads(text, path)
        super().__init__(path, fields, inputs, [value.name for value in session.get_outputs()])
        self._session = session

    def _run(self, feeds):
        return dict(zip(self.outputs, self._session.run(self.outputs, feeds), strict=True))


def _providers(path, provider, available):
    if provider not in PROVIDERS:
        raise ValueError(f"provider must be 'cpu' or 'cuda', got {provider!r}.")
    if PROVIDERS[provider] not in available:
        raise ValueError(
            f"{path}: ONNX Runtime has no {PROVIDERS[provider]}, only {', '.join(available)}. For "
            "a GPU: pip uninstall onnxruntime, then pip install onnxruntime-gpu."
        )
    return list(dict.fromkeys([PROVIDERS[provider], PROVIDERS["cpu"]]))


def _tensor(value):
    name = value.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(size if isinstance(size, int) else None for size in value.shape)
    return Tensor(shape, np.dtype({"float": "float32", "double": "float64"}.get(name, name)))


class TfliteGraph(Graph):
    """The graph of a `.tflite` file, with the attributes of `OnnxGraph`. `load` opens it.

    One thread runs it at a time. Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> runtime.load("parser.tflite").batch  # doctest: +SKIP
    1
    """

    def __init__(self, path: Path, provider: str = "cpu", threads: int | None = None) -> None:
        if provider != "cpu":
            raise ValueError(f"{path}: LiteRT runs only on the CPU, not on {provider!r}. Use ONNX.")
        flatbuffer, fields = metadata.unpack(path.read_bytes(), path)
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise not_installed(path, "ai-edge-litert", error=error) from error
        try:
            interpreter = Interpreter(model_content=flatbuffer, num_threads=threads)
            # The runner resizes the inputs to the arrays.
            self._runner = interpreter.get_signature_runner("serving_default")
        except Exception as error:
            raise ValueError(
                f"{path}: LiteRT cannot run it ({describe(error)}). {metadata.REMEDY}"
            ) from error
        inputs = {}
        for name, details in self._runner.get_input_details().items():
            shape = tuple(int(n) if n >= 0 else None for n in details["shape_signature"])
            inputs[name] = Tensor(shape, np.dtype(details["dtype"]))
        super().__init__(path, fields, inputs, self._runner.get_output_details())
        self._lock = threading.Lock()  # resizing the inputs and running is not atomic

    def _run(self, feeds):
        with self._lock:
            return self._runner(**feeds)
