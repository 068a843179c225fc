"""Unsupervised constituency parsing with ON-LSTM (Shen et al. 2019, Sec. 5.2), or with PRPN.

Builds trees from the distances of trained language models and evaluates them on a treebank: every
layer, both gates, both algorithms, with baselines and published scores. Several models also form
ensembles, by mean distances and by votes.

    python examples/unsupervised_parsing.py                             # the package's models
    python examples/unsupervised_parsing.py --models runs/a runs/b      # of language_modeling.py
    python examples/unsupervised_parsing.py --corpus ptb --sections 23  # a full Penn Treebank

For several models it reports means, standard deviations and the agreement of their trees, which
helps to choose a layer without annotated sentences. Writes scores.csv, results.json, report.html
and pictures of some sentences.
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
# Percent, and the depth, in the order of COLUMNS, on the full treebank: test set, and WSJ10 for
# short sentences. Layers: Shen et al. 2019, Table 2; trees without a model: Htut et al. 2018.
PUBLISHED = {
    "ON-LSTM, layer 1 (5 seeds)": (20.0, 35.2, 38.1, 23.8, 18.3, 100.0, 5.6),
    "ON-LSTM, layer 2 (5 seeds)": (47.7, 65.1, 46.2, 61.4, 55.4, 0.0, 5.6),
    "ON-LSTM, layer 3 (5 seeds)": (36.6, 54.0, 44.8, 57.5, 47.2, 0.0, 5.3),
    "PRPN, a language model (Shen et al. 2019)": (37.4, 70.5),
    "random trees": (18.4,),
    "balanced trees": (24.5,),
    "left-branching trees": (9.0,),
    "right-branching trees": (39.8,),
}
DEBUG = [  # a treebank that needs no download
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
    add("--preset", choices=("debug",), help="debug: four sentences")
    add("--models", nargs="+", metavar="PATH", help="files or runs; default: the package's")
    add("--corpus", choices=("sample", "ptb"), default="sample", help="default: sample")
    add("--sections", nargs="+", type=int, metavar="N", help="of ptb; 23 is the test set")
    add(
        "--pictures",
        type=at_least(0),
        default=5,
        metavar="N",
        help="sentences to draw (default: 5)",
    )
    add("--output", metavar="DIR", default="runs/unsupervised_parsing", help="where to write")
    options = parser.parse_args()
    if options.sections and options.corpus != "ptb":
        parser.error("--sections: the sample has none, --corpus ptb has")
    return parser, options


def load_sentences(options):
    if options.preset:
        from nltk import Tree

        trees = [Tree.fromstring(text) for text in DEBUG]
        return [treebank.ParsedSentence(tree.leaves(), tree) for tree in trees]
    return treebank.load(corpus=options.corpus, sections=options.sections)


def shown(name, value):
    """A formatted number: the depth, or percent."""
    scale, digits = (1, 1) if name == "depth" else (100, 1)
    if value is None:
        return ""
    if not isinstance(value, dict):
        return f"{scale * value:.{digits}f}"
    text = f"{scale * value['mean']:.{digits}f}"
    if value["deviation"] is not None:
        text += f" ± {scale * value['deviation']:.{digits}f} (max {scale * value['largest']:.1f})"
    return text


def rows_of(combined, together, count, baselines):
    rows = [
        (f"layer {layer}, {gate} gate, {method}", scores)
        for (layer, gate, method), scores in combined.items()
    ]
    rows += [
        (f"{count} models, {f'layer {layer}' if layer else 'all layers'}, {rule}", scores)
        for (layer, rule), scores in together.items()
    ]
    rows += baselines.items()
    own = [
        [name, *(shown(column, scores.get(column)) for column in COLUMNS)] for name, scores in rows
    ]
    published = [
        [
            f"published: {name}",
            *(f"{n:.1f}" for n in numbers),
            *[""] * (len(COLUMNS) - len(numbers)),
        ]
        for name, numbers in PUBLISHED.items()
    ]
    return own + published


def write_files(output, rows, scores, options, sentences):
    combined, together, baselines = scores
    write_csv(output / "scores.csv", [HEADER, *rows])
    write_json(
        output / "results.json",
        {
            "models": options.models or ["the package's"],
            "sentences": len(sentences),
            "scores": [
                {"layer": layer, "gate": gate, "method": method, **scores}
                for (layer, gate, method), scores in combined.items()
            ],
            "together": [
                {"layer": layer, "rule": rule, **scores}
                for (layer, rule), scores in together.items()
            ],
            "baselines": baselines,
        },
    )


def write_pictures(output, sentences, parsers, measured, count):
    """Writes the report and some pictures, with trees of one parser or votes of several."""
    parser = parsers[0]
    alone = len(parsers) == 1
    gates = tuple(measured[0]) if not alone or parser.gate == "both" else (parser.gate,)
    layers = [distances_of[gate] for gate in gates for distances_of in measured]
    distances = [np.concatenate(rows) for rows in zip(*layers, strict=True)]
    make, rows = (parser.tree, parser.rows) if alone else (vote, slice(None))
    rule = f"layer {parser.layer}, {parser.method}" if alone and parser.layer else "votes"
    trees = [make(d, s.tokens) for d, s in zip(distances, sentences, strict=True)]
    shown = [numbers[rows].mean(axis=0) for numbers in distances]
    golds = [sentence.tree for sentence in sentences]
    title = f"Unsupervised parsing, {rule}"
    write_report(output / "report.html", trees, golds, shown, title)
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
            save_picture(path, trees[index], golds[index], shown[index], f"F1 {f1:.1f}")


def main(options):
    check_new(options.output)
    parsers = [Parser.load(model) for model in options.models or [None]]
    sentences = load_sentences(options)
    words = sum(len(sentence.tokens) for sentence in sentences)
    info(f"{len(sentences):,} sentences, {words:,} words")
    with running(options.output, vars(options)):
        measured = [one for parser in parsers for one in measured_distances(parser, sentences)]
        combined, baselines = model_scores(measured, sentences), baseline_scores(sentences)
        together = ensemble_scores(measured, sentences) if len(measured) > 1 else {}
        rows = rows_of(combined, together, len(measured), baselines)
        output = Path(options.output)
        write_files(output, rows, (combined, together, baselines), options, sentences)
        write_pictures(output, sentences, parsers, measured, options.pictures)
    info("\nPercent; published figures are of the full treebank\n")
    info(table(HEADER, rows))
    info(f"\nReport: {output / 'report.html'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
