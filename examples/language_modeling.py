"""Language modelling with ON-LSTM (Shen et al. 2019, Sec. 5.1) and the AWD-LSTM recipe, or PRPN.

Trains a word language model on a corpus and measures its perplexity. The corpus is a folder with
train.txt, valid.txt and test.txt, or with ptb.train.txt, ptb.valid.txt and ptb.test.txt.

    python examples/language_modeling.py --data ptb                     # two hours on one core
    python examples/language_modeling.py --data ptb --preset paper      # the published recipe
    python examples/language_modeling.py --data ptb --model prpn        # Shen et al. 2018
    python examples/language_modeling.py --output runs/lm --resume      # resume a stopped run
    srun -N 4 python examples/language_modeling.py --data ptb --num-processes 4 --devices 8
    python examples/language_modeling.py --evaluate runs/lm             # test a trained run

`keras-onlstm train` and `keras-onlstm evaluate` do the same. Use the trained model with
`keras-onlstm generate`, `score`, `parse`, `compact` and `export`: pass `--model runs/lm`.
"""

import itertools
import math
from pathlib import Path

from _common import info

from keras_onlstm.command_line import train
from keras_onlstm.command_line.evaluate import load_config, perplexities
from keras_onlstm.evaluation.boundaries import peaks
from keras_onlstm.loading import load_trained
from keras_onlstm.text import corpus
from keras_onlstm.utils.console import ArgumentParser, report, table

# Validation and test perplexity on the Penn Treebank, and the source.
PUBLISHED = {
    "ON-LSTM, 25 million, 1000 epochs (Shen et al. 2019)": (58.29, 56.17),
    "AWD-LSTM, 24 million (Merity et al. 2018)": (60.0, 57.3),
    "PRPN (Shen et al. 2018)": (None, 61.98),
}


def parse_arguments():
    description = "Train and evaluate language models: ON-LSTM, LSTM or PRPN."
    parser = ArgumentParser(prog="language_modeling.py", description=description)
    train.add_arguments(parser, output="runs/language_modeling")
    parser.add_argument(
        "--evaluate", metavar="RUN", nargs="+", help="Evaluate these trained runs. Does not train."
    )
    return parser, parser.parse_args()


def evaluate(runs, data=None):
    results = perplexities(runs, data)
    rows = [
        [
            f"{result['model']}, {result['parameters']:,} parameters, {run}",
            f"{result['validation_perplexity']:.2f}",
            f"{result['test_perplexity']:.2f}",
        ]
        for run, result in results.items()
    ]
    configs = {run: load_config(run) for run in results}
    if any(is_penn_treebank(data or config.data) for config in configs.values()):
        for name, numbers in PUBLISHED.items():
            cells = ("" if number is None else f"{number:.2f}" for number in numbers)
            rows.append([f"published: {name}", *cells])
    info("\nPerplexity\n")
    info(table(["", "validation", "test"], rows))
    for run, config in configs.items():
        if config.characters:
            evaluate_characters(run, data or config.data, results[run])


def is_penn_treebank(data):
    """Whether a corpus has the file names of the Penn Treebank."""
    return len(data or ()) == 1 and Path(data[0], "ptb.test.txt").is_file()


def evaluate_characters(run, data, result):
    """Prints bits per character, and how often distances peak at the ends of words."""
    bits = [result[f"{part}_loss"] / math.log(2) for part in ("validation", "test")]
    info(
        f"\n{run}: {bits[0]:.3f} bits per character on validation data, {bits[1]:.3f} on test data"
    )
    if is_penn_treebank(data):
        info("Published for PRPN: 1.202 bits per character on test data")
    model = load_trained(run, "language_model")
    if not model.gates or len(data) != 1 or not Path(data[0]).is_dir():
        return
    lines = corpus.sentences(corpus.find(data[0], "test"), "character")
    texts = list(itertools.islice((line for line in lines if len(line) > 2), 500))
    layer = (model.default_layer or 1) - 1
    rates = peaks(texts, [distances[layer] for distances in model.distances(texts)])
    info(
        f"Distances that are larger than both neighbours: {rates.before_blanks:.1%} before blanks, "
        f"{rates.before_others:.1%} before other characters"
    )


def main(options):
    if options.evaluate:
        evaluate(options.evaluate, options.data)
    elif train.train(train.read_config(options), options):
        evaluate([options.output])


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
