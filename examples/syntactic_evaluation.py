"""Targeted syntactic evaluation of ON-LSTM (Shen et al. 2019, Sec. 5.3; Marvin & Linzen 2018).

Does a language model give the grammatical one of two sentences the higher probability? Trains a
language model, or takes one that `language_modeling.py` trained, and lets it compare minimal pairs:
subject-verb agreement, reflexive anaphora, negative polarity items, at short and long distances.

    python examples/syntactic_evaluation.py --data ptb --brown            # an hour on two cores
    python examples/syntactic_evaluation.py --data ptb --brown --recurrent lstm --output runs/lstm
    python examples/syntactic_evaluation.py --output runs/syntax --resume # go on after a stop
    python examples/syntactic_evaluation.py --evaluate runs/syntax runs/lstm --pairs LM_syneval
    python examples/syntactic_evaluation.py --evaluate runs/lm --pairs mine.tsv
    python examples/syntactic_evaluation.py --write-pairs mine.tsv        # a table to start from

Without --pairs the pairs are those of a small grammar of the package.
"""

import random
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

from _common import info, new_plot, save_plot, write_csv

from keras_onlstm.datasets import brown, syntactic_evaluation, syntactic_grammar
from keras_onlstm.evaluation.minimal_pairs import (
    STOP,
    compare,
    difference_interval,
    discrimination,
    interval,
    mcnemar,
    score_pairs,
)
from keras_onlstm.loading import load_trained
from keras_onlstm.text.corpus import find, sentences
from keras_onlstm.training import Setting
from keras_onlstm.training.corpora import IDS, read_corpus
from keras_onlstm.training.language_model_settings import (
    NAMES,
    PRECISIONS,
    SETTINGS,
    VALUES,
    check_devices,
)
from keras_onlstm.training.runs import Experiment
from keras_onlstm.utils.console import report, table
from keras_onlstm.utils.files import write_json
from keras_onlstm.utils.progress import advance, progress_bar
from keras_onlstm.utils.reading import SEEDS, Choice, Integer

# Keras takes seconds to import. So the functions that need it do that, and --help answers at once.

SETTINGS = {
    **SETTINGS,
    "max_words": Setting((Integer(3), None), "words to know, where --max-words does not say"),
}
# `SETTINGS` says what each value means, and so does --help.
PRESETS = {
    "smoke": {  # shows in seconds that everything works, on sentences of the package's grammar
        "embedding_dim": 48, "units": 48, "num_layers": 1, "chunk_size": 4, "word_dropout": 0.0,
        "input_dropout": 0.0, "hidden_dropout": 0.0, "output_dropout": 0.0,
        "recurrent_weight_dropout": 0.0, "epochs": 4, "batch_size": 20, "bptt": 10,
        "learning_rate": 2e-2, "clipnorm": 5.0, "max_words": None,
    },
    "small": {  # an hour on two cores for two million words
        "embedding_dim": 200, "units": 400, "num_layers": 2, "chunk_size": 10, "word_dropout": 0.0,
        "input_dropout": 0.1, "hidden_dropout": 0.1, "output_dropout": 0.2,
        "recurrent_weight_dropout": 0.0, "epochs": 4, "batch_size": 32, "bptt": 35,
        "learning_rate": 4e-3, "warmup": 0.08, "clipnorm": 0.25, "max_words": 12_000,
    },
    "paper": {  # the published recipe, for 90 million words
        "embedding_dim": 200, "units": 650, "num_layers": 2, "chunk_size": 10,
        "tie_weights": False, "word_dropout": 0.0, "input_dropout": 0.2, "hidden_dropout": 0.2,
        "output_dropout": 0.2, "recurrent_weight_dropout": 0.0, "epochs": 40, "batch_size": 128,
        "bptt": 35, "optimizer": "sgd", "learning_rate": 20.0, "schedule": "plateau",
        "clipnorm": 0.25, "max_words": 50_000, "start": "published",
    },
}  # fmt: skip
PRESETS = {name: {**VALUES, **values} for name, values in PRESETS.items()}

