"""Graphs in TensorFlow Lite files, run by LiteRT."""

import threading
from pathlib import Path

import numpy as np

from keras_onlstm.runtime import metadata
from keras_onlstm.runtime.graph import Graph, Tensor
from keras_onlstm.utils.libraries import not_installed
from keras_onlstm.utils.reading import reason

__all__ = ["TfliteGraph"]

SIGNATURE = "serving_default"


class TfliteGraph(Graph):
    """The graph of a `.tflite` file. Thread-safe: one thread runs it at a time.

    Args:
        path: `Path` of the file.
        provider: `"cpu"`.
        threads: integer, threads per operation; `None`: LiteRT decides.

    Attributes:
        metadata: dictionary, see `runtime.metadata`.
        inputs: list of names.
        outputs: list of names.
        batch: integer, the only batch size; `None`: any.

    Raises:
        ImportError: if LiteRT is not installed.
        ValueError: if the file is damaged or not an export, or for another provider.

    Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> graph = runtime.load("parser.tflite")  # doctest: +SKIP
    >>> graph.batch  # doctest: +SKIP
    1
    """

    def __init__(self, path: Path, provider: str = "cpu", threads: int | None = None) -> None:
        if provider != "cpu":
            raise ValueError(
                f"{path}: LiteRT runs it on the CPU alone, not on {provider!r}. An ONNX file runs "
                "on a GPU."
            )
        flatbuffer, about = metadata.unpack(path.read_bytes(), path)
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise not_installed(path, "ai-edge-litert", error=error) from error
        try:
            interpreter = Interpreter(model_content=flatbuffer, num_threads=threads)
            # The runner resizes the inputs to the arrays.
            self._runner = interpreter.get_signature_runner(SIGNATURE)
        except Exception as error:
            raise ValueError(
                f"{path}: LiteRT cannot run it ({reason(error)}). {metadata.REMEDY}"
            ) from error
        inputs = {
            name: Tensor(_shape(details["shape_signature"]), np.dtype(details["dtype"]))
            for name, details in self._runner.get_input_details().items()
        }
        super().__init__(path, about, inputs, self._runner.get_output_details())
        self._turn = threading.Lock()  # resizing and running is not atomic

    def _run(self, feeds):
        with self._turn:
            return self._runner(**feeds)


def _shape(sizes):
    return tuple(int(size) if size >= 0 else None for size in sizes)
