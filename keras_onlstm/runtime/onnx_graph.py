"""Graphs in ONNX files, run by ONNX Runtime."""

from pathlib import Path

import numpy as np

from keras_onlstm.runtime import metadata
from keras_onlstm.runtime.graph import Graph, Tensor
from keras_onlstm.utils.libraries import not_installed
from keras_onlstm.utils.reading import reason

__all__ = ["OnnxGraph"]

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class OnnxGraph(Graph):
    """The graph of an `.onnx` file.

    Args:
        path: `Path` of the file.
        provider: `"cpu"` or `"cuda"`.
        threads: integer, threads per operation; `None`: one per core.

    Attributes:
        metadata: dictionary, see `runtime.metadata`.
        inputs: list of names.
        outputs: list of names.
        batch: integer, the only batch size; `None`: any.

    Raises:
        ImportError: if ONNX Runtime is not installed.
        ValueError: if the file is damaged or not an export, or the provider is not available.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> graph = runtime.load("parser.onnx")  # doctest: +SKIP
    >>> graph.inputs, graph.outputs  # doctest: +SKIP
    (['ids', 'lengths'], ['forget_distances', 'input_distances'])
    >>> graph.run(ids=[[0, 5, 7]], lengths=[3])["forget_distances"].shape  # doctest: +SKIP
    (1, 3, 3)
    """

    def __init__(self, path: Path, provider: str = "cpu", threads: int | None = None) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise not_installed(path, "onnxruntime", error=error) from error
        wanted = _provider(path, provider, onnxruntime.get_available_providers())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 4  # errors are raised as well
        try:
            session = onnxruntime.InferenceSession(
                path,
                options,
                providers=wanted,
                enable_fallback=int(provider != "cpu"),  # otherwise it prints, then fails again
            )
            text = session.get_modelmeta().custom_metadata_map.get(metadata.KEY)
            inputs = {value.name: _tensor(value) for value in session.get_inputs()}
        except Exception as error:  # ONNX Runtime has many classes of errors
            raise ValueError(
                f"{path}: not a complete ONNX file ({reason(error)}). {metadata.REMEDY}"
            ) from error
        if wanted[0] not in session.get_providers():
            raise ValueError(
                f"{path}: ONNX Runtime has {wanted[0]}, but cannot start it: the driver or the "
                "libraries of CUDA are missing. Install them, or take the provider 'cpu'."
            )
        about = metadata.loads(text, path)
        super().__init__(path, about, inputs, [value.name for value in session.get_outputs()])
        self._session = session

    def _run(self, feeds):
        return dict(zip(self.outputs, self._session.run(self.outputs, feeds), strict=True))


def _provider(path, provider, available):
    if provider not in PROVIDERS:
        raise ValueError(f"provider is 'cpu' or 'cuda', not {provider!r}.")
    if PROVIDERS[provider] not in available:
        raise ValueError(
            f"{path}: ONNX Runtime has no {PROVIDERS[provider]}, only {', '.join(available)}. For "
            "a GPU: pip uninstall onnxruntime, then pip install onnxruntime-gpu. Or take the "
            "provider 'cpu'."
        )
    return list(dict.fromkeys([PROVIDERS[provider], PROVIDERS["cpu"]]))


def _tensor(value):
    names = {"float": "float32", "double": "float64"}
    name = value.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(size if isinstance(size, int) else None for size in value.shape)
    return Tensor(shape, np.dtype(names.get(name, name)))
