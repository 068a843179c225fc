"""Logical inference with ON-LSTM (Shen et al. 2019, Sec. 5.4; data of Bowman et al. 2015).

Given two bracketed formulas of propositional logic, a model says which of seven relations holds
between them. It is trained on formulas of at most six operators and tested on up to twelve: what it
gets right there, it got from structure.

    python examples/logic_inference.py                                  # train, then test
    python examples/logic_inference.py --data DIR --preset paper        # the published experiment
    python examples/logic_inference.py --output runs/logic --resume     # go on after a stop
    python examples/logic_inference.py --evaluate runs/logic            # test a trained run
    python examples/logic_inference.py --evaluate runs/logic --pair "( a ( and b ) )" "a"
"""

import math
from pathlib import Path

import numpy as np
from _common import info, new_plot, save_plot

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.loading import load_trained
from keras_onlstm.training import Setting
from keras_onlstm.training.runs import Experiment, has_begun, running
from keras_onlstm.utils.console import report, table
from keras_onlstm.utils.files import write_json
from keras_onlstm.utils.reading import SEEDS, Choice, Integer, Number

# Keras takes seconds to import. So the functions that need it do that, and --help answers at once.

SETTINGS = {
    "units": Setting(Integer(1), "size of the recurrent and of the hidden layer"),
    "embedding_dim": Setting(Integer(1), "size of word vectors"),
    "chunk_size": Setting(Integer(1), "units that share a value of the master gates"),
    "dropout": Setting(Number(0.0, 1.0), "share of what is dropped"),
    "epochs": Setting(Integer(1), "epochs; more help"),
    "batch_size": Setting(Integer(1), "pairs in a batch"),
    "learning_rate": Setting(Number(0.0), "learning rate, along a cosine the highest"),
    "schedule": Setting(Choice(("plateau", "cosine")), "plateau: halved after 2 epochs without a "
                        "better validation (the published recipe); cosine: falls to 0"),
    "pairs": Setting(Integer(1), "how many to draw without --data; of 500,000 some 250,000 differ, "
                     "as many as were published"),
}  # fmt: skip
PRESETS = {
    "smoke": {  # shows in seconds that everything works
        "units": 20, "embedding_dim": 16, "chunk_size": 5, "dropout": 0.0, "epochs": 1,
        "batch_size": 64, "learning_rate": 5e-3, "schedule": "cosine", "pairs": 3_000,
    },
    "demo": {  # a useful accuracy in minutes
        "units": 120, "embedding_dim": 32, "chunk_size": 10, "dropout": 0.0, "epochs": 8,
        "batch_size": 128, "learning_rate": 3e-3, "schedule": "cosine", "pairs": 200_000,
    },
    "default": {  # a quarter of an hour on two cores
        "units": 200, "embedding_dim": 64, "chunk_size": 10, "dropout": 0.0, "epochs": 6,
        "batch_size": 128, "learning_rate": 2e-3, "schedule": "cosine", "pairs": 500_000,
    },
    "paper": {  # the published recipe
        "units": 400, "embedding_dim": 128, "chunk_size": 10, "dropout": 0.2, "epochs": 50,
        "batch_size": 128, "learning_rate": 1e-3, "schedule": "plateau", "pairs": 500_000,
    },
}  # fmt: skip

