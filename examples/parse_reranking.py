"""Reranking of dependency trees with TreeLSTM (Zhang, Lu, Lapata 2016, Sec. 3.3).

A parser finds the K best trees of a sentence; a trained TreeLSTM chooses the one that makes the
words most likely, with and without the parser's score. K is chosen on validation sentences.

    python examples/parse_reranking.py                               # only parse
    python examples/parse_reranking.py --model runs/tree_lstm        # and rerank
    python examples/parse_reranking.py --model runs/tree_lstm --lists VALID TEST --scores VALID TEST
                       # trees of any parser; with --gold VALID TEST also of other sentences

The parser is small, and trained on NLTK's dependency treebank with gold tags. Writes the lists of
trees, the model's log-probabilities, and results.json.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
from _common import info
from _dependency_parser import jackknife, train
from _reranking import HEADER, Part, evaluate, log_table, rows_of

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
    "debug": {"epochs": 1, "bits": 6, "candidates": 4},  # on sentences of a small grammar
    "medium": {"epochs": 5, "bits": 22, "candidates": 20},  # minutes
}
BLOCK = 32  # sentences whose trees a model reads at a time
_NOT_NORMALIZED = frozenset("0123456789ABCDEFGHIJKLMOPQRSTUVWXYZ")  # N: any digit


def parse_arguments():
    parser = ArgumentParser(
        prog="parse_reranking.py", description="Reranking of dependency trees with TreeLSTM."
    )
    add = parser.add_argument
    pair = {"nargs": 2, "metavar": ("VALID", "TEST")}
    add("--preset", choices=PRESETS, default="medium", help="debug: made-up sentences, seconds")
    add("--model", metavar="RUN", help="a trained TreeLSTM, which reranks; default: none does")
    add("--lists", **pair, help="do not parse: trees in CoNLL files, K of every sentence")
    add("--scores", **pair, help="and the parser's scores of them, those of a sentence in a line")
    add("--gold", **pair, help="and the gold trees, if --lists are not of NLTK's treebank")
    add("--jackknife", type=at_least(2), metavar="N", help="write lists of the training sentences "
        "as well, of parsers that were trained on the other N - 1 parts of N")  # fmt: skip
    add("--seed", type=seed, default=0, help="of the parser and of draws (default: 0)")
    add("--output", metavar="DIR", default="runs/parse_reranking", help="where to write")
    options = parser.parse_args()
    if (options.lists is None) != (options.scores is None):
        parser.error("--lists and --scores go together")
    if options.gold and not options.lists:
        parser.error(
            "--gold: is for --lists of any parser; that of this script parses NLTK's trees"
        )
    if options.jackknife and options.lists:
        parser.error("--jackknife: --lists are there already, no parser is trained")
    return parser, options


TAGS = ["DT", "JJ", "NN", "VB", "DT", "NN", "IN", "DT", "NN", "."]  # of made-up sentences


def made_up(count, seed):
    """Random trees of a grammar: the head of `with` is the verb, of `of` the noun before."""
    generator = np.random.default_rng(seed)
    nouns, verbs = ("dog", "cat", "bank", "price"), ("saw", "sold", "bought")
    trees = []
    for _ in range(count):
        subject, thing, other = generator.choice(nouns, 3).tolist()
        verb, preposition = str(generator.choice(verbs)), str(generator.choice(("with", "of")))
        words = ["the", "old", subject, verb, "a", thing, preposition, "the", other, "."]
        heads = [3, 3, 4, 0, 6, 4, 4 if preposition == "with" else 6, 9, 7, 4]
        trees.append(DependencyTree(words, heads, TAGS))
    return trees


def tagged(path):
    """Reads the trees of a file and checks that they have tags."""
    trees = list(conll.read(path))
    for number, tree in enumerate(trees, 1):
        if tree.tags is None:
            raise ValueError(
                f"{path}, sentence {number}: has no tags, which tell what is punctuation. Gold "
                "trees need them."
            )
    return trees


def load_golds(options):
    """Gold trees of the parts, including those to train a parser on."""
    if options.gold:
        return {part: tagged(path) for part, path in zip(PARTS, options.gold, strict=True)}
    if options.preset == "debug":
        return {part: made_up(30, place) for place, part in enumerate(("train", *PARTS))}
    info("Reading NLTK's dependency treebank")
    return {part: dependency_treebank.load(part) for part in ("train", *PARTS)}


def fit(values, seed, title, trees):
    with progress_bar("trees", total=values["epochs"] * len(trees), desc=title) as bar:
        return train(trees, values["epochs"], seed, values["bits"], bar.update)


def parsed(values, golds, options, output):
    """Trains a parser, writes its lists of trees, and returns them and the time."""
    started = time.process_time()
    parser = fit(values, options.seed, "Training", golds["train"])
    about = {"training_cpu_seconds": time.process_time() - started}
    found = {}
    for part in PARTS:
        trees = progress_bar("sentences", iterable=golds[part], desc=f"Parsing, {part}")
        best = (parser.parse(tree.words, tree.tags, values["candidates"]) for tree in trees)
        found[part] = list(map(as_candidates, best))
    lists = dict(found)
    if options.jackknife:
        one = partial(fit, values, options.seed, "Training on other parts")
        some = jackknife(golds["train"], options.jackknife, values["candidates"], one)
        lists["train"] = list(map(as_candidates, some))
    for part, candidates in lists.items():
        reranking.write(candidates, output / f"{part}.conll", output / f"{part}.scores")
    return found, about


def as_candidates(best):
    trees, scores = zip(*best, strict=True)
    return Candidates(list(trees), np.array(scores))


def given(options, golds):
    """Reads lists of trees of any parser."""
    found = {}
    for part, lists, scores in zip(PARTS, options.lists, options.scores, strict=True):
        info(f"Reading {lists}")
        found[part] = reranking.read(lists, scores)
        reranking.check_golds(found[part], golds[part], lists)
    return found


def debug_model(seed):
    """A small model, trained on the grammar."""
    from keras_onlstm.models import TreeLSTM
    from keras_onlstm.training import TreeBatches, TreeLearner

    trees = made_up(30, 0)
    vocabulary = frequent(tree.words for tree in trees)
    model = TreeLSTM(len(vocabulary), 8, 16, vocabulary=vocabulary, seed=seed)
    learner = TreeLearner(model)
    learner.compile("adam")
    learner.optimizer.learning_rate = 0.02
    batches = TreeBatches(model, [model.schedule_tree(tree) for tree in trees], 10, seed=seed)
    learner.fit(batches, epochs=10, verbose=0)
    return model


def load_reranker(options):
    """The model that reranks, or `None`."""
    if options.model is None:
        return debug_model(options.seed) if options.preset == "debug" else None
    from keras_onlstm.loading import load_model

    model = load_model(options.model)[0]
    if not hasattr(model, "log_probability"):
        raise ValueError(
            f"{options.model}: is a {type(model).__name__}, which gives no log P of a tree. Name "
            "the run of a TreeLSTM."
        )
    return model


def is_normalized(words):
    """Whether words seem to be in lower case, with N for digits."""
    return not any(_NOT_NORMALIZED & set(word) for word in words)


def as_known(tree, normalized):
    """A tree with its words normalized like those of the model."""
    if not normalized or is_normalized(tree.words):
        return tree
    return DependencyTree(list(map(normalize, tree.words)), tree.heads)


def log_probabilities(model, candidates, name):
    """Log P of the trees of every sentence: list of arrays (K,)."""
    normalized = is_normalized(model.vocabulary or ())
    found = []
    with progress_bar("sentences", total=len(candidates), desc=f"Scoring, {name}") as bar:
        for start in range(0, len(candidates), BLOCK):
            some = [trees for trees, _ in candidates[start : start + BLOCK]]
            trees = [as_known(tree, normalized) for block in some for tree in block]
            logs = np.asarray(model.log_probability(trees), "float64")
            if not np.isfinite(logs).all():
                raise ValueError(f"--model: log P of a tree of {name} is no finite number.")
            found += np.split(logs, np.cumsum([len(block) for block in some])[:-1])
            bar.update(len(some))
    return found


def main(options):
    check_new(options.output)
    values = PRESETS[options.preset]
    golds = load_golds(options)
    found = given(options, golds) if options.lists else None
    model = load_reranker(options)
    output = Path(options.output)
    with running(output, {**vars(options), **values}):
        about = {}
        if found is None:
            found, about = parsed(values, golds, options, output)
        parts = {part: Part.of(found[part], golds[part]) for part in PARTS}

        def scored(part):
            logs = log_probabilities(model, found[part], part)
            reranking.write_scores(logs, output / f"{part}.log_probabilities")
            return log_table(logs)

        results = evaluate(parts, None if model is None else scored, options.seed)
        write_json(output / "results.json", {**results, **about})
    info("\nWithout punctuation; published figures are of the full Penn Treebank\n")
    info(table(HEADER, rows_of(results)))
    if model is None:
        info("\nTo rerank: --model RUN, a trained TreeLSTM")
    elif results["uas_by_k"]:
        curve = " ".join(f"{100 * share:.2f}" for share in results["uas_by_k"])
        info(f"\nUAS of log P on validation sentences, K = 1, 2 and so on: {curve}")
    info(f"\nResults: {output / 'results.json'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
