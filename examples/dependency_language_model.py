"""Language modelling along dependency trees with TreeLSTM and LdTreeLSTM (Zhang et al. 2016).

Trains a model that predicts each word of a sentence from its path in the dependency tree, on NLTK's
dependency treebank or on three CoNLL files, and measures its perplexity. With --trees chain every
word depends on the one before: a sequential LSTM, the baseline. --trees sentence adds the end of
the sentence, which gives P(sentence). --trees bidirectional predicts a word from all others.

    python examples/dependency_language_model.py                        # minutes on a core
    python examples/dependency_language_model.py --left-dependents --output runs/ld
    python examples/dependency_language_model.py --trees chain --output runs/chain
    python examples/dependency_language_model.py --trees sentence --output runs/sentences
    python examples/dependency_language_model.py --data train.conllu dev.conllu test.conllu
    python examples/dependency_language_model.py --evaluate runs/ld runs/chain
    python examples/dependency_language_model.py --output runs/ld --score trees.conllu
    python examples/dependency_language_model.py --output runs/ld --generate 100

The perplexity is that of P(words | tree): the model is given the tree, a sequential one is not.
--generate trains classifiers that decide where a tree grows, which gives P(words, tree). Compare
that with P(sentence).
"""

import collections
import math
from pathlib import Path

import numpy as np
from _common import info

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import (
    Edge,
    KneserNey,
    dependency_contexts,
    page,
    word_contexts,
)
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.config import run_parser
from keras_onlstm.runs.directory import RESULTS
from keras_onlstm.runs.tree_lstm import SEQUENTIAL, TreeLSTMConfig
from keras_onlstm.training.corpora import normalize_tree, read_trees, reshape_tree
from keras_onlstm.utils.console import at_least, report, table
from keras_onlstm.utils.files import replacing, write_json

PARTS = ("validation", "test")
NOTES = {"random": ", random trees", "sentence": ", sentences with their ends"}  # in tables
LENGTHS = ((1, 2), (3, 4), (5, 8), (9, 16), (17, 9999))  # of paths: ranges with both ends included


def parse_arguments():
    about = "Language models over dependency trees: TreeLSTM and LdTreeLSTM."
    name = "dependency_language_model"
    parser = run_parser([TreeLSTMConfig], f"{name}.py", about, f"runs/{name}")
    add = parser.add_argument
    add("--evaluate", metavar="RUN", nargs="+", help="do not train: test these trained runs")
    add("--score", metavar="CONLL", help="do not train: score these trees by the run in --output")
    add(
        "--generate",
        type=at_least(1),
        metavar="N",
        help="do not train: draw N sentences with their trees by the run in --output",
    )
    return parser, parser.parse_args()


def load_trees(config, vocabulary=None):
    """Reads the trees of a run."""
    corpus = read_trees(config, vocabulary)
    for part, count in corpus.skipped.items():
        if count:
            info(f"{part}: {count:,} sentences left out, whose trees are not projective")
    return corpus


def train(config, options):
    from keras_onlstm.training.tree_models import train_tree_model

    shape = options.resume, options.steps, options.log_every
    return train_tree_model(options.output, config, load_trees(config), *shape)


def described(scores, trees):
    """Perplexities of scored trees: of all words, by edge, and by length of the path."""
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
    """Rows with perplexities of Kneser-Ney models of words and of the ends of paths."""
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
        run: (TreeLSTMConfig.load(run), load_trained(run, "tree_language_model")) for run in runs
    }
    for run, (config, model) in loaded.items():
        corpus = load_trees(config, model.vocabulary)
        parts = {part: getattr(corpus, part) for part in PARTS}
        found = {part: described(model.score(trees), trees) for part, trees in parts.items()}
        results[run] = {
            "model": model.title,
            "trees": config.trees,
            "parameters": model.count_params(),
            **{f"{part}_perplexity": found[part]["perplexity"] for part in parts},
            **{part: found[part] for part in parts},
        }
        write_json(Path(run) / RESULTS, {**results[run], "data": list(config.data)})
        if config.trees == "dependencies":
            key = str(config.data), *corpus.vocabulary
            references[key] = corpus
    # If all runs have the same words they are compared with n-gram models.
    show(results, counted(*references.values()) if len(references) == 1 else [])


def nats_a_word(found):
    """log P per word; ends of sentences do not count as words."""
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
    """Prints log P(words | tree) of the trees of a file."""
    config = TreeLSTMConfig.load(run)
    model = load_trained(run, "tree_language_model")
    reader = conll.read(path)
    trees = [prepared(tree, config) for tree in reader]
    if not trees:
        raise ValueError(f"{path}: has no tree.")
    rows = [
        [" ".join(tree.words)[:60], len(tree), f"{row.sum():.3f}", f"{math.exp(-row.mean()):.2f}"]
        for tree, row in zip(trees, model.score(trees), strict=True)
    ]
    info(table(["", "words", "log P (nats)", "perplexity"], rows))


def prepared(tree, config):
    tree = normalize_tree(tree) if config.normalize else tree
    return reshape_tree(tree, config.trees)


def generate(run, count):
    """Generates sentences with their trees, and writes them to an HTML page."""
    from keras_onlstm.models.tree_generation import generate_trees

    config = TreeLSTMConfig.load(run)
    model = load_trained(run, "tree_language_model")
    if config.trees in SEQUENTIAL:
        raise ValueError(f"{run}: its model is sequential. Name a run of trees with --output.")
    corpus = load_trees(config, model.vocabulary)
    info("Training the four classifiers that say where a tree grows")
    found = generate_trees(model, corpus.train, corpus.validation, count, config.seed)
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
    if train(options.config_class.from_options(options), options):
        evaluate([options.output])
    return None


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