EXPERIMENT = Experiment(
    "examples/syntactic_evaluation.py",
    kinds={  # of the arguments that a run keeps
        "preset": Choice(tuple(PRESETS)),
        "recurrent": Choice(tuple(NAMES)),
        "data": (str, None),
        "brown": bool,
        "grammar": (Integer(1), None),
        "max_words": (Integer(3), None),
        "seed": SEEDS,
        "precision": Choice(PRECISIONS),
        "devices": Integer(1),
    },
    defaults={
        "preset": "small",
        "recurrent": "onlstm",
        "data": None,
        "brown": False,
        "grammar": None,
        "max_words": None,
        "seed": 0,
        "precision": "float32",
        "devices": 1,
    },
    settings=SETTINGS,
    presets=PRESETS,
    later=("grammar", "precision"),
)
# Accuracy of ON-LSTM and LSTM: Shen et al. 2019, Table 3. Rows as in syntactic_evaluation.ROWS.
PUBLISHED = dict(
    zip(
        syntactic_evaluation.ROWS,
        [
            (0.99, 1.00), (0.95, 0.98), (0.89, 0.92), (0.84, 0.88), (0.78, 0.81), (0.89, 0.82),
            (0.86, 0.80), (0.18, 1.00), (0.50, 0.01), (0.07, 0.63), (0.74, 0.74), (0.67, 0.68),
            (0.66, 0.60), (0.57, 0.52), (0.54, 0.51), (0.57, 0.58), (0.59, 0.95), (0.20, 0.00),
            (0.11, 0.04),
        ],
        strict=True,
    )
)  # fmt: skip


def parse_arguments():
    description = "Targeted syntactic evaluation of ON-LSTM."
    parser = EXPERIMENT.parser(description, "runs/syntactic_evaluation")
    add = parser.add_argument
    add("--recurrent", choices=NAMES, help="the recurrent layers (default: onlstm)")
    add("--data", metavar="DIR", help="directory of the corpus; smoke has one of its own")
    add("--brown", action="store_true", default=None, help="train on the Brown corpus as well")
    add(
        "--grammar",
        type=int,
        metavar="N",
        help="put up to N correct sentences of the package's grammar among those to train on",
    )
    add("--max-words", type=int, metavar="N", help="keep the N most frequent words")
    add(
        "--precision",
        choices=PRECISIONS,
        help="in which the training computes; what is kept has 32 bits (default: float32)",
    )
    add("--devices", type=int, metavar="N", help="share each batch among N devices (default: 1)")
    add("--steps", type=int, metavar="N", help="stop after N batches; --resume goes on")
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: evaluate these trained runs")
    add("--pairs", metavar="PATH", help="a .tsv table, or the directory of the published pickles")
    add("--differing", action="store_true", help="compare only the words in which pairs differ")
    add("--known", action="store_true", help="leave out pairs that differ in unknown words")
    add("--write-pairs", metavar="FILE", help="do nothing but write the pairs as a table")
    options = parser.parse_args()
    parser.check_least(options, grammar=1, max_words=3, devices=1, steps=1)
    return parser, options


def shares(sentences):
    """Sentences for training, validation and test, 18 : 1 : 1, in their order."""
    return {
        "train": [s for i, s in enumerate(sentences) if i % 20 not in (0, 10)],
        "valid": sentences[::20],
        "test": sentences[10::20],
    }


def among(lines, others):
    """The lines in their order, and among them, evenly but at random, the others in theirs."""
    count = len(lines) + len(others)
    places = set(random.Random(0).sample(range(count), len(others)))
    lines, others = iter(lines), iter(others)
    return [next(others if place in places else lines) for place in range(count)]


def shuffled(pairs):
    """The correct sentences of minimal pairs, each once."""
    correct = sorted({pair.sentences[0] for pair in pairs})
    random.Random(0).shuffle(correct)
    return correct


