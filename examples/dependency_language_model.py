"""Language modelling along dependency trees with TreeLSTM and LdTreeLSTM (Zhang et al. 2016).

Trains a model that predicts each word of a sentence from its path in the dependency tree, on NLTK's
dependency treebank or on three CoNLL files, and measures its perplexity. Where every word depends
on the one before, --trees chain, it is a sequential LSTM: the baseline. --trees sentence adds the
end of the sentence, and so has P(sentence); --trees bidirectional predicts a word from all others.

    python examples/dependency_language_model.py                        # minutes on a core
    python examples/dependency_language_model.py --left-dependents --output runs/ld
    python examples/dependency_language_model.py --trees chain --output runs/chain
    python examples/dependency_language_model.py --trees sentence --output runs/sentences
    python examples/dependency_language_model.py --data train.conllu dev.conllu test.conllu
    python examples/dependency_language_model.py --evaluate runs/ld runs/chain
    python examples/dependency_language_model.py --output runs/ld --score trees.conllu
    python examples/dependency_language_model.py --output runs/ld --generate 100

What is measured is P(words | tree): such a model is told the tree, a sequential one is not.
--generate trains the classifiers that decide where a tree grows, and so has P(words, tree) too,
which is to be compared with P(sentence).
"""

import collections
import math
import random
from pathlib import Path

import numpy as np
from _common import info, new_plot, read_epochs, save_plot_of_epochs

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import (
    DependencyTree,
    Edge,
    KneserNey,
    dependency_contexts,
    page,
    random_tree,
    word_contexts,
)
from keras_onlstm.loading import load_trained
from keras_onlstm.training.runs import RESULTS, Experiment
from keras_onlstm.training.tree_corpora import (
    NLTK,
    SEQUENTIAL,
    SHAPES,
    TREE_SETTINGS,
    TREE_VALUES,
    TreeCorpus,
    normalized,
    read_trees,
    reshaped,
    vocabulary_of,
)
from keras_onlstm.utils.console import report, table
from keras_onlstm.utils.files import replacing, write_json
from keras_onlstm.utils.reading import SEEDS, Choice

# Keras takes seconds to import. So the functions that need it do that, and --help answers at once.

# `TREE_SETTINGS` says what each value means, and so does --help.
PRESETS = {
    "smoke": {  # shows in seconds that everything works
        "embedding_dim": 8, "units": 16, "left_layers": 1, "input_dropout": 0.1,
        "output_dropout": 0.1, "epochs": 2, "batch_size": 16, "learning_rate": 1e-2,
    },
    "small": {  # minutes on a core
        "embedding_dim": 100, "units": 200, "input_dropout": 0.4, "output_dropout": 0.5,
        "epochs": 12, "batch_size": 32, "learning_rate": 8e-3,
    },
    "paper": {  # the published recipe, as of the parsing experiments
        "embedding_dim": 100, "units": 200, "num_layers": 2, "output_dropout": 0.2, "epochs": 50,
        "batch_size": 64, "optimizer": "sgd", "learning_rate": 1.0, "schedule": "plateau",
        "normalize": False,
    },
}  # fmt: skip
PRESETS = {name: {**TREE_VALUES, **values} for name, values in PRESETS.items()}
EXPERIMENT = Experiment(
    "examples/dependency_language_model.py",
    kinds={  # of the arguments that a run keeps
        "preset": Choice(tuple(PRESETS)),
        "data": (Choice((NLTK,)), [str], None),
        "trees": Choice(SHAPES),
        "left_dependents": bool,
        "vectors": (str, None),
        "seed": SEEDS,
    },
    defaults={
        "preset": "small",
        "data": None,
        "trees": "dependencies",
        "left_dependents": False,
        "vectors": None,
        "seed": 0,
    },
    settings=TREE_SETTINGS,
    presets=PRESETS,
)
PARTS = ("validation", "test")
NOTES = {"random": ", random trees", "sentence": ", sentences with their ends"}  # in tables
LENGTHS = ((1, 2), (3, 4), (5, 8), (9, 16), (17, 9999))  # of paths, from the first to the last


def parse_arguments():
    description = "Language models over dependency trees: TreeLSTM and LdTreeLSTM."
    parser = EXPERIMENT.parser(description, "runs/dependency_language_model")
    add = parser.add_argument
    add(
        "--data",
        nargs="+",
        metavar="FILE",
        help=f"CoNLL files of training, validation and test, or {NLTK} (default), its dependency "
        "treebank; smoke has trees of its own",
    )
    add(
        "--trees",
        choices=SHAPES,
        help="as they are, or the same words as something else: one after the other, so with an "
        "end, from both ends, in trees drawn at random (default: as they are)",
    )
    add(
        "--left-dependents",
        action="store_true",
        default=None,
        help="LdTreeLSTM: read the left dependents of a word before its right ones",
    )
    add("--vectors", metavar="FILE", help="word vectors to begin with, as GloVe's, in text")
    add("--steps", type=int, metavar="N", help="stop after N batches; --resume goes on")
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: test these trained runs")
    add("--score", metavar="CONLL", help="do not train: score these trees by the run in --output")
    add(
        "--generate",
        type=int,
        metavar="N",
        help="do not train the model: draw N sentences with their trees by the run in --output",
    )
    options = parser.parse_args()
    parser.check_least(options, steps=1, generate=1)
    if options.data == [NLTK]:
        options.data = NLTK
    return parser, options


