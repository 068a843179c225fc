"""`keras-onlstm export`: exports models to ONNX Runtime, TensorFlow Serving and LiteRT."""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from keras_onlstm.exporting import GRAPHS, ONNX_QUANTIZATIONS, QUANTIZATIONS
from keras_onlstm.runs.directory import CONFIG, read_config
from keras_onlstm.utils.console import at_least

__all__ = ["EXAMPLES", "HELP", "add_arguments", "add_format", "run"]

HELP = "write a trained model as ONNX, SavedModel or TensorFlow Lite, and check it there"
EXAMPLES = (
    "keras-onlstm export onnx --model runs/lm --output exported",
    "keras-onlstm export tflite --model runs/lm --graph step --quantize dynamic",
    "keras-onlstm export saved-model",
)
FORMATS = ("onnx", "saved-model", "tflite")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name in FORMATS:
        add_format(formats.add_parser(name, help=f"--help lists the options of {name}"), name)


def add_format(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds the options of one format.

    Args:
        parser: `ArgumentParser`.
        name: `"onnx"`, `"saved-model"` or `"tflite"`.
    """
    parser.set_defaults(format=name, quantize=None, parser=parser)
    add = parser.add_argument
    add(
        "--model",
        metavar="PATH",
        help="a run, or a .keras or .npz file of one or several models; default: the package's",
    )
    add("--model-index", type=at_least(1), metavar="N", help="model N of a file that holds several")
    add("--preset", choices=("debug",), help="instead of --model: tiny untrained models")
    add(
        "--graph",
        choices=GRAPHS,
        action="append",
        help="what to export; more than once for several; default: all that the model has",
    )
    output = f"runs/{name.replace('-', '_')}"
    add("--output", metavar="DIR", default=output, help=f"default: {output}")
    add("--no-check", action="store_true", help="do not compare the files with Keras")
    if name == "onnx":
        add("--quantize", choices=ONNX_QUANTIZATIONS, help="default: float32")
        add("--opset", type=int, default=18, metavar="N", help="of ONNX's operators; default: 18")
        add(
            "--provider", choices=("cpu", "cuda"), default="cpu", help="to check with; default: cpu"
        )
    if name == "tflite":
        add("--quantize", choices=QUANTIZATIONS, help="default: float32")
        add("--batch", type=at_least(1), default=1, metavar="N", help="batch size; default: 1")


def run(options: argparse.Namespace) -> None:
    """Exports the chosen graphs, and prints a description of each file.

    Args:
        options: parsed arguments.

    Raises:
        FileNotFoundError: if the model does not exist.
        ValueError: if the model lacks a graph, or an exported one differs from Keras.
        OSError: if a file cannot be written.
    """
    from keras_onlstm.exporting import graph_names
    from keras_onlstm.exporting.checks import describe

    directory = Path(options.output)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise OSError(
            f"{directory}: cannot be written ({error.strerror}). Give another --output."
        ) from error
    for model, known in _models(options):
        available = graph_names(model)
        wanted = options.graph or available
        if not options.preset and not set(wanted) <= set(available):
            missing = ", ".join(sorted(set(wanted) - set(available)))
            raise ValueError(
                f"--graph {missing}: this {type(model).__name__} has {', '.join(available)}."
                + (" --model-index N exports one of them." if hasattr(model, "models") else "")
            )
        wanted = [name for name in available if name in wanted]
        if not wanted:
            continue
        print(f"{model.name}: {', '.join(wanted)} ...", flush=True)
        start = time.perf_counter()
        for exported in _export(options, model, directory, wanted, known):
            seconds, start = time.perf_counter() - start, time.perf_counter()
            print(describe(exported), flush=True)
            print(f"  took        {seconds:.1f} s", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES
    print(f"Memory of this process at its most: {memory / 1e6:.0f} MB")


def _export(options, model, directory, graphs, known):
    from keras_onlstm.exporting import to_onnx, to_saved_model, to_tflite

    known = {**known, "check": not options.no_check}
    if options.format == "saved-model":
        yield to_saved_model(model, directory / model.name, graphs, **known)
        return
    for graph in graphs:
        path, quantize = directory / f"{graph}.{options.format}", options.quantize
        if options.format == "onnx":
            target = {"opset": options.opset, "provider": options.provider}
            yield to_onnx(model, path, graph, quantize=quantize, **target, **known)
        else:
            yield to_tflite(model, path, graph, quantize=quantize, batch=options.batch, **known)


def _models(options):
    """Lists pairs of a model and its metadata."""
    from keras_onlstm.datasets import propositional_logic as logic
    from keras_onlstm.exporting import graph_names
    from keras_onlstm.loading import SHIPPED, load_model, member

    if options.preset and (options.model or options.model_index is not None):
        raise ValueError("--model and --model-index do not go with --preset.")
    if options.preset:
        return [(model, {}) for model in _tiny_models()]
    path = SHIPPED if options.model is None else Path(options.model)
    if path.suffix in (".onnx", ".tflite"):
        raise ValueError(f"{path}: is exported already. Name the model it was exported from.")
    model, about = load_model(path)
    if path.is_dir() and (path / CONFIG).is_file():
        about = read_config(path, remedy="Restore it from a copy.")
    if options.model_index is not None:
        model, about = member(path, model, about, options.model_index)
    known = {"about": about}
    if "classifier" in graph_names(model):
        config = model.get_config()
        if model.vocabulary_size == len(logic.TOKENS) + 1:
            known["vocabulary"] = ["", *logic.TOKENS]  # id 0 is padding
        if config["classes"] == len(logic.LABELS):
            known["labels"] = list(logic.LABELS)
    return [(model, known)]


def _tiny_models():
    import keras
    import numpy as np

    from keras_onlstm.models import LanguageModel, PairClassifier, TreeLSTM
    from keras_onlstm.onlstm.cell import ONLSTMCell
    from keras_onlstm.onlstm.layer import ONLSTM

    words = ["<eos>", "<unk>", *(f"word{number}" for number in range(18))]
    language_model = LanguageModel(20, 8, 12, 2, 4, vocabulary=words, seed=0)
    language_model.build()
    classifier = PairClassifier(12, 7, embedding_dim=8, units=12, chunk_size=4, seed=0)
    ids = np.ones((1, 2), "int32")
    classifier((ids, ids))
    words = ["<unk>", "<root>", *words[2:]]
    trees = TreeLSTM(20, 4, 8, left_dependents=True, vocabulary=words, seed=0)
    inputs = keras.Input((None, 6), name="x")
    hidden = ONLSTM(12, chunk_size=4, return_sequences=True)(inputs)
    layer = keras.Model(inputs, keras.layers.RNN(ONLSTMCell(12, chunk_size=4))(hidden))
    return [language_model, classifier, trees, layer]


_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