def of_grammar(count):
    """Correct sentences of the package's grammar, as many of every case where it has them."""
    cases = len(syntactic_grammar.generate(count=1))
    return shuffled(syntactic_grammar.generate(count=-(-count // cases), seed=1))[:count]


def texts(arguments):
    """Texts of the parts of the corpus, where it is not read as it is.

    The Penn Treebank's text has no full stops. Beside another text, and since the minimal pairs
    end in one, it gets them: every line of every part ends in a full stop.
    """
    if not arguments["brown"] and arguments["data"] is None:
        parts = shares(shuffled(syntactic_grammar.generate(count=40)))
    else:
        parts = {part: [] for part in shares([])}
        if arguments["data"] is not None:
            for part, lines in parts.items():
                lines += (" ".join(words) for words in sentences(find(arguments["data"], part)))
        if arguments["brown"]:
            info("Reading the Brown corpus")
            for part, share in shares([" ".join(words) for words in brown.load()]).items():
                parts[part] += share
        if arguments["grammar"] is not None:
            drawn = of_grammar(arguments["grammar"])
            info(f"{len(drawn):,} sentences of the package's grammar among them")
            parts["train"] = among(parts["train"], drawn)
    return {
        part: "".join(f"{line} {STOP}\n" for line in lines if line) for part, lines in parts.items()
    }


def load_corpus(configuration, run):
    """The corpus of a run."""
    arguments, values = configuration.arguments, configuration.values
    max_words = arguments["max_words"] or values["max_words"]
    if arguments["data"] is not None:
        info(f"Reading {arguments['data']}")
        if not (arguments["brown"] or arguments["grammar"]):
            return read_corpus(arguments["data"], run, None, max_words)
    elif not arguments["brown"] and arguments["preset"] != "smoke":
        raise ValueError(
            "--data DIR or --brown is needed: a directory of train.txt, valid.txt and test.txt, or "
            "NLTK's Brown corpus."
        )
    if arguments["grammar"] and arguments["data"] is None and not arguments["brown"]:
        raise ValueError("--grammar: goes with --data or --brown; smoke reads nothing else anyway.")
    with tempfile.TemporaryDirectory() as directory:
        for part, text in texts(arguments).items():
            (Path(directory) / f"{part}.txt").write_text(text, encoding="utf-8")
        return read_corpus(directory, run, None, max_words)


def train(output, configuration, resume, steps):
    from keras_onlstm.training.language_models import train_language_model

    check_devices(configuration.values, configuration.arguments["devices"])
    corpus = load_corpus(configuration, output)
    return train_language_model(output, configuration, corpus, resume, steps)


def load_pairs(path):
    """Minimal pairs of a table, of the published pickles, or of the package's grammar."""
    if path is None:
        return syntactic_grammar.generate()
    if Path(path).is_dir():
        return syntactic_evaluation.load(path)
    return syntactic_evaluation.read_table(path)


class Evaluated:
    """What a model made of all minimal pairs."""

    def __init__(self, run, pairs, differing, known):
        self.run = Path(run)
        model = load_trained(run, "language_model")
        self.name = f"{model.title} {self.run.name}"
        info(f"\n{self.name}")
        started = time.perf_counter()
        with progress_bar("sentences") as bar:
            scores = score_pairs(model, pairs, progress=partial(advance, bar))
        seconds = time.perf_counter() - started
        count = sum(len(pair.sentences) for pair in pairs)
        info(f"{count:,} sentences, {len(scores):,} distinct ones")
        self.outcomes = {
            outcome.row: outcome for outcome in compare(pairs, scores, model.vocabulary, differing)
        }
        self.only_known = known
        self.facts = {
            "run": str(run),
            "model": model.title,
            "parameters": model.count_params(),
            "sentences": count,
            "distinct_sentences": len(scores),
            "seconds": seconds,
        }

    def right(self, row):
        """Booleans of a row, of the pairs that count."""
        outcome = self.outcomes[row]
        return outcome.right[outcome.known] if self.only_known else outcome.right

    def lines(self):
        """Every row, and every case in it, as dictionaries."""
        for row, outcome in self.outcomes.items():
            parts = {("", ""): range(len(outcome.right))}
            cases = defaultdict(list)
            for place, case in enumerate(outcome.cases):
                cases[case].append(place)
            for (construction, case), places in (parts | cases).items():
                places = list(places)
                known = outcome.known[places]
                right = outcome.right[places][known] if self.only_known else outcome.right[places]
                count = len(right)
                low, high = interval(int(right.sum()), count) if count else (None, None)
                yield {
                    "distance": row.distance,
                    "phenomenon": row.phenomenon,
                    "name": row.name,
                    "construction": construction,
                    "case": case,
                    "right": int(right.sum()),
                    "pairs": count,
                    "accuracy": float(right.mean()) if count else None,
                    "lowest": low,
                    "highest": high,
                    "known": int(known.sum()),
                    "all": len(places),
                    "discrimination": None if construction else discrimination(outcome),
                }


def percent(value):
    return "" if value is None else f"{100 * value:.1f}"


def share_of(right):
    return float(right.mean()) if len(right) else None


def headings(models):
    header = ["", *(model.name for model in models), "pairs", *("known" for _ in models)]
    header += ["discrimination" for _ in models]
    if len(models) == 2:
        header += ["difference", "95%", "p"]
    return [*header, *(f"published {name}" for name in NAMES.values())]


def line_of(models, row):
    """A line of the table."""
    rights = [model.right(row) for model in models]
    known = [share_of(model.outcomes[row].known) for model in models]
    counts = sorted({len(right) for right in rights})
    line = [f"  {row.name}", *(percent(share_of(right)) for right in rights)]
    line += ["/".join(f"{count:,}" for count in counts), *map(percent, known)]
    line += [percent(discrimination(model.outcomes[row])) for model in models]
    if len(models) == 2:
        line += difference_of(models, row)
    return [*line, *(f"{100 * number:.0f}" for number in PUBLISHED.get(row, ()))]


def paired(models, row):
    """Booleans of two models on the pairs that count for both, or `None`."""
    outcomes = [model.outcomes[row] for model in models]
    counted = outcomes[0].known & outcomes[1].known
    if not models[0].only_known:
        counted[:] = True
    return [outcome.right[counted] for outcome in outcomes] if counted.any() else None


def difference_of(models, row):
    both = paired(models, row)
    if both is None:
        return ["", "", ""]
    difference, low, high = difference_interval(*both)
    probability = mcnemar(*both)
    shown = "<0.001" if probability < 0.001 else f"{probability:.3f}"
    return [f"{100 * difference:+.1f}", f"{100 * low:+.1f} to {100 * high:+.1f}", shown]


def print_table(models):
    header = headings(models)
    lines, group = [], None
    for row in models[0].outcomes:
        if (row.distance, row.phenomenon) != group:
            group = row.distance, row.phenomenon
            title = f"{row.phenomenon}, {row.distance} distance" if row.phenomenon else "Others"
            lines.append([title, *([""] * (len(header) - 1))])
        line = line_of(models, row)
        lines.append(line + [""] * (len(header) - len(line)))
    info("\nAccuracy in percent; published: Shen et al. 2019, Table 3, on 90 million words\n")
    info(table(header, lines))


def write_results(models, options):
    for model in models:
        lines = list(model.lines())
        rows = [lines[0].keys(), *(line.values() for line in lines)]
        write_csv(model.run / "syntactic_evaluation.csv", rows)
        write_json(
            model.run / "syntactic_evaluation.json",
            {
                **model.facts,
                "pairs": options.pairs or "of the package's grammar",
                "differing_words_alone": options.differing,
                "known_words_alone": options.known,
                "rows": lines,
            },
        )


def plot_results(models):
    plot = new_plot()
    if plot is None:
        return
    figure, axes = plot
    rows = list(models[0].outcomes)
    figure.set_size_inches(8, 1.5 + 0.3 * len(rows))
    names = [f"{row.phenomenon}: {row.name}" if row.phenomenon else row.name for row in rows]
    if len(models) == 2:
        for place, row in enumerate(rows):
            both = paired(models, row)
            if both is not None:
                middle, low, high = (100 * number for number in difference_interval(*both))
                axes.plot([low, high], [place, place], color="tab:blue")
                axes.plot(middle, place, "o", color="tab:blue")
        axes.axvline(0, color="black", lw=0.8)
        axes.set_xlabel(f"{models[0].name} minus {models[1].name}, percent", loc="right")
    else:
        for index, model in enumerate(models):
            for place, row in enumerate(rows):
                right = model.right(row)
                if len(right):
                    low, high = (100 * x for x in interval(int(right.sum()), len(right)))
                    height = place + 0.15 * index
                    axes.plot([low, high], [height, height], color=f"C{index}")
                    axes.plot(
                        100 * right.mean(), height, "o", color=f"C{index}",
                        label=None if place else model.name,
                    )  # fmt: skip
        axes.axvline(50, color="black", lw=0.8)
        axes.set_xlabel("accuracy, percent")
        axes.legend(fontsize="small")
    axes.set_yticks(range(len(rows)), names, fontsize="small")
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    save_plot(figure, [model.run for model in models], "syntactic_evaluation")


def evaluate(runs, options):
    pairs = load_pairs(options.pairs)
    models = [Evaluated(run, pairs, options.differing, options.known) for run in runs]
    write_results(models, options)
    print_table(models)
    plot_results(models)


def main(options):
    if options.write_pairs is not None:
        pairs = load_pairs(options.pairs)
        syntactic_evaluation.write_table(options.write_pairs, pairs)
        return info(f"{options.write_pairs}: {len(pairs):,} minimal pairs")
    if options.evaluate:
        return evaluate(options.evaluate, options)
    configuration = EXPERIMENT.configuration(options, prepared=[IDS])
    if train(options.output, configuration, options.resume, options.steps):
        evaluate([options.output], options)
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
