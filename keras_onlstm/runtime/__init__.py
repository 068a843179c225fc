"""Exported graphs without Keras and TensorFlow, run by ONNX Runtime or LiteRT and NumPy."""

from pathlib import Path

from keras_onlstm.runtime.exported_models import ExportedModel, ExportedTreeModel
from keras_onlstm.runtime.graphs import OnnxGraph, TfliteGraph
from keras_onlstm.runtime.metadata import TREE_READER
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.validation import check_integer, module_getattr

__all__ = ["ExportedModel", "ExportedTreeModel", "OnnxGraph", "TfliteGraph", "load", "make_model"]

MAX_THREADS = 256  # with 100,000 the runtimes hang
FORMATS: dict[str, type[OnnxGraph | TfliteGraph]] = {".onnx": OnnxGraph, ".tflite": TfliteGraph}
__getattr__ = module_getattr(__name__, {"model_of": "make_model"})


def load(
    path: StrPath, provider: str = "cpu", threads: int | None = None
) -> OnnxGraph | TfliteGraph:
    """Opens an exported file.

    Args:
        path: an `.onnx` or a `.tflite` file of `keras_onlstm.exporting`.
        provider: `"cpu"`, or `"cuda"` for ONNX.
        threads: threads per operation, at most 256; `None`: the runtime decides.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is damaged or not from this package, or the provider is not available.
        ImportError: if the runtime is not installed.

    Example:

    >>> from keras_onlstm import runtime
    >>> runtime.load("model.bin")
    Traceback (most recent call last):
    ...
    ValueError: model.bin: the name of an exported file must end in .onnx or .tflite.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: the name of an exported file must end in .onnx or .tflite.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    if threads is not None:
        check_integer("threads", threads, 1, MAX_THREADS)
    return FORMATS[path.suffix](path, provider, threads)


def make_model(graph: OnnxGraph | TfliteGraph) -> ExportedModel | ExportedTreeModel:
    """Makes a model from a graph that reads sentences or, for a TreeLSTM, dependency trees.

    Raises `ValueError` if it reads neither. Example, which needs a file:

    >>> from keras_onlstm import runtime
    >>> runtime.make_model(runtime.load("parser.onnx")).num_layers  # doctest: +SKIP
    3
    """
    is_tree_reader = graph.metadata["graph"] == TREE_READER
    return ExportedTreeModel(graph) if is_tree_reader else ExportedModel(graph)
