"""Language modelling with ON-LSTM (Shen et al. 2019, Sec. 5.1), by the recipe of AWD-LSTM, or PRPN.

Trains a word model on a corpus, a directory of train.txt, valid.txt and test.txt or the Penn
Treebank's ptb.train.txt and so on, and measures its perplexity.

    python examples/language_modeling.py --data ptb                     # two hours on two cores
    python examples/language_modeling.py --data ptb --preset paper      # the published recipe
    python examples/language_modeling.py --data ptb --model prpn        # Shen et al. 2018
    python examples/language_modeling.py --output runs/lm --resume      # go on after a stop
    srun -N 4 python examples/language_modeling.py --data ptb --hosts 4 --devices 8   # on JAX
    python examples/language_modeling.py --evaluate runs/lm             # test a trained run

`keras-onlstm generate`, `score`, `parse` and `compact` use the model: `--model runs/lm`.
"""

import itertools
import math
import tempfile
from pathlib import Path

from _common import info, new_plot, read_epochs, save_plot, save_plot_of_epochs

from keras_onlstm import text
from keras_onlstm.datasets import propositional_logic, treebank
from keras_onlstm.evaluation.boundaries import peaks
from keras_onlstm.loading import load_trained
from keras_onlstm.text.vocabulary import Encoder
from keras_onlstm.training.corpora import IDS, VOCABULARY, read_corpus, read_vocabulary
from keras_onlstm.training.hosts import ALONE, joined
from keras_onlstm.training.language_model_settings import (
    NAMES,
    PRECISIONS,
    PRPN_SETTINGS,
    PRPN_VALUES,
    SETTINGS,
    VALUES,
    check_devices,
)
from keras_onlstm.training.runs import RESULTS, Experiment, has_begun
from keras_onlstm.utils.console import report, table
from keras_onlstm.utils.files import write_json
from keras_onlstm.utils.reading import SEEDS, Choice, Integer

# Keras takes seconds to import. So the functions that need it do that, and --help answers at once.

