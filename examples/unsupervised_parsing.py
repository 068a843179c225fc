"""Unsupervised constituency parsing with ON-LSTM (Shen et al. 2019, Sec. 5.2), or with PRPN.

Builds trees from the distances of trained language models and evaluates them on a treebank: every
layer, both gates, both algorithms, with baselines and published scores. Several models are also
combined in ensembles, by mean distances and by votes.

    python examples/unsupervised_parsing.py                             # the package's models
    python examples/unsupervised_parsing.py --models runs/a runs/b      # of language_modeling.py
    python examples/unsupervised_parsing.py --corpus ptb --sections 23  # a full Penn Treebank

For several models it reports means, standard deviations and the agreement between their trees,
which helps to choose a layer without annotated sentences. Writes scores.csv, results.json,
report.html and pictures of some sentences.
"""

from pathlib import Path

import numpy as np
from _common import info, write_csv

from keras_onlstm.datasets import treebank
from keras_onlstm.drawing.svg import check_png
from keras_onlstm.evaluation.unsupervised_parsing import (
    LABELS,
    SHORT,
    baseline_scores,
    ensemble_scores,
    measured_distances,
    model_scores,
)
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import save_picture, score, vote, write_report
from keras_onlstm.runs.directory import check_new, running
from keras_onlstm.utils.console import ArgumentParser, at_least, report, table
from keras_onlstm.utils.files import write_json

COLUMNS = ("f1", "f1_short", *(f"recall_{label}" for label in LABELS), "depth", "agreement")
HEADER = ("", "F1", f"F1, to {SHORT} words", *LABELS, "depth", "agreement")
# Published values of COLUMNS on the test set of the full treebank, in percent except for the depth.
# Short sentences are those of WSJ10. ON-LSTM: Shen et al. 2019, Table 2; baselines: Htut et al.
# 2018.
PUBLISHED = {
    "ON-LSTM, layer 1 (5 seeds)": (20.0, 35.2, 38.1, 23.8, 18.3, 100.0, 5.6),
    "ON-LSTM, layer 2 (5 seeds)": (47.7, 65.1, 46.2, 61.4, 55.4, 0.0, 5.6),
    "ON-LSTM, layer 3 (5 seeds)": (36.6, 54.0, 44.8, 57.5, 47.2, 0.0, 5.3),
    "PRPN (Shen et al. 2019)": (37.4, 70.5),
    "random trees": (18.4,),
    "balanced trees": (24.5,),
    "left-branching trees": (9.0,),
    "right-branching trees": (39.8,),
}
DEBUG = [  # a tiny treebank that needs no download
    "(S (NP the company) (VP said (SBAR (S (NP it) (VP will (VP sell (NP its stake)))))))",
    "(S (NP (NP shares) (PP of (NP the bank))) (VP fell (NP N N)))",
    "(S (NP the new law) (VP takes (NP effect) (PP in (NP january))))",
    "(S (NP he) (VP declined (S (VP to (VP comment)))))",
]


def parse_arguments():
    parser = ArgumentParser(
        prog="unsupervised_parsing.py",
        description="Evaluate the trees of trained language models on a treebank.",
    )
    add = parser.add_argument
    # fmt: off
    add("--preset", choices=("debug",), help="debug: evaluate on four sentences, in seconds.")
    add("--models", nargs="+", metavar="PATH",
        help="Runs or model files to evaluate. Default: the models of the package.")
    add("--corpus", choices=("sample", "ptb"), default="sample", help="Treebank. sample: the part "
        "of the Penn Treebank in NLTK; ptb: the full one, installed in NLTK. (default: sample)")
    add("--sections", nargs="+", type=int, metavar="N",
        help="Sections of --corpus ptb, e.g. 23, the test set. Default: all.")
    add("--pictures", type=at_least(0), default=5, metavar="N",
        help="Number of sentences to draw. (default: 5)")
    add("--output", metavar="DIR", default="runs/unsupervised_parsing",
        help="New directory for the results. (default: %(default)s)")
    # fmt: on
    options = parser.parse_args()
    if options.sections and options.corpus != "ptb":
        parser.error("--sections needs --corpus ptb: NLTK's sample has no sections")
    return parser, options


def load_sentences(options):
    if options.preset:
        from nltk import Tree

        trees = [Tree.fromstring(text) for text in DEBUG]
        return [treebank.ParsedSentence(tree.leaves(), tree) for tree in trees]
    return treebank.load(corpus=options.corpus, sections=options.sections)


