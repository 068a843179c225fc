"""Language modelling with ON-LSTM (Shen et al. 2019, Sec. 5.1), by the recipe of AWD-LSTM.

Trains a word model on a corpus, a directory of train.txt, valid.txt and test.txt or the Penn
Treebank's ptb.train.txt and so on, and measures its perplexity.

    python examples/language_modeling.py --data ptb                     # two hours on two cores
    python examples/language_modeling.py --data ptb --preset paper      # the published recipe
    python examples/language_modeling.py --output runs/lm --resume      # go on after a stop
    python examples/language_modeling.py --evaluate runs/lm             # test a trained run
    python examples/language_modeling.py --evaluate runs/lm --generate "the company"
    python examples/language_modeling.py --evaluate runs/lm --score sentences.txt
    python examples/language_modeling.py --evaluate runs/lm --compact parser.npz
    python examples/language_modeling.py --evaluate runs/a runs/b --compact together.npz
"""

from keras_onlstm.console import ArgumentParser, report  # isort: split

import json
import math
import tempfile
from argparse import RawDescriptionHelpFormatter
from pathlib import Path

import numpy as np
from _common import (
    SEEDS,
    check_new,
    check_unchanged,
    chosen_values,
    info,
    new_plot,
    save_plot,
    seed,
    stored_arguments,
    stored_values,
    table,
)
from _language_model import (
    IDS,
    NAMES,
    SETTINGS,
    VALUES,
    check_devices,
    evaluation,
    load_language_model,
    read_corpus,
    train_model,
)

from keras_onlstm.compact import load_compact, save_compact
from keras_onlstm.datasets import propositional_logic
from keras_onlstm.files import replacing, write_json
from keras_onlstm.locks import check_unlocked
from keras_onlstm.models import Ensemble
from keras_onlstm.reading import Choice, Integer, read_json, read_text
from keras_onlstm.training import described

# `_language_model.SETTINGS` says what each value means, and so does --help.
PRESETS = {
    "smoke": {  # shows in seconds that everything works
        "embedding_dim": 20, "units": 20, "chunk_size": 5, "word_dropout": 0.1,
        "input_dropout": 0.1, "hidden_dropout": 0.1, "output_dropout": 0.1,
        "recurrent_weight_dropout": 0.1, "activation": 2.0, "temporal": 1.0, "epochs": 2,
        "batch_size": 20, "window": 20, "jitter": True, "optimizer": "sgd", "learning_rate": 10.0,
        "clip": 0.25, "decay": 1.2e-6,
    },
    "parser": {  # minutes on one core; several of them parse together
        "embedding_dim": 150, "units": 300, "chunk_size": 10, "word_dropout": 0.0,
        "input_dropout": 0.1, "hidden_dropout": 0.1, "output_dropout": 0.2,
        "recurrent_weight_dropout": 0.1, "activation": 0.0, "temporal": 0.0, "epochs": 1,
        "batch_size": 32, "window": 35, "jitter": False, "optimizer": "adam",
        "learning_rate": 5e-3, "clip": 0.25, "decay": 0.0, "warmup": 0.25,
    },
    "small": {  # two hours on two cores, with AVX-512 on one
        "embedding_dim": 300, "units": 500, "chunk_size": 10, "word_dropout": 0.05,
        "input_dropout": 0.25, "hidden_dropout": 0.2, "output_dropout": 0.35,
        "recurrent_weight_dropout": 0.2, "activation": 1.0, "temporal": 0.5, "epochs": 20,
        "batch_size": 32, "window": 35, "jitter": False, "optimizer": "adam",
        "learning_rate": 4e-3, "clip": 0.25, "decay": 0.0, "warmup": 0.05,
    },
    "paper": {  # the published recipe: days on a GPU
        "embedding_dim": 400, "units": 1150, "chunk_size": 10, "word_dropout": 0.1,
        "input_dropout": 0.5, "hidden_dropout": 0.3, "output_dropout": 0.45,
        "recurrent_weight_dropout": 0.45, "activation": 2.0, "temporal": 1.0, "epochs": 1000,
        "batch_size": 20, "window": 70, "jitter": True, "optimizer": "sgd", "learning_rate": 30.0,
        "clip": 0.25, "decay": 1.2e-6, "start": "published",
    },
}  # fmt: skip
PRESETS = {name: {**VALUES, **values} for name, values in PRESETS.items()}

# Perplexity of validation and test, and where it is reported.
PUBLISHED = {
    "ON-LSTM, 25 million, 1000 epochs (Shen et al. 2019)": (58.29, 56.17),
    "AWD-LSTM, 24 million (Merity et al. 2018)": (60.0, 57.3),
}
DEFAULTS = {
    "preset": "small",
    "recurrent": "onlstm",
    "data": None,
    "seed": 0,
    "max_words": None,
    "characters": False,
    "devices": 1,
}
ARGUMENTS = {  # that a run keeps
    "preset": Choice(tuple(PRESETS)),
    "recurrent": Choice(tuple(NAMES)),
    "data": (str, None),
    "seed": SEEDS,
    "max_words": (Integer(3), None),
    "characters": bool,
    "devices": Integer(1),
}
METRICS = {  # of these, what a plot shows
    "epochs": [{"epoch": Integer(1), "val_perplexity": float, "loss": float, "penalty": float}],
}
RESULTS = {"parameters": Integer(), "validation_perplexity": float, "test_perplexity": float}