MAX_TRAIN_OPERATORS = 6
# Accuracy in percent by number of operators, as later papers cite it; Shen et al. 2019 have a plot,
# Figure 2.
PUBLISHED = {
    "onlstm": {7: 91, 8: 87, 9: 85, 10: 81, 11: 78, 12: 75},
    "lstm": {7: 88, 8: 84, 9: 80, 10: 78, 11: 71, 12: 69},
}
NAMES = {"onlstm": "ON-LSTM", "lstm": "LSTM"}
EXPERIMENT = Experiment(
    "examples/logic_inference.py",
    kinds={  # of the arguments that a run keeps
        "preset": Choice(tuple(PRESETS)),
        "recurrent": Choice(tuple(NAMES)),
        "data": (str, None),
        "seed": SEEDS,
    },
    defaults={"preset": "default", "recurrent": "onlstm", "data": None, "seed": 0},
    settings=SETTINGS,
    presets=PRESETS,
)
WORDS = {
    "=": "the two are equivalent",
    "<": "the left one entails the right one",
    ">": "the right one entails the left one",
    "^": "exactly one of the two is true",
    "|": "at most one of the two is true",
    "v": "at least one of the two is true",
    "#": "neither says anything about the other",
}


def parse_arguments():
    description = "Logical inference with ON-LSTM."
    parser = EXPERIMENT.parser(description, "runs/logic_inference")
    add = parser.add_argument
    add("--recurrent", choices=NAMES, help="the recurrent layer (default: onlstm)")
    add("--data", metavar="DIR", help="directory of the published files; default: drawn pairs")
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: test these trained runs")
    add("--pair", metavar=("LEFT", "RIGHT"), nargs=2, help="do not train: classify a pair")
    return parser, parser.parse_args()


def load_corpus(configuration):
    arguments, values = configuration.arguments, configuration.values
    if arguments["data"]:
        info(f"Reading {arguments['data']}")
        return logic.load(arguments["data"])
    info(f"Drawing {values['pairs']:,} pairs (--data DIR reads the published ones)")
    return logic.generate(values["pairs"], seed=0)


def batches_of(pairs, batch_size, shuffle=False, seed=0):
    import keras

    from keras_onlstm.training import PairBatches

    # Lengths of formulas are 1 + 3 k. JAX compiles for every shape, so it gets fewer of them.
    multiple = 12 if keras.backend.backend() == "jax" else 3
    return PairBatches(
        [logic.encode(pair.left) for pair in pairs],
        [logic.encode(pair.right) for pair in pairs],
        [logic.LABELS.index(pair.label) for pair in pairs],
        batch_size,
        multiple=multiple,
        shuffle=shuffle,
        seed=seed,
    )


def count_correct(model, batches):
    correct = 0
    for index in range(len(batches)):
        inputs, classes = batches[index]
        correct += int((model.predict_on_batch(inputs).argmax(-1) == classes).sum())
    return correct