def drawn_trees(arguments, values):
    """Trees that need no file: a word says how deep it stands, and on which side."""
    generator = random.Random(0)
    parts = []
    for count in (120, 30, 30):
        trees = []
        for number in range(count):
            shape = random_tree(["word"] * generator.randint(1, 12), generator.randrange(10**6))
            depths = [len(path) for path in shape.paths()]
            sides = [
                "left" if head > place else "right" for place, head in enumerate(shape.heads, 1)
            ]
            words = [f"{s}-{'abcd'[d % 4]}" for s, d in zip(sides, depths, strict=True)]
            trees.append(reshaped(DependencyTree(words, shape.heads), arguments["trees"], number))
        parts.append(trees)
    vocabulary = vocabulary_of(parts[0], values, arguments["trees"])
    return TreeCorpus(vocabulary, *parts, skipped=dict.fromkeys(("train", "validation", "test"), 0))


def load_trees(configuration, vocabulary=None):
    """The trees of a run, as it was started."""
    arguments, values = configuration.arguments, configuration.values
    data = arguments["data"]
    if data is None and arguments["preset"] == "smoke":
        return drawn_trees(arguments, values)
    corpus = read_trees(data or NLTK, values, arguments["trees"], vocabulary)
    for part, count in corpus.skipped.items():
        if count:
            info(f"{part}: {count:,} sentences left out, which are no projective trees")
    return corpus


def train(options, configuration):
    from keras_onlstm.training.tree_models import train_tree_model

    corpus = load_trees(configuration)
    return train_tree_model(options.output, configuration, corpus, options.resume, options.steps)


def described(scores, trees):
    """Perplexities of scored trees: of all words, by edge, and by the length of the path."""
    by_edge, by_length = collections.defaultdict(list), collections.defaultdict(list)
    for row, tree in zip(scores, trees, strict=True):
        for score, path in zip(row.tolist(), tree.paths(), strict=True):
            by_edge[str(path[-1][1])].append(score)
            span = next(span for span in LENGTHS if span[0] <= len(path) <= span[1])
            by_length[_words_of(span)].append(score)
    return {
        "sentences": len(trees),
        "words": sum(map(len, trees)),
        "perplexity": perplexity(np.concatenate(scores)),
        "log_probability": float(sum(row.sum(dtype=float) for row in scores)),
        "edges": {str(edge): perplexity(by_edge[str(edge)]) for edge in Edge},
        "path_lengths": {_words_of(s): perplexity(by_length[_words_of(s)]) for s in LENGTHS},
    }


def _words_of(span):
    return f"{span[0]} to {span[1]}" if span != LENGTHS[-1] else f"{span[0]} and more"


def perplexity(scores):
    return math.exp(-np.mean(scores)) if len(scores) else None


def counted(corpus):
    """Perplexities of Kneser-Ney models, of words and of the ends of paths: rows."""
    kinds = (("words", word_contexts, (1, 2, 3)), ("dependencies", dependency_contexts, (2, 3)))
    rows = []
    for name, contexts, orders in kinds:
        for order in orders:
            model = KneserNey(corpus.train, corpus.vocabulary, order, contexts)
            shown = (number(model.perplexity(t)) for t in (corpus.validation, corpus.test))
            rows.append([f"Kneser-Ney, {order}-grams of {name}", *shown])
    return rows


def evaluate(runs):
    results, references = {}, {}
    loaded = {
        run: (EXPERIMENT.stored(run), load_trained(run, "tree_language_model")) for run in runs
    }
    for run, (configuration, model) in loaded.items():
        corpus = load_trees(configuration, model.vocabulary)
        parts = {part: getattr(corpus, part) for part in PARTS}
        found = {part: described(model.score(trees), trees) for part, trees in parts.items()}
        results[run] = {
            "model": model.title,
            "trees": configuration.arguments["trees"],
            "parameters": model.count_params(),
            **{f"{part}_perplexity": found[part]["perplexity"] for part in parts},
            **{part: found[part] for part in parts},
        }
        write_json(Path(run) / RESULTS, {**results[run], "arguments": configuration.arguments})
        if configuration.arguments["trees"] == "dependencies":
            key = str(configuration.arguments["data"]), *corpus.vocabulary
            references[key] = corpus
    # Where all runs saw the same words they are compared with what counting them gives.
    show(results, counted(*references.values()) if len(references) == 1 else [])
    plot_results(results)


