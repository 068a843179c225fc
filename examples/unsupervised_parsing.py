"""Unsupervised constituency parsing with ON-LSTM (Shen et al. 2019, Sec. 5.2).

Reads trees off the distances of trained language models and scores them against a treebank: every
layer, both gates, both algorithms, beside the baselines and what was published.

    python examples/unsupervised_parsing.py                             # the package's model
    python examples/unsupervised_parsing.py --models runs/a runs/b      # of language_modeling.py
    python examples/unsupervised_parsing.py --corpus ptb --sections 23  # a full Penn Treebank

Several models give means with standard deviations. Writes scores.csv, results.json, report.html
and pictures of some sentences.
"""

import csv
import random
import statistics
from pathlib import Path

from _common import check_new, info, report, start_run, table
from nltk import Tree

from keras_onlstm.console import ArgumentParser
from keras_onlstm.datasets import treebank
from keras_onlstm.files import replacing, write_json
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import (
    balanced,
    build_tree,
    left_branching,
    random_tree,
    right_branching,
    save_picture,
    score,
    write_report,
)

SHORT = 10  # words, of what the literature calls WSJ10
LABELS = ("ADJP", "NP", "PP", "INTJ")
COLUMNS = ("f1", "f1_short", *(f"recall_{label}" for label in LABELS), "depth")
HEADER = ("", "F1", f"F1, to {SHORT} words", *LABELS, "depth")
# Percent, and the depth, in the order of COLUMNS, of the full treebank: test set, and WSJ10 for the
# short sentences. Layers: Shen et al. 2019, Table 2; trees without a model: Htut et al. 2018.
PUBLISHED = {
    "ON-LSTM, layer 1 (5 seeds)": (20.0, 35.2, 38.1, 23.8, 18.3, 100.0, 5.6),
    "ON-LSTM, layer 2 (5 seeds)": (47.7, 65.1, 46.2, 61.4, 55.4, 0.0, 5.6),
    "ON-LSTM, layer 3 (5 seeds)": (36.6, 54.0, 44.8, 57.5, 47.2, 0.0, 5.3),
    "random trees": (18.4,),
    "balanced trees": (24.5,),
    "left-branching trees": (9.0,),
    "right-branching trees": (39.8,),
}
SMOKE = [  # a treebank that needs no download
    "(S (NP the company) (VP said (SBAR (S (NP it) (VP will (VP sell (NP its stake)))))))",
    "(S (NP (NP shares) (PP of (NP the bank))) (VP fell (NP N N)))",
    "(S (NP the new law) (VP takes (NP effect) (PP in (NP january))))",
    "(S (NP he) (VP declined (S (VP to (VP comment)))))",
]


def parse_arguments():
    parser = ArgumentParser(
        prog="unsupervised_parsing.py", description="Unsupervised parsing with ON-LSTM."
    )
    add = parser.add_argument
    add("--preset", choices=("smoke", "full"), default="full", help="smoke: four sentences")
    add("--models", nargs="+", metavar="PATH", help="files or runs; default: the package's model")
    add("--corpus", choices=("sample", "ptb"), default="sample", help="default: sample")
    add("--sections", nargs="+", type=int, metavar="N", help="of ptb; 23 is the test set")
    add("--pictures", type=int, default=5, metavar="N", help="sentences to draw (default: 5)")
    add("--output", metavar="DIR", default="runs/unsupervised_parsing", help="where to write")
    options = parser.parse_args()
    if options.sections and options.corpus != "ptb":
        parser.error("--sections: the sample has none, --corpus ptb has")
    if options.pictures < 0:
        parser.error(f"--pictures {options.pictures}: 0 or above")
    return parser, options


def load_sentences(options):
    if options.preset == "smoke":
        trees = [Tree.fromstring(text) for text in SMOKE]
        return [treebank.ParsedSentence(tree.leaves(), tree) for tree in trees]
    return treebank.load(corpus=options.corpus, sections=options.sections)


def evaluate(trees, sentences):
    """Scores over all lengths and over short sentences, in one flat dictionary."""
    short = [i for i, sentence in enumerate(sentences) if len(sentence.tokens) <= SHORT]
    everything = score(trees, [sentence.tree for sentence in sentences])
    brief = score([trees[i] for i in short], [sentences[i].tree for i in short])
    found = {key: everything[key] for key in ("f1", "corpus_f1", "evalb_f1", "depth")}
    found["f1_short"] = brief["f1"]
    for label in LABELS:
        right, count = everything["label_recall"].get(label, (0, 0))
        found[f"recall_{label}"] = right / count if count else None
    return found