def make_model(configuration, steps_per_epoch):
    import keras

    from keras_onlstm.models import PairClassifier

    arguments, values = configuration.arguments, configuration.values
    keras.utils.set_random_seed(arguments["seed"])
    model = PairClassifier(
        vocabulary_size=len(logic.TOKENS) + 1,
        classes=len(logic.LABELS),
        embedding_dim=values["embedding_dim"],
        units=values["units"],
        chunk_size=values["chunk_size"],
        recurrent=arguments["recurrent"],
        dropout=values["dropout"],
        seed=arguments["seed"],
    )
    rate, callbacks = values["learning_rate"], []
    if values["schedule"] == "cosine":
        steps = steps_per_epoch * values["epochs"]
        rate = keras.optimizers.schedules.CosineDecay(
            rate / 10, steps, warmup_target=rate, warmup_steps=math.ceil(steps / 20)
        )
    else:
        callbacks = [
            keras.callbacks.ReduceLROnPlateau(
                "val_accuracy", mode="max", factor=0.5, patience=2, min_delta=0.0
            )
        ]
    model.compile(
        keras.optimizers.Adam(rate, epsilon=1e-9, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model, callbacks


def train(output, configuration, resume):
    from keras_onlstm.training import Trainer

    arguments, values = configuration.arguments, configuration.values
    corpus = load_corpus(configuration)
    training, validation = corpus.split(MAX_TRAIN_OPERATORS)
    if not validation:
        raise ValueError(
            f"{arguments['data'] or 'the pairs drawn'}: train0 to train{MAX_TRAIN_OPERATORS} hold "
            f"{len(training)} pairs, and it takes 10 to train and to validate. Add some."
        )
    batches = batches_of(training, values["batch_size"], shuffle=True, seed=arguments["seed"])
    checks = batches_of(validation, 512)
    model, callbacks = make_model(configuration, len(batches))
    (left, right), classes = batches[0]
    model((left[:1], right[:1]))  # builds the variables, which a checkpoint needs
    model.optimizer.build(model.trainable_variables)
    model.evaluate((left[:1], right[:1]), classes[:1], verbose=0)  # builds the metrics
    trainer = Trainer(
        model,
        batches,
        lambda: {"val_accuracy": count_correct(model, checks) / len(validation)},
        output,
        epochs=values["epochs"],
        monitor="val_accuracy",
        callbacks=callbacks,
        record=configuration.record,
        unit="pairs",
    )
    with running(output, configuration, resume):
        if resume and has_begun(output):
            trainer.resume()
        info(
            f"{NAMES[arguments['recurrent']]}, {model.count_params():,} parameters, "
            f"{len(training):,} training and {len(validation):,} validation pairs, "
            f"{batches.padding_share():.1%} padding"
        )
        trainer.run()
    return corpus


def evaluate(runs, corpus=None):
    results = {}
    # Whatever is wrong with a run comes out before the first one is tested.
    loaded = {run: (EXPERIMENT.stored(run), load_trained(run, "classifier")) for run in runs}
    for run, (configuration, model) in loaded.items():
        arguments = configuration.arguments
        test = (corpus or load_corpus(configuration)).test
        accuracy = {}
        for operators, pairs in sorted(test.items()):
            if pairs:
                correct = count_correct(model, batches_of(pairs, 512))
                accuracy[operators] = {"pairs": len(pairs), "accuracy": correct / len(pairs)}
        results[run] = {"recurrent": arguments["recurrent"], "by_operators": accuracy}
        write_json(Path(run) / "results.json", {**results[run], "arguments": arguments})
    print_results(results)
    plot_results(results)


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
    info("\nAccuracy in percent; published: Shen et al. 2019, as cited later\n")
    info(table([*header, *(f"published {name}" for name in NAMES.values())], rows))


def plot_results(results):
    plot = new_plot()
    if plot is None:
        return
    figure, axes = plot
    for run, result in results.items():
        points = result["by_operators"].items()
        label = f"{NAMES[result['recurrent']]}, {Path(run).name}"
        axes.plot(
            [n for n, _ in points], [100 * p["accuracy"] for _, p in points], "o-", label=label
        )
    for name, points in PUBLISHED.items():
        axes.plot(points.keys(), points.values(), "x--", label=f"{NAMES[name]}, published")
    axes.axvspan(-0.5, MAX_TRAIN_OPERATORS + 0.5, color="0.93", label="seen in training")
    axes.set(xlabel="operators in the longer formula", ylabel="accuracy, %", xlim=(-0.5, 12.5))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    save_plot(figure, results, "accuracy")


def classify(run, left, right):
    truth = logic.relation(left, right)  # also checks the formulas
    model = load_trained(run, "classifier")
    ids = tuple(np.array([logic.encode(formula)], "int32") for formula in (left, right))
    logits = model.predict_on_batch(ids)[0]
    probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    for index in np.argsort(-probabilities):
        label = logic.LABELS[index]
        mark = "  <- truth table" if label == truth else ""
        info(f"{probabilities[index]:7.2%}  {left}  {label}  {right}: {WORDS[label]}{mark}")


def main(options):
    if options.pair:
        classify((options.evaluate or [options.output])[0], *options.pair)
        return
    if options.evaluate:
        evaluate(options.evaluate)
        return
    configuration = EXPERIMENT.configuration(options)
    corpus = train(options.output, configuration, options.resume)
    evaluate([options.output], corpus)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
