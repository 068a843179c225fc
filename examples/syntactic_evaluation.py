"""Targeted syntactic evaluation of ON-LSTM (Shen et al. 2019, Sec. 5.3; Marvin & Linzen 2018).

Does a language model give the grammatical one of two sentences the higher probability? Trains a
language model, or takes one of `language_modeling.py`, and evaluates it on minimal pairs:
subject-verb agreement, reflexive anaphora, negative polarity items, at short and long distances.

    python examples/syntactic_evaluation.py --data ptb --brown            # an hour on two cores
    python examples/syntactic_evaluation.py --data ptb --brown --recurrent lstm --output runs/lstm
    python examples/syntactic_evaluation.py --output runs/syntax --resume # resume after a stop
    python examples/syntactic_evaluation.py --evaluate runs/syntax runs/lstm --pairs LM_syneval
    python examples/syntactic_evaluation.py --evaluate runs/lm --pairs mine.tsv
    python examples/syntactic_evaluation.py --write-pairs mine.tsv        # a table to start from

Without --pairs the pairs are from a small grammar of the package.
"""

import random
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from _common import info, write_csv

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
from keras_onlstm.runs.config import option, preset_option, run_parser
from keras_onlstm.runs.language_model import NAMES, LanguageModelConfig
from keras_onlstm.text.corpus import find, sentences
from keras_onlstm.training.corpora import IDS, read_corpus, split_lines
from keras_onlstm.utils.console import advance, progress_bar, report, table
from keras_onlstm.utils.files import write_json