def parse_arguments():
    parser = ArgumentParser(
        prog="language_modeling.py",
        description="Language modelling with ON-LSTM.",
        epilog=described(SETTINGS, PRESETS),
        formatter_class=RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--preset", choices=PRESETS, help="size and length of the training (default: small)")
    add("--set", metavar="NAME=VALUE", nargs="+", help="change values of the preset; see below")
    add("--recurrent", choices=NAMES, help="the recurrent layers (default: onlstm)")
    add("--data", metavar="DIR", help="directory of the corpus; smoke has one of its own")
    add("--max-words", type=int, metavar="N", help="keep the N most frequent words (default: all)")
    add("--characters", action="store_true", default=None, help="characters instead of words")
    add("--seed", type=seed, help="of weights, dropout and windows (default: 0)")
    add("--devices", type=int, metavar="N", help="share each batch among N devices (default: 1)")
    add("--output", metavar="DIR", default="runs/language_modeling", help="the run's directory")
    add("--resume", action="store_true", help="go on with the run in --output")
    add("--steps", type=int, metavar="N", help="stop after N batches; --resume goes on")
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: test these trained runs")
    add("--generate", metavar="WORDS", help="do not train: go on after these words")
    add("--temperature", type=float, default=1.0, help="of --generate; lower is bolder (default 1)")
    add("--top-k", type=int, metavar="K", help="--generate draws among the K likeliest words")
    add("--length", type=int, default=50, help="of --generate, at most so many words (default: 50)")
    add("--score", metavar="FILE", help="do not train: log-probabilities of a file's lines")
    add("--compact", metavar="FILE", help="do not train: write the models with weights of 8 bits")
    options = parser.parse_args()
    for name, least in (
        ("max_words", 3), ("devices", 1), ("steps", 1), ("top_k", 1), ("length", 1),
    ):  # fmt: skip
        value = vars(options)[name]
        if value is not None and value < least:
            parser.error(f"--{name.replace('_', '-')} {value}: {least} or above")
    if not 0 < options.temperature < math.inf:
        parser.error(f"--temperature {options.temperature:g}: above 0")
    return parser, options


def arguments_of(run):
    return stored_arguments(run, ARGUMENTS, DEFAULTS)


def load_corpus(arguments, run, vocabulary=None):
    """The corpus that a run was started with; of formulas if it was none."""
    level = "character" if arguments["characters"] else "word"
    directory = arguments["data"]
    with tempfile.TemporaryDirectory() as drawn:
        if directory is None:
            pairs, _ = propositional_logic.generate(3000, seed=0).split()
            directory = drawn
            pairs = pairs[:1000]
            shares = {"valid": pairs[::10], "test": pairs[1::10], "train": pairs}
            for part, share in shares.items():
                text = "".join(f"{pair.left}\n" for pair in share)
                with replacing(Path(drawn) / f"{part}.txt") as temporary:
                    temporary.write_text(text)
        else:
            info(f"Reading {directory}")
        return read_corpus(directory, run, vocabulary, arguments["max_words"], level)


def train(output, arguments, values, resume, steps):
    if arguments["data"] is None and arguments["preset"] != "smoke":
        raise ValueError(
            "--data DIR is needed: a directory of train.txt, valid.txt and test.txt, or of the "
            "Penn Treebank's ptb.train.txt, ptb.valid.txt and ptb.test.txt (Mikolov's files)."
        )
    check_devices(values, arguments["devices"])
    corpus = load_corpus(arguments, output)
    return train_model(output, arguments, values, corpus, resume, steps)


def evaluate(runs, data=None):
    results = {}
    loaded = {run: (arguments_of(run), load_language_model(run)) for run in runs}
    for run, (arguments, model) in loaded.items():
        if data is not None:
            arguments["data"] = data
        corpus = load_corpus(arguments, run, model.vocabulary)
        losses = {
            "validation": evaluation(model, "validation", corpus.valid, 10)(),
            "test": evaluation(model, "test", corpus.test, 1)(),
        }
        results[run] = {
            "recurrent": arguments["recurrent"],
            "parameters": model.count_params(),
            **{f"{part}_loss": loss for part, loss in losses.items()},
            **{f"{part}_perplexity": math.exp(loss) for part, loss in losses.items()},
        }
        write_json(Path(run) / "results.json", {**results[run], "arguments": arguments})
    rows = [
        [
            f"{NAMES[result['recurrent']]}, {result['parameters']:,} parameters, {run}",
            f"{result['validation_perplexity']:.2f}",
            f"{result['test_perplexity']:.2f}",
        ]
        for run, result in results.items()
    ]
    rows += [
        [f"published: {name}", *(f"{number:.2f}" for number in numbers)]
        for name, numbers in PUBLISHED.items()
    ]
    info("\nPerplexity; those published are of the Penn Treebank\n")
    info(table(["", "validation", "test"], rows))
    plot_results(results)


def plot_results(results):
    plot = new_plot()
    if plot is None:
        return
    figure, axes = plot
    for run, result in results.items():
        history = read_json(Path(run) / "metrics.json", METRICS, "Train the run first.")["epochs"]
        numbers = [row["epoch"] for row in history]
        name = f"{NAMES[result['recurrent']]}, {Path(run).name}"
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
    axes.set(xlabel="epoch", ylabel="perplexity", yscale="log")
    axes.yaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_minor_formatter("{x:.0f}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
    save_plot(figure, results, "perplexity")


def split_text(text, arguments):
    """The tokens of a text, as the run's corpus has them."""
    return list(text.replace(" ", "_")) if arguments["characters"] else text.split()


def generate(run, text, options):
    arguments, model = arguments_of(run), load_language_model(run)
    words = split_text(text, arguments)
    unknown = sorted({word for word in words if word not in set(model.vocabulary)})
    if unknown:
        info(f"Not in the vocabulary, read as <unk>: {' '.join(unknown)}")
    seed = 0 if options.seed is None else options.seed
    words += model.generate(words, options.length, options.temperature, options.top_k, seed)
    info(("" if arguments["characters"] else " ").join(words))


def score(run, path):
    arguments, model = arguments_of(run), load_language_model(run)
    lines = read_text(path).splitlines()
    sentences = [split_text(line, arguments) for line in lines]
    kept = [(line, words) for line, words in zip(lines, sentences, strict=True) if words]
    if not kept:
        raise ValueError(f"{path}: holds no words.")
    scores = model.score([words for _, words in kept])
    rows = [
        [line.strip(), len(numbers), f"{numbers.sum():.3f}", f"{math.exp(-numbers.mean()):.2f}"]
        for (line, _), numbers in zip(kept, scores, strict=True)
    ]
    info("Each line from zero states, <eos> counted; natural logarithms\n")
    info(table(["sentence", "tokens", "log-probability", "perplexity"], rows))
    total = np.concatenate(scores)
    info(f"\n{len(total):,} tokens, perplexity {math.exp(-total.mean()):.2f}")


def origin(run, arguments, values):
    """Where the model of a run comes from, and how good it is."""
    results = Path(run) / "results.json"
    scores = read_json(results, RESULTS, f"--evaluate {run} writes it.")
    options = [f"--{name} {arguments[name]}" for name in ("preset", "recurrent", "seed")]
    options += [f"--data {Path(arguments['data']).name}"] if arguments["data"] else []
    preset = PRESETS[arguments["preset"]]
    others = [f"{name}={json.dumps(value)}" for name, value in values.items()
              if value != preset[name]]  # fmt: skip
    options += ["--set", *others] if others else []
    return {
        "command": " ".join(["python examples/language_modeling.py", *options]),
        "parameters": scores["parameters"],
        "validation_perplexity": scores["validation_perplexity"],
        "test_perplexity": scores["test_perplexity"],
    }


def compact(runs, path):
    """Writes the models for `Parser.load`, and says what 8 bits cost on the validation text."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path}: a compact model ends in .npz.")
    arguments = [arguments_of(run) for run in runs]
    models = [load_language_model(run) for run in runs]
    about = [
        origin(run, known, stored_values(run, SETTINGS, PRESETS, known))
        for run, known in zip(runs, arguments, strict=True)
    ]
    if len(runs) > 1:
        save_compact(Ensemble(models), path, about)
        rounded = load_compact(path)[0].models
    else:
        save_compact(models[0], path, about[0])
        rounded = [load_compact(path)[0]]
    info(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    for run, given, *both in zip(runs, arguments, models, rounded, strict=True):
        corpus = load_corpus(given, run, both[0].vocabulary)
        before, after = (
            math.exp(evaluation(model, "validation", corpus.valid, 10)()) for model in both
        )
        info(f"{run}: validation perplexity {before:.2f}, with 8 bits {after:.2f}")


def main(options):
    run = (options.evaluate or [options.output])[0]
    if options.generate is not None:
        return generate(run, options.generate, options)
    if options.score is not None:
        return score(run, options.score)
    if options.compact is not None:
        return compact(options.evaluate or [options.output], options.compact)
    if options.evaluate:
        return evaluate(options.evaluate, options.data)
    given = {name: vars(options)[name] for name in DEFAULTS if vars(options)[name] is not None}
    if options.resume:
        check_unlocked(options.output)
        arguments = arguments_of(options.output)
        check_unchanged(given, arguments, options.output)
    else:
        check_new(options.output, prepared=[IDS])
        arguments = {**DEFAULTS, **given}
    values = chosen_values(options, SETTINGS, PRESETS, arguments)
    if train(options.output, arguments, values, options.resume, options.steps):
        evaluate([options.output])
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