# `SETTINGS` says what each value means, and so does --help.
PRESETS = {
    "smoke": {  # shows in seconds that everything works
        "embedding_dim": 20, "units": 20, "num_layers": 2, "chunk_size": 5, "word_dropout": 0.1,
        "input_dropout": 0.1, "hidden_dropout": 0.1, "output_dropout": 0.1,
        "recurrent_weight_dropout": 0.1, "activation_regularization": 2.0,
        "temporal_regularization": 1.0, "epochs": 2, "batch_size": 20, "bptt": 20,
        "variable_bptt": True, "optimizer": "asgd", "learning_rate": 10.0, "schedule": "constant",
        "clipnorm": 0.25, "weight_decay": 1.2e-6,
    },
    "parser": {  # minutes on one core; several of them parse together
        "embedding_dim": 150, "units": 300, "chunk_size": 10, "word_dropout": 0.0,
        "input_dropout": 0.1, "hidden_dropout": 0.1, "output_dropout": 0.2,
        "recurrent_weight_dropout": 0.1, "epochs": 1, "batch_size": 32, "bptt": 35,
        "learning_rate": 5e-3, "warmup": 0.25, "clipnorm": 0.25,
    },
    "small": {  # two hours on two cores, with AVX-512 on one
        "embedding_dim": 300, "units": 500, "chunk_size": 10, "word_dropout": 0.05,
        "input_dropout": 0.25, "hidden_dropout": 0.2, "output_dropout": 0.35,
        "recurrent_weight_dropout": 0.2, "activation_regularization": 1.0,
        "temporal_regularization": 0.5, "epochs": 20, "batch_size": 32, "bptt": 35,
        "learning_rate": 4e-3, "clipnorm": 0.25,
    },
    "reproduction": {  # the sizes of a published reproduction; two hours on two cores
        "embedding_dim": 400, "units": 700, "chunk_size": 10, "word_dropout": 0.05,
        "input_dropout": 0.25, "hidden_dropout": 0.2, "output_dropout": 0.35,
        "recurrent_weight_dropout": 0.2, "activation_regularization": 1.0,
        "temporal_regularization": 0.5, "epochs": 10, "batch_size": 32, "bptt": 35,
        "learning_rate": 3e-3, "clipnorm": 0.25,
    },
    "large": {  # the published sizes; two hours on two cores with AMX, in bfloat16
        "embedding_dim": 400, "units": 1150, "chunk_size": 10, "word_dropout": 0.05,
        "input_dropout": 0.35, "hidden_dropout": 0.25, "output_dropout": 0.4,
        "recurrent_weight_dropout": 0.35, "activation_regularization": 1.0,
        "temporal_regularization": 0.5, "epochs": 20, "batch_size": 64, "bptt": 35,
        "learning_rate": 3e-3, "clipnorm": 0.25,
    },
    "paper": {  # the published recipe: days on a GPU
        "embedding_dim": 400, "units": 1150, "chunk_size": 10, "word_dropout": 0.1,
        "input_dropout": 0.5, "hidden_dropout": 0.3, "output_dropout": 0.45,
        "recurrent_weight_dropout": 0.45, "activation_regularization": 2.0,
        "temporal_regularization": 1.0, "epochs": 1000, "batch_size": 20, "bptt": 70,
        "variable_bptt": True, "optimizer": "asgd", "learning_rate": 30.0, "schedule": "constant",
        "clipnorm": 0.25, "weight_decay": 1.2e-6, "start": "published",
    },
}  # fmt: skip
PRESETS = {name: {**VALUES, **values} for name, values in PRESETS.items()}
PRPN_PRESETS = {
    "smoke": {  # shows in seconds that everything works
        "embedding_dim": 20, "units": 20, "slots": 5, "lookback": 3, "output_dropout": 0.1,
        "inner_dropout": 0.1, "recurrent_dropout": 0.1, "epochs": 2, "batch_size": 20,
        "bptt": 20, "learning_rate": 1e-2, "clipnorm": 1.0,
    },
    "small": {  # two hours on a core
        "embedding_dim": 300, "units": 500, "output_dropout": 0.25, "inner_dropout": 0.15,
        "recurrent_dropout": 0.1, "epochs": 5, "batch_size": 32, "bptt": 35,
        "learning_rate": 4e-3, "clipnorm": 1.0,
    },
    "parsing": {  # for --sentences, at the sizes of the published parser: an hour on a core
        "embedding_dim": 200, "units": 400, "output_dropout": 0.2, "inner_dropout": 0.2,
        "recurrent_dropout": 0.0, "epochs": 5, "batch_size": 64, "bptt": 35,
        "learning_rate": 3e-3, "clipnorm": 1.0,
    },
    "characters": {  # for --characters, the published model: days on a GPU
        "embedding_dim": 128, "units": 1024, "slots": 20, "lookback": 10, "residual_blocks": 1,
        "tie_weights": False, "output_dropout": 0.0, "inner_dropout": 0.25,
        "recurrent_dropout": 0.1, "epochs": 100, "batch_size": 64, "bptt": 100,
        "learning_rate": 3e-3, "clipnorm": 1.0,
    },
    "paper": {  # the published recipe
        "embedding_dim": 800, "units": 1200, "output_dropout": 0.7, "inner_dropout": 0.5,
        "recurrent_dropout": 0.5, "epochs": 100, "batch_size": 64, "bptt": 35,
        "optimizer": "adam_l2", "beta_1": 0.0, "epsilon": 1e-9, "learning_rate": 3e-3,
        "schedule": "plateau", "plateau_factor": 0.5, "plateau_patience": 2, "clipnorm": 1.0,
        "weight_decay": 1e-6, "start": "published",
    },
}  # fmt: skip
PRPN_PRESETS = {name: {**PRPN_VALUES, **values} for name, values in PRPN_PRESETS.items()}