_PLAIN = dict.fromkeys(
    ["word_dropout", "input_dropout", "hidden_dropout", "output_dropout",
     "recurrent_weight_dropout", "activation_regularization", "temporal_regularization"], 0.0,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SyntaxConfig(LanguageModelConfig):
    """Configuration of a language model trained on complete sentences."""

    program: ClassVar[str] = "python examples/syntactic_evaluation.py"
    presets: ClassVar = {
        "debug": {  # on sentences of the package's grammar
            **_PLAIN, "embedding_dim": 48, "units": 48, "num_layers": 1, "chunk_size": 4,
            "epochs": 4, "batch_size": 20, "bptt": 10, "learning_rate": 2e-2, "clipnorm": 5.0,
            "max_words": None,
        },
        "medium": {  # an hour on two cores for two million words
            **_PLAIN, "embedding_dim": 200, "units": 400, "num_layers": 2, "input_dropout": 0.1,
            "hidden_dropout": 0.1, "output_dropout": 0.2, "epochs": 4, "warmup": 0.08,
        },
        "paper": {  # for 90 million words
            **_PLAIN, "embedding_dim": 200, "units": 650, "num_layers": 2, "tie_weights": False,
            "input_dropout": 0.2, "hidden_dropout": 0.2, "output_dropout": 0.2, "epochs": 40,
            "batch_size": 128, "optimizer": "sgd", "learning_rate": 20.0, "schedule": "plateau",
            "max_words": 50_000, "initialization": "published",
        },
    }  # fmt: skip

    preset: str = preset_option("medium", ("debug", "medium", "paper"))
    brown: bool = option(False, "Train on the Brown corpus as well.", "data")
    grammar: int | None = option(
        None, "Train on up to N correct sentences of the package's grammar as well.", "data", 1
    )
    max_words: int | None = option(12_000, "Keep the N most frequent words.", "data", 3)

    def check(self):
        super().check()
        if self.grammar and not (self.data or self.brown):
            raise ValueError("--grammar: goes with --data or --brown")
        if self.preset != "debug" and not (self.data or self.brown):
            raise ValueError(
                "--data DIR or --brown is needed: a folder of train.txt, valid.txt and test.txt, "
                "or NLTK's Brown corpus"
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
    about = "Targeted syntactic evaluation of ON-LSTM."
    name = "syntactic_evaluation"
    parser = run_parser([SyntaxConfig], f"{name}.py", about, f"runs/{name}")
    add = parser.add_argument
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: evaluate these trained runs")
    add("--pairs", metavar="PATH", help="a .tsv table, or the directory of the published pickles")
    add("--differing", action="store_true", help="compare only the words in which pairs differ")
    add("--known", action="store_true", help="leave out pairs that differ in unknown words")
    add("--write-pairs", metavar="FILE", help="do nothing but write the pairs as a table")
    return parser, parser.parse_args()


def among(lines, others):
    """Merges two lists of lines at uniformly random positions, each in its order."""
    count = len(lines) + len(others)
    places = set(random.Random(0).sample(range(count), len(others)))
    lines, others = iter(lines), iter(others)
    return [next(others if place in places else lines) for place in range(count)]


def shuffled(pairs):
    """The distinct correct sentences of minimal pairs, shuffled."""
    correct = sorted({pair.sentences[0] for pair in pairs})
    random.Random(0).shuffle(correct)
    return correct


def of_grammar(count):
    """Correct sentences of the package's grammar, the same number of each case if possible."""
    cases = len(syntactic_grammar.generate(count=1))
    return shuffled(syntactic_grammar.generate(count=-(-count // cases), seed=1))[:count]


def texts(config):
    """Texts of the parts of a corpus that is combined or generated.

    Every line gets a full stop at its end, as the minimal pairs have, because the Penn Treebank's
    text has none and other texts do.
    """
    if not config.brown and not config.data:
        parts = split_lines(shuffled(syntactic_grammar.generate(count=40)))
    else:
        parts = {part: [] for part in split_lines([])}
        for part, lines in parts.items() if config.data else ():
            lines += (" ".join(words) for words in sentences(find(config.data[0], part)))
        if config.brown:
            info("Reading the Brown corpus")
            for part, share in split_lines([" ".join(words) for words in brown.load()]).items():
                parts[part] += share
        if config.grammar is not None:
            drawn = of_grammar(config.grammar)
            info(f"{len(drawn):,} sentences of the package's grammar among them")
            parts["train"] = among(parts["train"], drawn)
    return {
        part: "".join(f"{line} {STOP}\n" for line in lines if line) for part, lines in parts.items()
    }


def load_corpus(config, run):
    """Reads the corpus of a run."""
    if config.data:
        info(f"Reading {' '.join(config.data)}")
        if not (config.brown or config.grammar):
            return read_corpus(config, run)
    with tempfile.TemporaryDirectory() as directory:
        for part, text in texts(config).items():
            (Path(directory) / f"{part}.txt").write_text(text, encoding="utf-8")
        return read_corpus(replace(config, data=[directory]), run)


def train(config, options):
    from keras_onlstm.training.language_models import train_language_model

    corpus = load_corpus(config, options.output)
    shape = options.resume, options.steps, options.log_every
    return train_language_model(options.output, config, corpus, *shape)


def load_pairs(path):
    """Minimal pairs from a table, the published pickles, or the package's grammar."""
    if path is None:
        return syntactic_grammar.generate()
    if Path(path).is_dir():
        return syntactic_evaluation.load(path)
    return syntactic_evaluation.read_table(path)


class Evaluated:
    """The results of a model on all minimal pairs."""

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
        """For each counted pair of a row, whether it is right."""
        outcome = self.outcomes[row]
        return outcome.right[outcome.known] if self.only_known else outcome.right

    def lines(self):
        """A dictionary for every row and for every case in it."""
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
    """A row of the table."""
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
    """Whether two models are right on each pair that counts for both, or `None`."""
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


def evaluate(runs, options):
    pairs = load_pairs(options.pairs)
    models = [Evaluated(run, pairs, options.differing, options.known) for run in runs]
    write_results(models, options)
    print_table(models)


def main(options):
    if options.write_pairs is not None:
        pairs = load_pairs(options.pairs)
        syntactic_evaluation.write_table(options.write_pairs, pairs)
        return info(f"{options.write_pairs}: {len(pairs):,} minimal pairs")
    if options.evaluate:
        return evaluate(options.evaluate, options)
    if train(options.config_class.from_options(options, prepared=[IDS]), options):
        evaluate([options.output], options)
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