def nats_a_word(found):
    """log P of sentences by their words; their ends are no words."""
    return found["log_probability"] / (found["words"] - found["sentences"])


def number(value):
    return "" if value is None else f"{value:.2f}"


def show(results, references):
    rows = []
    for run, result in results.items():
        name = result["model"] + NOTES.get(result["trees"], "")
        shown = (number(result[f"{part}_perplexity"]) for part in PARTS)
        rows.append([f"{name}, {result['parameters']:,} parameters, {run}", *shown])
    rows += means(results) + references
    info(
        "\nPerplexity of a word, given its tree; of an LSTM given the words before alone, of a "
        "bidirectional one those after too\n"
    )
    info(table(["", *PARTS], rows))
    rows = [
        [f"{result['model']}, {run}", *(f"{nats_a_word(result[part]):.3f}" for part in PARTS)]
        for run, result in results.items()
        if result["trees"] == "sentence"
    ]
    if rows:
        info("\nlog P(sentence), its end included, in nats a word\n")
        info(table(["", *PARTS], rows))
    for what, key in (("edge by which a word follows", "edges"), ("path", "path_lengths")):
        names = list(next(iter(results.values()))["test"][key])
        rows = [
            [f"{result['model']}, {run}", *(number(result["test"][key][name]) for name in names)]
            for run, result in results.items()
        ]
        info(f"\nTest, by the {what}\n")
        info(table(["", *names], rows))


def means(results):
    """Rows of mean and standard deviation of runs that differ in their seed alone."""
    groups = collections.defaultdict(list)
    for result in results.values():
        groups[result["model"], result["trees"], result["parameters"]].append(result)
    rows = []
    for (model, trees, parameters), group in groups.items():
        if len(group) > 1:
            cells = []
            for part in PARTS:
                values = [result[f"{part}_perplexity"] for result in group]
                cells.append(f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}")
            name = f"{model}, {trees}, {parameters:,} parameters: mean of {len(group)}"
            rows.append([name, *cells])
    return rows


def plot_results(results):
    plot = new_plot()
    if plot is None:
        return
    figure, axes = plot
    for run, result in results.items():
        history = read_epochs(run, "val_perplexity")
        axes.plot(
            [row["epoch"] for row in history],
            [row["val_perplexity"] for row in history],
            "o-",
            label=f"{result['model']}, {Path(run).name}",
        )
    save_plot_of_epochs(figure, axes, results, "validation perplexity")


def score(run, path):
    """Prints log P(words | tree) of the trees of a file."""
    configuration = EXPERIMENT.stored(run)
    model = load_trained(run, "tree_language_model")
    reader = conll.read(path)
    trees = [prepared(tree, configuration) for tree in reader]
    if not trees:
        raise ValueError(f"{path}: has no tree.")
    rows = [
        [" ".join(tree.words)[:60], len(tree), f"{row.sum():.3f}", f"{math.exp(-row.mean()):.2f}"]
        for tree, row in zip(trees, model.score(trees), strict=True)
    ]
    info(table(["", "words", "log P (nats)", "perplexity"], rows))


def prepared(tree, configuration):
    tree = normalized(tree) if configuration.values["normalize"] else tree
    return reshaped(tree, configuration.arguments["trees"])


def generate(run, count):
    """Draws sentences with their trees, and writes them as a page."""
    from keras_onlstm.training.tree_generation import generate_trees

    configuration = EXPERIMENT.stored(run)
    model = load_trained(run, "tree_language_model")
    if configuration.arguments["trees"] in SEQUENTIAL:
        raise ValueError(f"{run}: its model is sequential. Name a run of trees with --output.")
    corpus = load_trees(configuration, model.vocabulary)
    info("Training the four classifiers that say where a tree grows")
    seed = configuration.arguments["seed"]
    found = generate_trees(model, corpus.train, corpus.validation, count, seed)
    info("\nAccuracy of their decisions on the validation trees\n")
    info(table(found.accuracy_header, found.accuracies))
    info("\nTrees: mean (a tenth, half and nine tenths are at most; the largest)\n")
    info(table(found.statistics_header, found.statistics))
    words = sum(map(len, corpus.test))
    joint = found.generator.log_probability(corpus.test).sum() / words
    alone = model.log_probability(corpus.test).sum() / words
    info(f"\nTest, nats a word: log P(words, tree) {joint:.3f}, log P(words | tree) {alone:.3f}")
    path = Path(run) / "generated.html"
    trees = [sample.tree for sample in found.samples]
    with replacing(path) as temporary:
        temporary.write_text(
            page(trees, title="Generated trees", captions=found.captions), encoding="utf-8"
        )
    info(f"\nThe trees: {path}")


def main(options):
    if options.generate:
        return generate(options.output, options.generate)
    if options.evaluate:
        return evaluate(options.evaluate)
    if options.score:
        return score(options.output, options.score)
    configuration = EXPERIMENT.configuration(options)
    if train(options, configuration):
        evaluate([options.output])
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
