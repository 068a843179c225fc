"""Language modelling with ON-LSTM (Shen et al. 2019, Sec. 5.1) and the AWD-LSTM recipe, or PRPN.

Trains a word model on a corpus and measures its perplexity. The corpus is a folder of train.txt,
valid.txt and test.txt, or of the Penn Treebank's ptb.train.txt and so on.

    python examples/language_modeling.py --data ptb                     # two hours on two cores
    python examples/language_modeling.py --data ptb --preset paper      # the published recipe
    python examples/language_modeling.py --data ptb --model prpn        # Shen et al. 2018
    python examples/language_modeling.py --output runs/lm --resume      # resume after a stop
    srun -N 4 python examples/language_modeling.py --data ptb --num-processes 4 --devices 8
    python examples/language_modeling.py --evaluate runs/lm             # test a trained run

`keras-onlstm train` and `evaluate` do the same. `generate`, `score`, `parse`, `compact` and
`export` use the model: `--model runs/lm`.
"""

import itertools
import math

from _common import info

from keras_onlstm.command_line import train
from keras_onlstm.command_line.evaluate import load_config, perplexities
from keras_onlstm.evaluation.boundaries import peaks
from keras_onlstm.loading import load_trained
from keras_onlstm.text import corpus
from keras_onlstm.utils.console import ArgumentParser, report, table

# Keras takes seconds to import: only functions that need it do, so --help is fast.

# Validation and test perplexity on the Penn Treebank, and the source.
PUBLISHED = {
    "ON-LSTM, 25 million, 1000 epochs (Shen et al. 2019)": (58.29, 56.17),
    "AWD-LSTM, 24 million (Merity et al. 2018)": (60.0, 57.3),
    "PRPN (Shen et al. 2018)": (None, 61.98),
}


def parse_arguments():
    about = "Language modelling with ON-LSTM, or with PRPN."
    parser = ArgumentParser(prog="language_modeling.py", description=about)
    train.add_arguments(parser, output="runs/language_modeling")
    parser.add_argument(
        "--evaluate", metavar="RUN", nargs="+", help="do not train: test these trained runs"
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
    rows += [
        [f"published: {name}", *("" if number is None else f"{number:.2f}" for number in numbers)]
        for name, numbers in PUBLISHED.items()
    ]
    info("\nPerplexity; those published are of the Penn Treebank\n")
    info(table(["", "validation", "test"], rows))
    for run, result in results.items():
        config = load_config(run)
        if config.characters:
            evaluate_characters(run, data or config.data, result)


def evaluate_characters(run, data, result):
    """Prints bits per character, and whether distances peak at the ends of words."""
    bits = [result[f"{part}_loss"] / math.log(2) for part in ("validation", "test")]
    info(f"\n{run}: {bits[0]:.3f} and {bits[1]:.3f} bits per character; published: 1.202 (PRPN)")
    model = load_trained(run, "language_model")
    if not model.gates or len(data) != 1:
        return
    lines = corpus.sentences(corpus.find(data[0], "test"), "character")
    texts = list(itertools.islice((line for line in lines if len(line) > 2), 500))
    row = (model.default_layer or 1) - 1
    found = peaks(texts, [rows[row] for rows in model.distances(texts)])
    info(
        f"Distances above both neighbours: {found.before_blanks:.1%} of those before blanks, "
        f"{found.before_others:.1%} of those before other characters"
    )


def main(options):
    if options.evaluate:
        evaluate(options.evaluate, options.data)
    elif train.train(train.read_config(options), options):
        evaluate([options.output])


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