# Perplexity of validation and test, and where it is reported.
PUBLISHED = {
    "ON-LSTM, 25 million, 1000 epochs (Shen et al. 2019)": (58.29, 56.17),
    "AWD-LSTM, 24 million (Merity et al. 2018)": (60.0, 57.3),
    "PRPN (Shen et al. 2018)": (None, 61.98),
}
EXPERIMENT = Experiment(
    "examples/language_modeling.py",
    kinds={  # of the arguments that a run keeps
        "preset": Choice(tuple(PRESETS)),
        "recurrent": Choice(tuple(NAMES)),
        "data": (str, None),
        "seed": SEEDS,
        "max_words": (Integer(3), None),
        "characters": bool,
        "sentences": bool,
        "test_sentences": bool,
        "precision": Choice(PRECISIONS),
        "start_from": (str, None),
        "devices": Integer(1),
        "hosts": Integer(1),
    },
    defaults={
        "preset": "small",
        "recurrent": "onlstm",
        "data": None,
        "seed": 0,
        "max_words": None,
        "characters": False,
        "sentences": False,
        "test_sentences": False,
        "precision": "float32",
        "start_from": None,
        "devices": 1,
        "hosts": 1,
    },
    settings=SETTINGS,
    presets=PRESETS,
    later=(
        *("max_words", "characters", "sentences", "test_sentences", "precision"),
        *("start_from", "devices", "hosts"),
    ),
    free=("devices", "hosts"),
)
_SHARED = {name: EXPERIMENT.kinds[name] for name in EXPERIMENT.kinds if name != "recurrent"}
PRPN = EXPERIMENT._replace(
    kinds={**_SHARED, "model": Choice(("prpn",)), "preset": Choice(tuple(PRPN_PRESETS))},
    defaults={**{name: EXPERIMENT.defaults[name] for name in _SHARED}, "model": "prpn"},
    settings=PRPN_SETTINGS,
    presets=PRPN_PRESETS,
)
EXPERIMENT = EXPERIMENT._replace(variants={"prpn": PRPN})


def parse_arguments():
    description = "Language modelling with ON-LSTM, or with PRPN."
    parser = EXPERIMENT.parser(description, "runs/language_modeling")
    add = parser.add_argument
    models = ("language_model", *EXPERIMENT.variants)
    add("--model", choices=models, help="of recurrent layers, or PRPN (default: language_model)")
    add("--recurrent", choices=NAMES, help="the recurrent layers (default: onlstm)")
    add("--data", metavar="DIR", help="directory of the corpus; smoke has one of its own")
    add("--max-words", type=int, metavar="N", help="keep the N most frequent words (default: all)")
    add("--characters", action="store_true", default=None, help="characters instead of words")
    add("--sentences", action="store_true", default=None, help="read each sentence on its own")
    add(
        "--test-sentences",
        action="store_true",
        default=None,
        help="with --sentences: train on those of NLTK's treebank sample too, on which trees are "
        "scored (default: leave them out)",
    )
    add(
        "--precision",
        choices=PRECISIONS,
        help="in which the training computes; what is kept has 32 bits (default: float32)",
    )
    add(
        "--start-from",
        metavar="RUN",
        help="start with the vocabulary of this run and the weights of its best model",
    )
    add("--devices", type=int, metavar="N", help="share each batch among N devices (default: 1)")
    add("--hosts", type=int, metavar="M", help="and among M machines with N each (default: 1)")
    add("--host-id", type=int, metavar="I", help="index of this host (default: by srun or mpirun)")
    add("--coordinator", metavar="ADDRESS:PORT", help="of host 0 (default: by srun or mpirun)")
    add("--patience", type=float, default=300.0, metavar="S", help="seconds for hosts to come")
    add("--steps", type=int, metavar="N", help="stop after N batches; --resume goes on")
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: test these trained runs")
    options = parser.parse_args()
    parser.check_least(options, max_words=3, devices=1, hosts=1, steps=1, patience=0)
    if options.test_sentences and not options.sentences and not options.resume:
        parser.error("--test-sentences: goes with --sentences")
    if options.max_words and options.start_from:
        parser.error("--max-words: the vocabulary is that of the run of --start-from")
    return parser, options


