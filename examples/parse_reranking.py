"""Reranking of dependency trees with TreeLSTM (Zhang, Lu, Lapata 2016, Sec. 3.3).

A parser finds the K best trees of a sentence. A trained TreeLSTM chooses the tree that makes the
words most likely, with and without the parser's score. K is tuned on validation sentences.

    python examples/parse_reranking.py                               # only parse
    python examples/parse_reranking.py --model runs/tree_lstm        # parse and rerank
    # Rerank the trees of any parser. --gold VALID TEST allows sentences of other treebanks.
    python examples/parse_reranking.py --model runs/tree_lstm --lists VALID TEST --scores VALID TEST

The parser of this script is small. It is trained on NLTK's dependency treebank and reads gold tags.
Writes the lists of trees, the log-probabilities of the model, and results.json.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
from _common import info
from _dependency_parser import jackknife, train
from _reranking import HEADER, Part, evaluate, log_table, table_rows

from keras_onlstm.datasets import conll, dependency_treebank
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.evaluation import reranking
from keras_onlstm.evaluation.reranking import Candidates
from keras_onlstm.runs.directory import check_new, running
from keras_onlstm.text.vocabulary import frequent
from keras_onlstm.utils.console import ArgumentParser, at_least, progress_bar, report, seed, table
from keras_onlstm.utils.files import write_json

PARTS = ("validation", "test")
PRESETS = {
    "debug": {"epochs": 1, "bits": 6, "candidates": 4},  # seconds, on sentences of a small grammar
    "medium": {"epochs": 5, "bits": 22, "candidates": 20},  # minutes, on NLTK's treebank
}
BLOCK = 32  # sentences whose trees are scored at once
# Normalized words are lower case, with N for digits.
_NOT_NORMALIZED = frozenset("0123456789ABCDEFGHIJKLMOPQRSTUVWXYZ")


def parse_arguments():
    parser = ArgumentParser(
        prog="parse_reranking.py",
        description="Parse sentences and rerank the trees with a TreeLSTM.",
    )
    add = parser.add_argument
    pair = {"nargs": 2, "metavar": ("VALID", "TEST")}
    # fmt: off
    add("--preset", choices=PRESETS, default="medium", help="Size of the experiment. medium: "
        "NLTK's treebank, minutes; debug: synthetic sentences, seconds. (default: medium)")
    add("--model", metavar="RUN", help="Run of a TreeLSTM that reranks the trees, e.g. of "
        "dependency_language_model.py. Default: only parse.")
    add("--lists", **pair, help="Rerank the trees in these two CoNLL files, which hold the K best "
        "trees of every sentence, instead of parsing. Needs --scores.")
    add("--scores", **pair, help="Scores of the trees in --lists: a line for every sentence, with "
        "the scores of its trees.")
    add("--gold", **pair, help="CoNLL files of the gold trees of --lists, with tags. Default: "
        "NLTK's dependency treebank.")
    add("--jackknife", type=at_least(2), metavar="N", help="Also write lists for the training "
        "sentences. They are split into N parts; each part is parsed by a parser that was trained "
        "on the other parts.")
    add("--seed", type=seed, default=0, metavar="N",
        help="Seed of all random numbers. (default: 0)")
    add("--output", metavar="DIR", default="runs/parse_reranking",
        help="New directory for the results. (default: %(default)s)")
    # fmt: on
    options = parser.parse_args()
    if (options.lists is None) != (options.scores is None):
        parser.error("--lists and --scores must be passed together")
    if options.gold and not options.lists:
        parser.error("--gold needs --lists: without --lists, NLTK's treebank is parsed")
    if options.jackknife and options.lists:
        parser.error("--jackknife cannot be used with --lists: no parser is trained")
    return parser, options


TAGS = ["DT", "JJ", "NN", "VB", "DT", "NN", "IN", "DT", "NN", "."]  # of synthetic sentences


def synthetic_trees(count, seed):
    """Draws trees of a grammar: "with" depends on the verb, "of" on the noun before it."""
    generator = np.random.default_rng(seed)
    nouns, verbs = ("dog", "cat", "bank", "price"), ("saw", "sold", "bought")
    trees = []
    for _ in range(count):
        subject, noun, other = generator.choice(nouns, 3).tolist()
        verb, preposition = str(generator.choice(verbs)), str(generator.choice(("with", "of")))
        words = ["the", "old", subject, verb, "a", noun, preposition, "the", other, "."]
        heads = [3, 3, 4, 0, 6, 4, 4 if preposition == "with" else 6, 9, 7, 4]
        trees.append(DependencyTree(words, heads, TAGS))
    return trees


def read_gold(path):
    """Reads the trees of a file and checks that they have tags."""
    trees = list(conll.read(path))
    for number, tree in enumerate(trees, 1):
        if tree.tags is None:
            raise ValueError(
                f"{path}, sentence {number}: the words have no tags. Gold trees need tags, because "
                "they mark the punctuation, which is not scored."
            )
    return trees


def load_golds(options):
    """Gold trees of the parts; with the training part if a parser has to be trained."""
    if options.gold:
        return {part: read_gold(path) for part, path in zip(PARTS, options.gold, strict=True)}
    if options.preset == "debug":
        return {part: synthetic_trees(30, seed) for seed, part in enumerate(("train", *PARTS))}
    info("Reading NLTK's dependency treebank")
    return {part: dependency_treebank.load(part) for part in ("train", *PARTS)}


def fit(values, seed, title, trees):
    with progress_bar("trees", total=values["epochs"] * len(trees), desc=title) as bar:
        return train(trees, values["epochs"], seed, values["bits"], bar.update)


def parse(values, golds, options, output):
    """Trains a parser, writes its lists of trees, and returns them and the training time."""
    started = time.process_time()
    parser = fit(values, options.seed, "Training", golds["train"])
    seconds = {"training_cpu_seconds": time.process_time() - started}
    lists = {}
    for part in PARTS:
        trees = progress_bar("sentences", iterable=golds[part], desc=f"Parsing, {part}")
        best = (parser.parse(tree.words, tree.tags, values["candidates"]) for tree in trees)
        lists[part] = list(map(as_candidates, best))
    if options.jackknife:
        fit_others = partial(fit, values, options.seed, "Training on other parts")
        best = jackknife(golds["train"], options.jackknife, values["candidates"], fit_others)
        lists["train"] = list(map(as_candidates, best))
    for part, candidates in lists.items():
        reranking.write(candidates, output / f"{part}.conll", output / f"{part}.scores")
    return lists, seconds


def as_candidates(best):
    trees, scores = zip(*best, strict=True)
    return Candidates(list(trees), np.array(scores))


def read_lists(options, golds):
    """Reads the trees in --lists and checks that they are trees of the gold sentences."""
    lists = {}
    for part, path, scores in zip(PARTS, options.lists, options.scores, strict=True):
        info(f"Reading {path}")
        lists[part] = reranking.read(path, scores)
        reranking.check_golds(lists[part], golds[part], path)
    return lists


def debug_model(seed):
    """Trains a small model on synthetic trees."""
    from keras_onlstm.models import TreeLSTM
    from keras_onlstm.training import TreeBatches, TreeLearner

    trees = synthetic_trees(30, 0)
    vocabulary = frequent(tree.words for tree in trees)
    model = TreeLSTM(len(vocabulary), 8, 16, vocabulary=vocabulary, seed=seed)
    learner = TreeLearner(model)
    learner.compile("adam")
    learner.optimizer.learning_rate = 0.02
    batches = TreeBatches(model, [model.schedule_tree(tree) for tree in trees], 10, seed=seed)
    learner.fit(batches, epochs=10, verbose=0)
    return model


def load_reranker(options):
    """Loads the model that reranks; returns `None` if there is none."""
    if options.model is None:
        return debug_model(options.seed) if options.preset == "debug" else None
    from keras_onlstm.loading import load_model

    model = load_model(options.model)[0]
    if not hasattr(model, "log_probability"):
        raise ValueError(
            f"--model {options.model}: this is a {type(model).__name__}, which cannot score trees. "
            "Pass the run of a TreeLSTM, e.g. of examples/dependency_language_model.py."
        )
    return model


def is_normalized(words):
    """Whether all words are in lower case, with N for digits."""
    return not any(_NOT_NORMALIZED & set(word) for word in words)


def normalize_tree(tree):
    """Normalizes the words of a tree, unless they are normalized already."""
    if is_normalized(tree.words):
        return tree
    return DependencyTree(list(map(normalize, tree.words)), tree.heads)


def log_probabilities(model, candidates, name):
    """Log P of the trees of every sentence: list of arrays (K,)."""
    prepare = normalize_tree if is_normalized(model.vocabulary or ()) else lambda tree: tree
    result = []
    with progress_bar("sentences", total=len(candidates), desc=f"Scoring, {name}") as bar:
        for start in range(0, len(candidates), BLOCK):
            lists = [trees for trees, _ in candidates[start : start + BLOCK]]
            trees = [prepare(tree) for trees in lists for tree in trees]
            logs = np.asarray(model.log_probability(trees), "float64")
            if not np.isfinite(logs).all():
                raise ValueError(
                    f"--model: log P of a {name} tree is not finite. Training may have diverged."
                )
            result += np.split(logs, np.cumsum([len(trees) for trees in lists])[:-1])
            bar.update(len(lists))
    return result


def main(options):
    check_new(options.output)
    values = PRESETS[options.preset]
    golds = load_golds(options)
    lists = read_lists(options, golds) if options.lists else None
    model = load_reranker(options)
    output = Path(options.output)
    with running(output, {**vars(options), **values}):
        seconds = {}
        if lists is None:
            lists, seconds = parse(values, golds, options, output)
        parts = {part: Part.compare(lists[part], golds[part]) for part in PARTS}

        def score(part):
            logs = log_probabilities(model, lists[part], part)
            reranking.write_scores(logs, output / f"{part}.log_probabilities")
            return log_table(logs)

        results = evaluate(parts, None if model is None else score, options.seed)
        write_json(output / "results.json", {**results, **seconds})
    info("\nPunctuation is not scored. Published figures are for the full Penn Treebank.\n")
    info(table(HEADER, table_rows(results)))
    if model is None:
        info("\nTo rerank these trees, pass a trained TreeLSTM: --model RUN")
    elif results["uas_by_k"]:
        curve = " ".join(f"{100 * share:.2f}" for share in results["uas_by_k"])
        info(f"\nUAS of log P on validation sentences for K = 1, 2, ...: {curve}")
    info(f"\nResults: {output / 'results.json'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
