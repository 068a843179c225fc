"""Language modelling along dependency trees with TreeLSTM and LdTreeLSTM (Zhang et al. 2016).

Trains a model that predicts each word of a sentence from its path in the dependency tree, and
measures its perplexity. The trees come from NLTK's dependency treebank or from three CoNLL files.
Other values of --trees train baselines. chain: every word depends on the previous one, which makes
a sequential LSTM; sentence: a chain that includes the end of the sentence, so that the model
computes P(sentence); bidirectional: a word is predicted from all others.

    python examples/dependency_language_model.py                        # minutes on a core
    python examples/dependency_language_model.py --left-dependents --output runs/ld
    python examples/dependency_language_model.py --trees chain --output runs/chain
    python examples/dependency_language_model.py --trees sentence --output runs/sentences
    python examples/dependency_language_model.py --data train.conllu dev.conllu test.conllu
    python examples/dependency_language_model.py --evaluate runs/ld runs/chain
    python examples/dependency_language_model.py --output runs/ld --score trees.conllu
    python examples/dependency_language_model.py --output runs/ld --generate 100

The perplexity of a TreeLSTM is based on P(words | tree), so it cannot be compared with that of a
sequential model, which does not see the tree. --generate also trains the four classifiers that
predict the shape of the tree, which gives P(words, tree). Compare that with P(sentence).
"""

import collections
import math
from pathlib import Path

import numpy as np
from _common import info

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import Edge, KneserNey, dependency_contexts, page, word_contexts
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.config import run_parser
from keras_onlstm.runs.directory import RESULTS
from keras_onlstm.runs.tree_lstm import SEQUENTIAL, TreeLSTMConfig
from keras_onlstm.training.corpora import normalize_tree, read_trees, reshape_tree
from keras_onlstm.utils.console import at_least, report, table
from keras_onlstm.utils.files import replacing, write_json

PARTS = ("validation", "test")
NOTES = {"random": ", random trees", "sentence": ", with ends of sentences"}  # in tables
LENGTHS = ((1, 2), (3, 4), (5, 8), (9, 16), (17, 9999))  # ranges of path lengths, ends included


def parse_arguments():
    description = "Train and evaluate language models over dependency trees (TreeLSTM, LdTreeLSTM)."
    name = "dependency_language_model"
    parser = run_parser([TreeLSTMConfig], f"{name}.py", description, f"runs/{name}")
    add = parser.add_argument
    # fmt: off
    add("--evaluate", metavar="RUN", nargs="+", help="Evaluate these trained runs. Does not train.")
    add("--score", metavar="CONLL",
        help="Score the trees in this file with the run in --output. Does not train.")
    add("--generate", type=at_least(1), metavar="N",
        help="Generate N sentences with their trees with the run in --output. Does not train.")
    # fmt: on
    return parser, parser.parse_args()


def load_trees(config, vocabulary=None):
    """Reads the trees of a run."""
    corpus = read_trees(config, vocabulary)
    for part, count in corpus.skipped.items():
        if count:
            info(f"{part}: skipped {count:,} sentences whose trees are not projective")
    return corpus


def train(config, options):
    from keras_onlstm.training.tree_models import train_tree_model

    corpus = load_trees(config)
    return train_tree_model(
        options.output, config, corpus, options.resume, options.steps, options.log_every
    )


def describe(scores, trees):
    """Computes perplexities of scored trees: of all words, by edge, and by length of the path."""
    by_edge, by_length = collections.defaultdict(list), collections.defaultdict(list)
    for row, tree in zip(scores, trees, strict=True):
        for score, path in zip(row.tolist(), tree.paths(), strict=True):
            by_edge[str(path[-1][1])].append(score)
            bounds = next(bounds for bounds in LENGTHS if bounds[0] <= len(path) <= bounds[1])
            by_length[bounds].append(score)
    return {
        "sentences": len(trees),
        "words": sum(map(len, trees)),
        "perplexity": perplexity(np.concatenate(scores)),
        "log_probability": float(sum(row.sum(dtype=float) for row in scores)),
        "edges": {str(edge): perplexity(by_edge[str(edge)]) for edge in Edge},
        "path_lengths": {length_title(bounds): perplexity(by_length[bounds]) for bounds in LENGTHS},
    }


def length_title(bounds):
    first, last = bounds
    return f"{first} and more" if bounds == LENGTHS[-1] else f"{first} to {last}"


def perplexity(scores):
    return math.exp(-np.mean(scores)) if len(scores) else None


def n_gram_rows(corpus):
    """Rows with perplexities of Kneser-Ney n-gram models of words and of dependency paths."""
    kinds = (("words", word_contexts, (1, 2, 3)), ("dependencies", dependency_contexts, (2, 3)))
    rows = []
    for name, contexts, orders in kinds:
        for order in orders:
            model = KneserNey(corpus.train, corpus.vocabulary, order, contexts)
            cells = (number(model.perplexity(t)) for t in (corpus.validation, corpus.test))
            rows.append([f"Kneser-Ney, {order}-grams of {name}", *cells])
    return rows