def load_corpus(arguments, run, vocabulary=None, hosts=ALONE):
    """The corpus that a run was started with; of formulas if it was none."""
    level = "character" if arguments["characters"] else "word"
    directory = arguments["data"]
    with tempfile.TemporaryDirectory() as drawn:
        if directory is None:
            directory = drawn
            write_formulas(directory)
        else:
            info(f"Reading {directory}")
        return read_corpus(directory, run, vocabulary, arguments["max_words"], level, hosts)


def beginning(arguments, output, goes_on):
    """The model to start from and the words that the texts are read with, or `None` for either."""
    run = arguments["start_from"]
    if run is None:
        return None, None
    if goes_on:
        return None, read_vocabulary(output)
    model = load_trained(run, "language_model")
    if EXPERIMENT.stored(run).arguments["characters"] != arguments["characters"]:
        level = "words" if arguments["characters"] else "characters"
        raise ValueError(
            f"--start-from {run}: is of {level}. Use --characters for all runs or for none."
        )
    return model, model.vocabulary


def of_sentences(corpus, test_sentences):
    """A corpus to learn to parse from: with the sentences of NLTK's sample, or without them."""
    from keras_onlstm.training.sentences import split, with_sentences, without_sentences

    encode = Encoder(corpus.vocabulary)
    # Numbers, signs and words with hyphens are written in other ways there.
    alike = {
        place for place, word in enumerate(corpus.vocabulary) if not word.isalpha() or word == "N"
    }
    sample = [encode(sentence.tokens) for sentence in treebank.load()]
    choose = with_sentences if test_sentences else without_sentences
    chosen = choose(corpus.train, encode.eos, sample, alike)
    before, after = (len(split(ids, encode.eos)) for ids in (corpus.train, chosen))
    what = "among them those" if test_sentences else f"{before - after:,} fewer: without those"
    info(f"{after:,} sentences, {what} of NLTK's sample, on which trees are scored")
    return corpus._replace(train=chosen)


def write_formulas(directory):
    """Writes a corpus of formulas that are drawn."""
    pairs, _ = propositional_logic.generate(3000, seed=0).split()
    pairs = pairs[:1000]
    shares = {"valid": pairs[::10], "test": pairs[1::10], "train": pairs}
    for part, share in shares.items():
        text = "".join(f"{pair.left}\n" for pair in share)
        (Path(directory) / f"{part}.txt").write_text(text)


def train(options, configuration):
    from keras_onlstm.training.devices import check_hosts
    from keras_onlstm.training.language_models import train_language_model

    arguments = configuration.arguments
    if arguments["data"] is None and arguments["preset"] != "smoke":
        raise ValueError(
            "--data DIR is needed: a directory of train.txt, valid.txt and test.txt, or of the "
            "Penn Treebank's ptb.train.txt, ptb.valid.txt and ptb.test.txt (Mikolov's files)."
        )
    check_devices(configuration.values, arguments["devices"], arguments["hosts"])
    check_hosts(arguments["hosts"])
    here = arguments["hosts"], options.host_id, options.coordinator, arguments["devices"]
    same = {
        **{f"--{name.replace('_', '-')}": value for name, value in arguments.items()},
        **{f"--set {name}": value for name, value in configuration.values.items()},
        **{"--resume": options.resume, "--steps": options.steps},
    }
    with joined(*here, same, options.patience) as hosts:
        begun = [IDS, VOCABULARY]
        goes_on = hosts.of_first(lambda: options.resume and has_begun(options.output, begun))
        initial, vocabulary = beginning(arguments, options.output, goes_on)
        corpus = load_corpus(arguments, options.output, vocabulary, hosts)
        if arguments["sentences"] and arguments["data"] is not None:
            corpus = of_sentences(corpus, arguments["test_sentences"])
        shape = configuration, corpus, options.resume, options.steps
        return train_language_model(options.output, *shape, hosts, initial) and hosts.is_first