def format_score(name, value):
    """Formats the depth, or a score in percent; of several models, with mean and deviation."""
    scale = 1 if name == "depth" else 100
    if value is None:
        return ""
    if not isinstance(value, dict):
        return f"{scale * value:.1f}"
    text = f"{scale * value['mean']:.1f}"
    if value["deviation"] is not None:
        text += f" ± {scale * value['deviation']:.1f} (max {scale * value['largest']:.1f})"
    return text


def table_rows(singles, ensembles, count, baselines):
    """Rows with the scores of `count` models, of their ensembles and of baselines."""
    named = {
        f"layer {layer}, {gate} gate, {method}": scores
        for (layer, gate, method), scores in singles.items()
    }
    for (layer, rule), scores in ensembles.items():
        named[f"{count} models, {f'layer {layer}' if layer else 'all layers'}, {rule}"] = scores
    rows = []
    for name, scores in (named | baselines).items():
        rows.append([name, *(format_score(column, scores.get(column)) for column in COLUMNS)])
    for name, numbers in PUBLISHED.items():
        empty = [""] * (len(COLUMNS) - len(numbers))
        rows.append([f"published: {name}", *(f"{number:.1f}" for number in numbers), *empty])
    return rows


def write_files(output, rows, scores, options, sentences):
    singles, ensembles, baselines = scores
    write_csv(output / "scores.csv", [HEADER, *rows])
    write_json(
        output / "results.json",
        {
            "models": options.models or ["the package's"],
            "sentences": len(sentences),
            "scores": [
                {"layer": layer, "gate": gate, "method": method, **scores}
                for (layer, gate, method), scores in singles.items()
            ],
            "together": [
                {"layer": layer, "rule": rule, **scores}
                for (layer, rule), scores in ensembles.items()
            ],
            "baselines": baselines,
        },
    )


def write_pictures(output, sentences, parsers, distances, count):
    """Writes the report and `count` pictures of the trees of one parser, or of votes of several.

    `distances` has a dictionary for each model: a list of arrays (layers, words) for each gate.
    """
    parser, is_single = parsers[0], len(parsers) == 1
    gates = tuple(distances[0]) if not is_single or parser.gate == "both" else (parser.gate,)
    layers = [by_gate[gate] for gate in gates for by_gate in distances]
    stacked = [np.concatenate(rows) for rows in zip(*layers, strict=True)]
    make_tree, rows = (parser.tree, parser.rows) if is_single else (vote, slice(None))
    rule = f"layer {parser.layer}, {parser.method}" if is_single and parser.layer else "votes"
    trees = [make_tree(d, s.tokens) for d, s in zip(stacked, sentences, strict=True)]
    means = [array[rows].mean(axis=0) for array in stacked]
    golds = [sentence.tree for sentence in sentences]
    title = f"Unsupervised parsing, {rule}"
    write_report(output / "report.html", trees, golds, means, title)
    endings = [".svg"]
    try:
        check_png()
        endings.append(".png")
    except ImportError as error:
        info(error)
    for index in range(0, len(sentences), -(-len(sentences) // count)) if count else ():
        for ending in endings:
            f1 = 100 * score([trees[index]], [golds[index]])["f1"]
            path = output / f"sentence_{index + 1}{ending}"
            save_picture(path, trees[index], golds[index], means[index], f"F1 {f1:.1f}")


def main(options):
    check_new(options.output)
    parsers = [Parser.load(model) for model in options.models or [None]]
    sentences = load_sentences(options)
    words = sum(len(sentence.tokens) for sentence in sentences)
    info(f"{len(sentences):,} sentences, {words:,} words")
    with running(options.output, vars(options)):
        distances = [d for parser in parsers for d in measured_distances(parser, sentences)]
        singles, baselines = model_scores(distances, sentences), baseline_scores(sentences)
        ensembles = ensemble_scores(distances, sentences) if len(distances) > 1 else {}
        rows = table_rows(singles, ensembles, len(distances), baselines)
        output = Path(options.output)
        write_files(output, rows, (singles, ensembles, baselines), options, sentences)
        write_pictures(output, sentences, parsers, distances, options.pictures)
    info("\nScores in percent. Published figures are for the full Penn Treebank.\n")
    info(table(HEADER, rows))
    info(f"\nReport: {output / 'report.html'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
