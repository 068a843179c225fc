"""Logical inference with ON-LSTM (Shen et al. 2019, Sec. 5.4; data of Bowman et al. 2015).

Given two bracketed formulas of propositional logic, a model predicts which of seven relations holds
between them. It is trained on formulas with up to six operators and tested on formulas with up to
twelve, for which it has to use their structure.

    python examples/logic_inference.py                                  # train, then test
    python examples/logic_inference.py --data DIR --preset paper        # the published experiment
    python examples/logic_inference.py --output runs/logic --resume     # resume a stopped run
    python examples/logic_inference.py --evaluate runs/logic            # test a trained run
    python examples/logic_inference.py --evaluate runs/logic --pair "( a ( and b ) )" "a"
"""

from pathlib import Path

import numpy as np
from _common import info

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.config import run_parser
from keras_onlstm.runs.language_model import NAMES
from keras_onlstm.runs.pair_classifier import PairClassifierConfig
from keras_onlstm.utils.console import report, table
from keras_onlstm.utils.files import write_json

MAX_TRAIN_OPERATORS = 6
# Accuracy in percent by number of operators. Shen et al. 2019 show only a plot (Figure 2); these
# numbers were cited by later papers.
PUBLISHED = {
    "onlstm": {7: 91, 8: 87, 9: 85, 10: 81, 11: 78, 12: 75},
    "lstm": {7: 88, 8: 84, 9: 80, 10: 78, 11: 71, 12: 69},
}
MEANINGS = {
    "=": "the two are equivalent",
    "<": "the left one entails the right one",
    ">": "the right one entails the left one",
    "^": "exactly one of the two is true",
    "|": "at most one of the two is true",
    "v": "at least one of the two is true",
    "#": "the two are independent",
}


def parse_arguments():
    description = "Train and evaluate classifiers of logical relations (ON-LSTM or LSTM)."
    name = "logic_inference"
    parser = run_parser([PairClassifierConfig], f"{name}.py", description, f"runs/{name}")
    # fmt: off
    add = parser.add_argument
    add("--evaluate", metavar="RUN", nargs="+", help="Evaluate these trained runs. Does not train.")
    add("--pair", metavar=("LEFT", "RIGHT"), nargs=2, help="Classify the relation between two "
        "formulas with the run in --evaluate or --output. Does not train.")
    # fmt: on
    return parser, parser.parse_args()


def load_corpus(config):
    if config.data:
        info(f"Reading {config.data}")
        return logic.load(config.data)
    info(f"Drawing {config.pairs:,} pairs (to use the published ones, pass --data DIR)")
    return logic.generate(config.pairs, seed=0)


def train(config, options):
    """Trains a model. Returns the corpus and whether training is complete."""
    from keras_onlstm.training.pair_classifiers import train_pair_classifier

    corpus = load_corpus(config)
    training, validation = corpus.split(MAX_TRAIN_OPERATORS)
    if not validation:
        raise ValueError(
            f"{config.data or 'the pairs drawn'}: train0 to train{MAX_TRAIN_OPERATORS} contain "
            f"{len(training)} pairs, but at least 10 are needed for training and validation."
        )
    resumption = options.resume, options.steps, options.log_every
    return corpus, train_pair_classifier(options.output, config, training, validation, *resumption)


def evaluate(runs, corpus=None):
    from keras_onlstm.training.pair_classifiers import accuracy

    results = {}
    # Load all runs first, so that errors are reported early.
    loaded = {
        run: (PairClassifierConfig.load(run), load_trained(run, "classifier")) for run in runs
    }
    for run, (config, model) in loaded.items():
        by_operators = {
            operators: {"pairs": len(pairs), "accuracy": accuracy(model, pairs)}
            for operators, pairs in sorted((corpus or load_corpus(config)).test.items())
            if pairs
        }
        results[run] = {"recurrent": config.recurrent, "by_operators": by_operators}
        write_json(Path(run) / "results.json", {**results[run], "data": config.data})
    print_results(results)


def print_results(results):
    operators = sorted({n for result in results.values() for n in result["by_operators"]})
    rows = []
    for n in operators:
        cells = [result["by_operators"].get(n) for result in results.values()]
        pairs = next(cell["pairs"] for cell in cells if cell)
        ours = [f"{100 * cell['accuracy']:.1f}" if cell else "" for cell in cells]
        rows.append([n, pairs, *ours, *(PUBLISHED[name].get(n, "") for name in NAMES)])
    header = ["operators", "pairs"]
    header += [f"{NAMES[result['recurrent']]} {Path(run).name}" for run, result in results.items()]
    info("\nAccuracy in percent. Published: Shen et al. 2019, as cited by later papers\n")
    info(table([*header, *(f"published {name}" for name in NAMES.values())], rows))


def classify(run, left, right):
    truth = logic.relation(left, right)  # also checks the formulas
    model = load_trained(run, "classifier")
    ids = tuple(np.array([logic.encode(formula)], "int32") for formula in (left, right))
    logits = model.predict_on_batch(ids)[0]
    probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    for index in np.argsort(-probabilities):
        label = logic.LABELS[index]
        mark = "  <- truth table" if label == truth else ""
        info(f"{probabilities[index]:7.2%}  {left}  {label}  {right}: {MEANINGS[label]}{mark}")


def main(options):
    if options.pair:
        classify((options.evaluate or [options.output])[0], *options.pair)
        return
    if options.evaluate:
        evaluate(options.evaluate)
        return
    config = options.config_class.from_options(options)
    corpus, is_complete = train(config, options)
    if is_complete:
        evaluate([options.output], corpus)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
