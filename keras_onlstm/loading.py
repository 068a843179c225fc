"""Loads models from files of every supported format.

Keras is imported only if a file needs it: exported files do not, and compact files need not.
"""

import zipfile
from pathlib import Path
from typing import Any

from keras_onlstm import runtime
from keras_onlstm.compact import CompactModel, read_compact
from keras_onlstm.text.vocabulary import check_vocabulary
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import check_unpacked, describe
from keras_onlstm.utils.libraries import keras_not_installed

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
    """Loads a model, and the metadata of its origin or `None`.

    `path` is a `.keras` file, a compact `.npz` file, an exported `.onnx` or `.tflite` file, or a
    run, whose best model is loaded; by default, the package's `Ensemble`. `provider` and `threads`
    are for exported files, see `runtime.load`. Without `keras`, an `.npz` file of ON-LSTM models
    loads as a `compact.CompactModel`, which computes distances with NumPy only.

    >>> from keras_onlstm.loading import load_model
    >>> model, metadata = load_model()
    >>> model.layers_per_model
    (3, 3, 3, 3, 3)
    """
    path = SHIPPED if path is None else Path(path)
    is_exported = path.suffix in runtime.FORMATS and not path.is_dir()
    if not is_exported and (provider != "cpu" or threads is not None):
        raise ValueError(
            f"{path.name}: provider and threads need an exported model, a file that ends in "
            f"{' or '.join(runtime.FORMATS)}."
        )
    if path.is_dir():
        if not (path / _BEST).is_file():
            raise FileNotFoundError(
                f"{path}: the directory has no {_BEST}. Pass a run that has finished an epoch, or "
                "resume this one with --resume."
            )
        path = path / _BEST
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no such model. Pass a .keras, .npz, .onnx or .tflite file, or the directory "
            "of a run."
        )
    if is_exported:
        graph = runtime.load(path, provider, threads)
        return runtime.make_model(graph), graph.metadata.get("about")
    contents = read_compact(path) if path.suffix == ".npz" else None
    if contents and not keras and all(c["recurrent"] == "onlstm" for c in contents.configs):
        return CompactModel(contents), contents.metadata
    try:
        import keras as _  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise
        raise keras_not_installed(path, error) from error
    if contents:
        from keras_onlstm.models.ensemble import build_models

        return build_models(contents, path)
    if path.suffix != ".keras":
        raise ValueError(f"{path}: must end in .keras, .npz, .onnx or .tflite.")
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


def select_model(path: str | Path, model: Any, metadata: Any, number: int) -> tuple[Any, Any]:
    """Model `number`, from 1, of the results of `load_model(path)`, and its metadata."""
    models = getattr(model, "models", [model])
    count = len(models)
    if not 1 <= number <= count:
        numbers = "1 model" if count == 1 else f"models 1 to {count}"
        raise ValueError(f"--model-index {number}: {path} has {numbers}.")
    return models[number - 1], metadata[number - 1] if isinstance(metadata, list) else metadata


def load_trained(run: str | Path, graph: str) -> Any:
    """Loads the best model of a run, which must be exportable as `graph`.

    A language model must have a vocabulary.
    """
    path = Path(run) / _BEST
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no trained model. Train with --output {run} first.")
    model = load_model(path)[0]
    if graph not in getattr(model, "tasks", getattr(model, "graphs", ())):
        raise ValueError(
            f"{path}: must be a {_CLASSES[graph]}, not a {type(model).__name__}. Pass another run."
        )
    if graph == "language_model":
        check_vocabulary(model.vocabulary, run)
    return model
