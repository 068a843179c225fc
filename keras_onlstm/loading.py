"""Loads models from files of every supported format.

Keras is imported only if a file needs it: exported files do not, and compact files need not.
"""

import zipfile
from pathlib import Path
from typing import Any

from keras_onlstm import runtime
from keras_onlstm.compact.model import CompactModel
from keras_onlstm.compact.stored import open_stored
from keras_onlstm.text.vocabulary import check_vocabulary
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import check_unpacked, describe
from keras_onlstm.utils.libraries import keras_not_installed

__all__ = ["SHIPPED", "load_model", "load_trained", "member"]

SHIPPED = Path(__file__).parent / "trained" / "parser.npz"
_BEST = "best.keras"  # in the directory of a run
_CLASSES = {
    "language_model": "LanguageModel",
    "tree_language_model": "TreeLSTM",
    "classifier": "PairClassifier",
}


def load_model(
    path: StrPath | None = None,
    provider: str = "cpu",
    threads: int | None = None,
    keras: bool = True,
) -> tuple[Any, Any]:
    """Loads a model.

    Args:
        path: a `.keras` file, an `.npz` file of `save_eight_bit`, an exported `.onnx` or `.tflite`
            file, or the directory of a run, whose best model is loaded. Default: the package's
            language models, an `Ensemble`.
        provider: `"cpu"` or `"cuda"`, for exported files; see `runtime.load`.
        threads: number of threads, for exported files.
        keras: whether to load an `.npz` file as a Keras model. If not, ON-LSTM models load as a
            `compact.model.CompactModel`, which computes distances with NumPy only.

    Returns:
        The model (of an exported file, the result of `runtime.make_model`), and the metadata of its
        origin or `None`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is damaged, has weights that are not finite, or does not support the
            arguments.
        ImportError: if a library for it is missing.

    Example:

    >>> from keras_onlstm.loading import load_model
    >>> model, metadata = load_model()
    >>> model.layers_per_model
    (3, 3, 3, 3, 3)
    """
    path = SHIPPED if path is None else Path(path)
    exported = path.suffix in runtime.FORMATS and not path.is_dir()
    if not exported and (provider != "cpu" or threads is not None):
        raise ValueError(
            f"{path}: provider and threads are for exported files, {' and '.join(runtime.FORMATS)}."
        )
    if path.is_dir():
        path = path / _BEST
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no such model. Name a .keras, .npz, .onnx or .tflite file, or a run."
        )
    if exported:
        graph = runtime.load(path, provider, threads)
        return runtime.make_model(graph), graph.metadata.get("about")
    stored = open_stored(path) if path.suffix == ".npz" else None
    if stored and not keras and all(one["recurrent"] == "onlstm" for one in stored.configs):
        return CompactModel(stored), stored.metadata
    try:
        import keras as _  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise
        raise keras_not_installed(path, error) from error
    if stored:
        from keras_onlstm.models.ensemble import of_stored

        return of_stored(stored, path)
    if path.suffix != ".keras":
        raise ValueError(f"{path}: ends neither in .keras nor in .npz, .onnx or .tflite.")
    return _load_keras(path), None


def _load_keras(path):
    """Loads a `.keras` file in Keras's safe mode and checks that its weights are finite."""
    import keras
    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(archive)
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
        for variable in model.trainable_variables:
            if not np.isfinite(keras.ops.convert_to_numpy(variable)).all():
                raise ValueError(f"{variable.path} is not finite: its training has diverged")
    except Exception as error:  # Keras's zip, JSON and HDF5 readers raise many types
        raise ValueError(
            f"{path}: not a complete model ({describe(error)}). Train again, or restore it from a "
            "copy."
        ) from error
    return model


def member(path: str | Path, model: Any, metadata: Any, number: int) -> tuple[Any, Any]:
    """Returns one of the models that a file holds.

    Args:
        path: the file, for the error message.
        model: result of `load_model`, which may hold several.
        metadata: the metadata from `load_model`.
        number: integer, the 1-based value of `--model-index`.

    Returns:
        The model and its metadata.

    Raises:
        ValueError: if the number is out of range.

    Example:

    >>> from keras_onlstm.loading import load_model, member
    >>> model, metadata = member("parser.npz", *load_model(), 2)
    >>> model.num_layers
    3
    """
    models = getattr(model, "models", [model])
    count = len(models)
    if not 1 <= number <= count:
        raise ValueError(f"--model-index {number}: {path} holds {count}, from 1 to {count}.")
    return models[number - 1], metadata[number - 1] if isinstance(metadata, list) else metadata


def load_trained(run: str | Path, graph: str) -> Any:
    """Loads the best model of a run and checks its kind.

    Args:
        run: directory of the run.
        graph: graph that the model must be exportable as, `"language_model"` or `"classifier"`.
            The vocabulary of a language model is checked.

    Returns:
        The model.

    Raises:
        FileNotFoundError: if the run has no trained model.
        ValueError: if the model is damaged or of another kind.

    Example:

    >>> from keras_onlstm.loading import load_trained
    >>> load_trained("runs/new", "language_model")
    Traceback (most recent call last):
    ...
    FileNotFoundError: runs/new/best.keras: no trained model. Train with --output runs/new first.
    """
    path = Path(run) / _BEST
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no trained model. Train with --output {run} first.")
    model = load_model(path)[0]
    if graph not in getattr(model, "tasks", getattr(model, "graphs", ())):
        raise ValueError(
            f"{path}: is a {type(model).__name__}, and this script needs a {_CLASSES[graph]}. Name "
            "another run."
        )
    if graph == "language_model":
        check_vocabulary(model.vocabulary, run)
    return model
