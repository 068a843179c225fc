"""What the export scripts share: the model, the arguments, the summary.

Keras takes seconds to import. So the functions that need it do that, and --help answers at once.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.exporting import GRAPHS, QUANTIZATIONS
from keras_onlstm.loading import SHIPPED, load_model, member
from keras_onlstm.training.runs import CONFIG, read_config
from keras_onlstm.utils.console import ArgumentParser, report

__all__ = ["export_each", "export_files", "new_parser", "report"]


def new_parser(description, output, quantizations=QUANTIZATIONS):
    """A parser with the arguments that all scripts have."""
    parser = ArgumentParser(prog=Path(sys.argv[0]).name, description=description)
    add = parser.add_argument
    add(
        "--model",
        metavar="PATH",
        help="a run of one of the examples, a .keras or an .npz file, of one model or of several; "
        "default: the package's",
    )
    add(
        "--member",
        type=int,
        metavar="N",
        help="of several models, the N-th alone, which has all graphs of a language model",
    )
    add(
        "--preset",
        choices=("smoke",),
        help="in the place of --model: tiny untrained models, to see that everything works",
    )
    add(
        "--graph",
        choices=GRAPHS,
        action="append",
        help="what to export; more than once for several; default: all that the model has",
    )
    add("--output", metavar="DIR", default=output, help=f"default: {output}")
    if quantizations:
        add("--quantize", choices=quantizations, help="default: float32")
    add("--no-check", action="store_true", help="do not compare what was written with Keras")
    return parser


def models_of(options):
    """Models and what is known of them: pairs."""
    from keras_onlstm.exporting import graph_names

    if options.preset and (options.model or options.member is not None):
        raise ValueError("--model and --member do not go with --preset.")
    if options.preset:
        return [(model, {}) for model in _smoke_models()]
    path = SHIPPED if options.model is None else Path(options.model)
    if path.suffix in (".onnx", ".tflite"):
        raise ValueError(f"{path}: is exported already. Name the model it was exported from.")
    model, about = load_model(path)
    if path.is_dir() and (path / CONFIG).is_file():
        about = read_config(path, remedy="Restore it from a copy.")
    if options.member is not None:
        model, about = member(path, model, about, options.member)
    known = {"about": about}
    if "classifier" in graph_names(model):
        config = model.get_config()
        if model.vocabulary_size == len(logic.TOKENS) + 1:
            known["vocabulary"] = ["", *logic.TOKENS]  # id 0 is padding
        if config["classes"] == len(logic.LABELS):
            known["labels"] = list(logic.LABELS)
    return [(model, known)]


def _smoke_models():
    from keras_onlstm.models import LanguageModel, PairClassifier, TreeLSTM

    words = ["<eos>", "<unk>", *(f"word{number}" for number in range(18))]
    language_model = LanguageModel(20, 8, 12, 2, 4, vocabulary=words, seed=0)
    language_model.build()
    classifier = PairClassifier(12, 7, embedding_dim=8, units=12, chunk_size=4, seed=0)
    ids = np.ones((1, 2), "int32")
    classifier((ids, ids))
    words = ["<unk>", "<root>", *words[2:]]
    trees = TreeLSTM(20, 4, 8, left_dependents=True, vocabulary=words, seed=0)
    return [language_model, classifier, trees, _smoke_layer()]


def _smoke_layer():
    import keras

    from keras_onlstm import ONLSTM, ONLSTMCell

    inputs = keras.Input((None, 6), name="x")
    hidden = ONLSTM(12, chunk_size=4, return_sequences=True)(inputs)
    return keras.Model(inputs, keras.layers.RNN(ONLSTMCell(12, chunk_size=4))(hidden))


def export_each(options, export):
    """Exports every graph that was asked for.

    Args:
        options: of the command line.
        export: function of a model, a directory, a list of graphs and keyword arguments about the
            model that yields what was exported.
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
    for model, known in models_of(options):
        has = graph_names(model)
        wanted = options.graph or has
        if not options.preset and not set(wanted) <= set(has):
            missing = ", ".join(sorted(set(wanted) - set(has)))
            raise ValueError(
                f"--graph {missing}: this {type(model).__name__} has {', '.join(has)}."
                + (" --member N exports one of its models." if hasattr(model, "models") else "")
            )
        wanted = [name for name in has if name in wanted]
        if not wanted:
            continue
        print(f"{model.name}: {', '.join(wanted)} ...", flush=True)
        start = time.perf_counter()
        for exported in export(model, directory, wanted, **known):
            seconds, start = time.perf_counter() - start, time.perf_counter()
            print(describe(exported), flush=True)
            print(f"  took        {seconds:.1f} s", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES
    print(f"Memory of this process at its most: {memory / 1e6:.0f} MB")


def export_files(options, to, suffix, **arguments):
    """Exports every graph that was asked for into a file of its own.

    Args:
        options: of the command line.
        to: `to_onnx` or `to_tflite`.
        suffix: of the files.
        **arguments: for `to`, those that only one of the two has.
    """

    def export(model, directory, graphs, **known):
        for graph in graphs:
            yield to(
                model,
                directory / f"{graph}{suffix}",
                graph,
                quantize=options.quantize,
                check=not options.no_check,
                **arguments,
                **known,
            )

    export_each(options, export)


_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
