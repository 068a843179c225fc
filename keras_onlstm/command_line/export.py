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

HELP = "export a trained model to ONNX, SavedModel or LiteRT"
EXAMPLES = (
    "keras-onlstm export onnx --model runs/lm --output exported",
    "keras-onlstm export tflite --model runs/lm --graph step --quantize dynamic",
    "keras-onlstm export saved-model",
)
FORMATS = {"onnx": "ONNX", "saved-model": "SavedModel", "tflite": "LiteRT"}
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024


# fmt: off
def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name, title in FORMATS.items():
        text = f"Export to {title}. Options: keras-onlstm export {name} --help"
        add_format(formats.add_parser(name, help=text), name)


def add_format(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds the options of one of `FORMATS`."""
    parser.set_defaults(format=name, quantize=None, parser=parser)
    add = parser.add_argument
    add("--model", metavar="PATH",
        help="Trained model: a .keras or .npz file, or the folder of a run (default: the package's "
        "parser).")
    add("--model-index", type=at_least(1), metavar="N",
        help="Export model N of a file that holds several (default: all, in one file).")
    add("--preset", choices=("debug",), help="Export tiny untrained models, instead of --model.")
    add("--graph", choices=GRAPHS, action="append",
        help="What the exported file computes. May be repeated (default: all graphs of the model).")
    output = f"runs/{name.replace('-', '_')}"
    add("--output", metavar="DIR", default=output, help=f"Folder to write to (default: {output}).")
    add("--no-check", action="store_true",
        help="Do not run the exported files and compare them with Keras.")
    if name == "onnx":
        add("--quantize", choices=ONNX_QUANTIZATIONS,
            help="Smaller weights: dynamic has 8-bit weights and inputs, float16 and weights store "
            "16-bit and 8-bit weights and compute in float32 (default: float32).")
        add("--opset", type=int, default=18, metavar="N",
            help="Version of the ONNX operators (default: 18).")
        add("--provider", choices=("cpu", "cuda"), default="cpu",
            help="Processor for the check (default: cpu).")
    if name == "tflite":
        add("--quantize", choices=QUANTIZATIONS,
            help="Smaller weights: dynamic has 8-bit weights and inputs, float16 stores 16-bit "
            "weights and computes in float32 (default: float32).")
        add("--batch", type=at_least(1), default=1, metavar="N",
            help="Batch size of the exported file (default: 1).")


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Exports the chosen graphs, and prints a description of each file."""
    from keras_onlstm.exporting import graph_names
    from keras_onlstm.exporting.checks import describe

    directory = Path(options.output)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise OSError(
            f"{directory}: cannot be written ({error.strerror}). Choose another --output."
        ) from error
    for model, keywords in _models(options):
        available = graph_names(model)
        chosen = options.graph or available
        if not options.preset and not set(chosen) <= set(available):
            missing = ", ".join(sorted(set(chosen) - set(available)))
            hint = " --model-index N exports one of its models." if hasattr(model, "models") else ""
            kind = type(model).__name__
            raise ValueError(f"--graph {missing}: this {kind} has {', '.join(available)}.{hint}")
        graphs = [name for name in available if name in chosen]
        if not graphs:
            continue
        print(f"{model.name}: {', '.join(graphs)} ...", flush=True)
        start = time.perf_counter()
        for exported in _export(options, model, directory, graphs, keywords):
            seconds, start = time.perf_counter() - start, time.perf_counter()
            print(describe(exported), flush=True)
            print(f"  took        {seconds:.1f} s", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES
    print(f"Peak memory of this process: {memory / 1e6:.0f} MB")


def _export(options, model, directory, graphs, keywords):
    from keras_onlstm.exporting import to_onnx, to_saved_model, to_tflite

    keywords = {**keywords, "check": not options.no_check}
    if options.format == "saved-model":
        yield to_saved_model(model, directory / model.name, graphs, **keywords)
        return
    keywords["quantize"] = options.quantize
    for graph in graphs:
        path = directory / f"{graph}.{options.format}"
        if options.format == "onnx":
            target = {"opset": options.opset, "provider": options.provider}
            yield to_onnx(model, path, graph, **target, **keywords)
        else:
            yield to_tflite(model, path, graph, batch=options.batch, **keywords)


def _models(options):
    """Lists pairs of a model and keyword arguments for its export."""
    from keras_onlstm.datasets import propositional_logic as logic
    from keras_onlstm.exporting import graph_names
    from keras_onlstm.loading import SHIPPED, load_model, select_model
    from keras_onlstm.runtime import FORMATS as EXPORTED

    if options.preset and (options.model or options.model_index is not None):
        raise ValueError("--preset cannot be combined with --model or --model-index.")
    if options.preset:
        return [(model, {}) for model in _tiny_models()]
    path = SHIPPED if options.model is None else Path(options.model)
    if path.suffix in EXPORTED:
        raise ValueError(f"{path}: is an exported file. Pass the model that it was exported from.")
    model, metadata = load_model(path)
    if path.is_dir() and (path / CONFIG).is_file():
        metadata = read_config(path, remedy="Restore it from a copy.")
    if options.model_index is not None:
        model, metadata = select_model(path, model, metadata, options.model_index)
    keywords = {"metadata": metadata}
    if "classifier" in graph_names(model):
        if model.vocabulary_size == len(logic.TOKENS) + 1:
            keywords["vocabulary"] = ["", *logic.TOKENS]  # id 0 is padding
        if model.get_config()["classes"] == len(logic.LABELS):
            keywords["labels"] = list(logic.LABELS)
    return [(model, keywords)]


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
    tree_lstm = TreeLSTM(20, 4, 8, left_dependents=True, vocabulary=words, seed=0)
    inputs = keras.Input((None, 6), name="x")
    hidden = ONLSTM(12, chunk_size=4, return_sequences=True)(inputs)
    layers = keras.Model(inputs, keras.layers.RNN(ONLSTMCell(12, chunk_size=4))(hidden))
    return [language_model, classifier, tree_lstm, layers]