def evaluate(runs):
    results, corpora = {}, {}
    loaded = {
        run: (TreeLSTMConfig.load(run), load_trained(run, "tree_language_model")) for run in runs
    }
    for run, (config, model) in loaded.items():
        corpus = load_trees(config, model.vocabulary)
        parts = {part: getattr(corpus, part) for part in PARTS}
        scores = {part: describe(model.score(trees), trees) for part, trees in parts.items()}
        results[run] = {
            "model": model.title,
            "trees": config.trees,
            "parameters": model.count_params(),
            **{f"{part}_perplexity": scores[part]["perplexity"] for part in parts},
            **scores,
        }
        write_json(Path(run) / RESULTS, {**results[run], "data": list(config.data)})
        if config.trees == "dependencies":
            corpora[str(config.data), *corpus.vocabulary] = corpus
    # n-gram models can be compared with the runs only if all have the same text and vocabulary.
    print_results(results, n_gram_rows(*corpora.values()) if len(corpora) == 1 else [])


def nats_per_word(scores):
    """log P per word, where the ends of sentences do not count as words."""
    return scores["log_probability"] / (scores["words"] - scores["sentences"])


def number(value):
    return "" if value is None else f"{value:.2f}"


def print_results(results, n_gram_rows):
    rows = []
    for run, result in results.items():
        name = result["model"] + NOTES.get(result["trees"], "")
        cells = (number(result[f"{part}_perplexity"]) for part in PARTS)
        rows.append([f"{name}, {result['parameters']:,} parameters, {run}", *cells])
    rows += means(results) + n_gram_rows
    info(
        "\nPerplexity. TreeLSTMs see the dependency tree, LSTMs the previous words, bidirectional "
        "LSTMs all other words.\n"
    )
    info(table(["", *PARTS], rows))
    rows = [
        [f"{result['model']}, {run}", *(f"{nats_per_word(result[part]):.3f}" for part in PARTS)]
        for run, result in results.items()
        if result["trees"] == "sentence"
    ]
    if rows:
        info("\nlog P(sentence), end of sentence included, in nats per word\n")
        info(table(["", *PARTS], rows))
    for title, key in (("type of edge", "edges"), ("length of path", "path_lengths")):
        names = list(next(iter(results.values()))["test"][key])
        rows = [
            [f"{result['model']}, {run}", *(number(result["test"][key][name]) for name in names)]
            for run, result in results.items()
        ]
        info(f"\nTest perplexity by {title}\n")
        info(table(["", *names], rows))


def means(results):
    """Rows with mean and standard deviation of runs that differ only in their seed."""
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


def score(run, path):
    """Prints log P(words | tree) of the trees in a file."""
    config = TreeLSTMConfig.load(run)
    model = load_trained(run, "tree_language_model")
    reader = conll.read(path)
    trees = [
        reshape_tree(normalize_tree(tree) if config.normalize else tree, config.trees)
        for tree in reader
    ]
    if not trees:
        raise ValueError(f"--score {path}: this file contains no trees.")
    rows = [
        [" ".join(tree.words)[:60], len(tree), f"{row.sum():.3f}", f"{math.exp(-row.mean()):.2f}"]
        for tree, row in zip(trees, model.score(trees), strict=True)
    ]
    info(table(["", "words", "log P (nats)", "perplexity"], rows))


def generate(run, count):
    """Generates sentences with their trees and writes them to an HTML page."""
    from keras_onlstm.models.tree_generator import generate_trees

    config = TreeLSTMConfig.load(run)
    model = load_trained(run, "tree_language_model")
    if config.trees in SEQUENTIAL:
        raise ValueError(
            f"--output {run}: the model of this run is sequential and cannot generate trees. Pass "
            "a run that was trained with --trees dependencies."
        )
    corpus = load_trees(config, model.vocabulary)
    info("Training the four classifiers that predict the shape of a tree")
    generated = generate_trees(model, corpus.train, corpus.validation, count, config.seed)
    info("\nAccuracy of the classifiers on the validation trees\n")
    info(table(generated.accuracy_header, generated.accuracies))
    info("\nGenerated trees: mean (10th, 50th and 90th percentile; maximum)\n")
    info(table(generated.statistics_header, generated.statistics))
    words = sum(map(len, corpus.test))
    joint = generated.generator.log_probability(corpus.test).sum() / words
    conditional = model.log_probability(corpus.test).sum() / words
    info(
        f"\nTest, nats per word: log P(words, tree) {joint:.3f}, log P(words | tree) "
        f"{conditional:.3f}"
    )
    path = Path(run) / "generated.html"
    trees = [sample.tree for sample in generated.samples]
    with replacing(path) as temporary:
        temporary.write_text(
            page(trees, title="Generated trees", captions=generated.captions), encoding="utf-8"
        )
    info(f"\nTrees: {path}")


def main(options):
    if options.generate:
        return generate(options.output, options.generate)
    if options.evaluate:
        return evaluate(options.evaluate)
    if options.score:
        return score(options.output, options.score)
    if train(options.config_class.from_options(options), options):
        evaluate([options.output])
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