def evaluate(runs, data=None):
    from keras_onlstm.training.language_models import evaluation

    results = {}
    loaded = {
        run: (EXPERIMENT.stored(run).arguments, load_trained(run, "language_model")) for run in runs
    }
    for run, (arguments, model) in loaded.items():
        if data is not None:
            arguments["data"] = data
        corpus = load_corpus(arguments, run, model.vocabulary)
        alone = arguments["sentences"]
        losses = {
            "validation": evaluation(model, "validation", corpus.valid, 10, alone)(),
            "test": evaluation(model, "test", corpus.test, 10 if alone else 1, alone)(),
        }
        results[run] = {
            "model": model.title,
            "parameters": model.count_params(),
            **{f"{part}_loss": loss for part, loss in losses.items()},
            **{f"{part}_perplexity": math.exp(loss) for part, loss in losses.items()},
        }
        write_json(Path(run) / RESULTS, {**results[run], "arguments": arguments})
    rows = [
        [
            f"{result['model']}, {result['parameters']:,} parameters, {run}",
            f"{result['validation_perplexity']:.2f}",
            f"{result['test_perplexity']:.2f}",
        ]
        for run, result in results.items()
    ]
    rows += [
        [f"published: {name}", *("" if number is None else f"{number:.2f}" for number in numbers)]
        for name, numbers in PUBLISHED.items()
    ]
    info("\nPerplexity; those published are of the Penn Treebank\n")
    info(table(["", "validation", "test"], rows))
    plot_results(results)
    for run, (arguments, model) in loaded.items():
        if arguments["characters"]:
            evaluate_characters(run, model, data or arguments["data"], results[run])


def evaluate_characters(run, model, directory, result):
    """Bits per character, and whether distances rise where words end."""
    bits = [result[f"{part}_loss"] / math.log(2) for part in ("validation", "test")]
    info(f"\n{run}: {bits[0]:.3f} and {bits[1]:.3f} bits per character; published: 1.202 (PRPN)")
    if not model.gates or directory is None:
        return
    lines = text.corpus.sentences(text.corpus.find(directory, "test"), "character")
    texts = list(itertools.islice((line for line in lines if len(line) > 2), 500))
    row = (model.default_layer or 1) - 1
    distances = [rows[row] for rows in model.distances(texts)]
    found = peaks(texts, distances)
    info(
        f"Distances above both neighbours: {found.blanks:.1%} of those before blanks, "
        f"{found.letters:.1%} of those before other characters"
    )
    plot_distances(run, texts[0][:80], distances[0][:80])


def plot_distances(run, characters, distances):
    """Bars between the characters of a text."""
    plot = new_plot()
    if plot is None:
        return
    figure, axes = plot
    figure.set_size_inches(12, 3)
    places = range(len(characters))
    axes.bar(places, distances, color=["#b23a48" if c == "_" else "#9db8cc" for c in characters])
    axes.set_xticks(places, characters)
    axes.set(ylabel="distance before the character")
    axes.margins(x=0.01)
    save_plot(figure, [run], "distances")


def plot_results(results):
    plot = new_plot()
    if plot is None:
        return
    figure, axes = plot
    for run, result in results.items():
        history = read_epochs(run, "val_perplexity", "loss", "penalty")
        numbers = [row["epoch"] for row in history]
        name = f"{result['model']}, {Path(run).name}"
        (line,) = axes.plot(
            numbers, [row["val_perplexity"] for row in history], "o-", label=f"{name}, validation"
        )
        axes.plot(
            numbers,
            [math.exp(min(row["loss"] - row["penalty"], 700.0)) for row in history],
            ":",
            color=line.get_color(),
            label=f"{name}, training (with dropout)",
        )
        axes.axhline(
            result["test_perplexity"],
            color=line.get_color(),
            lw=0.8,
            ls="--",
            label=f"{name}, test",
        )
    save_plot_of_epochs(figure, axes, results, "perplexity")


def main(options):
    if options.evaluate:
        return evaluate(options.evaluate, options.data)
    configuration = EXPERIMENT.configuration(options, prepared=[IDS])
    if train(options, configuration):
        evaluate([options.output])
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