def evaluate_model(parser, sentences):
    """{(layer, gate, method): scores}, and the distances of the forget gates."""
    results, forget = {}, None
    for gate in ("forget", "input"):
        distances = parser.measure([sentence.tokens for sentence in sentences], gate)
        forget = distances if gate == "forget" else forget
        for layer in range(len(distances[0])):
            for method in ("greedy", "binary"):
                trees = [
                    build_tree(numbers[layer], sentence.tokens, method)
                    for numbers, sentence in zip(distances, sentences, strict=True)
                ]
                results[layer + 1, gate, method] = evaluate(trees, sentences)
    return results, forget


def evaluate_baselines(sentences):
    draw = random.Random(0)
    makers = {
        "random trees": lambda tokens: random_tree(tokens, draw),
        "balanced trees": balanced,
        "left-branching trees": left_branching,
        "right-branching trees": right_branching,
    }
    return {
        name: evaluate([make(sentence.tokens) for sentence in sentences], sentences)
        for name, make in makers.items()
    }


def combine(models):
    """Means, standard deviations and largest values over models, for every row and score."""
    rows = {}
    for key in models[0]:
        rows[key] = {}
        for name in models[0][key]:
            values = [model[key][name] for model in models]
            if None in values:
                rows[key][name] = None
                continue
            deviation = statistics.stdev(values) if len(values) > 1 else None
            rows[key][name] = {
                "mean": statistics.fmean(values),
                "deviation": deviation,
                "largest": max(values),
                "values": values,
            }
    return rows


def shown(name, value):
    """A number, percent but for the depth."""
    scale, digits = (1, 1) if name == "depth" else (100, 1)
    if value is None:
        return ""
    if not isinstance(value, dict):
        return f"{scale * value:.{digits}f}"
    text = f"{scale * value['mean']:.{digits}f}"
    if value["deviation"] is not None:
        text += f" ± {scale * value['deviation']:.{digits}f} (max {scale * value['largest']:.1f})"
    return text


def rows_of(combined, baselines):
    rows = [
        (f"layer {layer}, {gate} gate, {method}", scores)
        for (layer, gate, method), scores in combined.items()
    ]
    rows += baselines.items()
    own = [[name, *(shown(column, scores[column]) for column in COLUMNS)] for name, scores in rows]
    published = [
        [
            f"published: {name}",
            *(f"{n:.1f}" for n in numbers),
            *[""] * (len(COLUMNS) - len(numbers)),
        ]
        for name, numbers in PUBLISHED.items()
    ]
    return own + published


def write_files(output, rows, combined, baselines, options, sentences):
    with (
        replacing(output / "scores.csv") as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)
    write_json(
        output / "results.json",
        {
            "models": options.models or ["the package's"],
            "sentences": len(sentences),
            "scores": [
                {"layer": layer, "gate": gate, "method": method, **scores}
                for (layer, gate, method), scores in combined.items()
            ],
            "baselines": baselines,
        },
    )


def write_pictures(output, sentences, distances, count):
    """The report, and pictures of some sentences, of the second layer of the first model."""
    layer = min(2, len(distances[0]))
    chosen = [numbers[layer - 1] for numbers in distances]
    trees = [build_tree(d, s.tokens) for d, s in zip(chosen, sentences, strict=True)]
    golds = [sentence.tree for sentence in sentences]
    title = f"Unsupervised parsing, layer {layer}, greedy"
    write_report(output / "report.html", trees, golds, chosen, title)
    endings = [".svg"]
    try:
        import matplotlib  # noqa: F401

        endings.append(".png")
    except ImportError:
        info("For pictures as PNG: pip install 'keras-onlstm[viz]'")
    for index in range(0, len(sentences), -(-len(sentences) // count)) if count else ():
        for ending in endings:
            f1 = 100 * score([trees[index]], [golds[index]])["f1"]
            path = output / f"sentence_{index + 1}{ending}"
            save_picture(path, trees[index], golds[index], chosen[index], f"F1 {f1:.1f}")


def main(options):
    check_new(options.output)
    parsers = [Parser.load(model) for model in options.models or [None]]
    sentences = load_sentences(options)
    words = sum(len(sentence.tokens) for sentence in sentences)
    info(f"{len(sentences):,} sentences, {words:,} words")
    start_run(options.output, vars(options))
    results, first = [], None
    for parser in parsers:
        scores, distances = evaluate_model(parser, sentences)
        results.append(scores)
        first = distances if first is None else first
    if any(result.keys() != results[0].keys() for result in results):
        raise ValueError("--models: they differ in their number of layers. Name them one by one.")
    combined, baselines = combine(results), evaluate_baselines(sentences)
    rows = rows_of(combined, baselines)
    output = Path(options.output)
    write_files(output, rows, combined, baselines, options, sentences)
    write_pictures(output, sentences, first, options.pictures)
    info("\nPercent; published figures are of the full treebank\n")
    info(table(HEADER, rows))
    info(f"\nReport: {output / 'report.html'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
