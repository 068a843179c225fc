"""Scores of unsupervised parsers: single models, ensembles and baselines.

The distances of a model are a dictionary from gates to lists of arrays (layers, words), one per
sentence.
"""

import itertools
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_onlstm.datasets.treebank import ParsedSentence
from keras_onlstm.parsing import (
    balanced,
    build_tree,
    left_branching,
    random_tree,
    right_branching,
    score,
    vote,
)
from keras_onlstm.parsing.trees import METHODS
from keras_onlstm.utils import NltkTree

__all__ = [
    "LABELS",
    "SHORT",
    "baseline_scores",
    "ensemble_scores",
    "measured_distances",
    "model_scores",
    "tree_scores",
]

SHORT = 10  # words, as in the test set WSJ10
LABELS = ("ADJP", "NP", "PP", "INTJ")


Distances = Mapping[str, Sequence[np.ndarray]]


def tree_scores(
    trees: Sequence[NltkTree], sentences: Sequence[ParsedSentence]
) -> dict[str, float | None]:
    """Scores trees over all sentences and over short ones.

    Args:
        trees: list of `nltk.Tree`.
        sentences: list of `ParsedSentence`, with the gold trees.

    Returns:
        Dictionary of `f1`, `corpus_f1`, `evalb_f1`, `depth`, `f1_short`, and the recall of labels.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.datasets.treebank import ParsedSentence
    >>> from keras_onlstm.evaluation.unsupervised_parsing import tree_scores
    >>> gold = Tree.fromstring("(S (NP the cat) (VP saw it))")
    >>> tree = Tree.fromstring("(X (X the cat) (X saw it))")
    >>> round(tree_scores([tree], [ParsedSentence(gold.leaves(), gold)])["f1"], 6)
    1.0
    """
    short = [i for i, sentence in enumerate(sentences) if len(sentence.tokens) <= SHORT]
    everything = score(trees, [sentence.tree for sentence in sentences])
    brief = score([trees[i] for i in short], [sentences[i].tree for i in short])
    row = {key: everything[key] for key in ("f1", "corpus_f1", "evalb_f1", "depth")}
    row["f1_short"] = brief["f1"] if short else None
    for label in LABELS:
        right, count = everything["label_recall"].get(label, (0, 0))
        row[f"recall_{label}"] = right / count if count else None
    return row


def measured_distances(parser: Any, sentences: Sequence[ParsedSentence]) -> list[Distances]:
    """Computes the distances of every model of a parser.

    Args:
        parser: `Parser`.
        sentences: list of `ParsedSentence`.

    Returns:
        List of dictionaries, one per model.
    """
    layers = getattr(parser.model, "layers_per_model", (parser.model.num_layers,))
    gates = parser.model.gates
    count, ends = (
        len(layers),
        np.cumsum(len(gates) * tuple(layers))[:-1],
    )  # all models of one gate, then those of the next
    which = "both" if len(gates) == 2 else gates[0]
    distances = parser.distances_many([sentence.tokens for sentence in sentences], which)
    apart = [np.split(numbers, ends) for numbers in distances]
    return [
        {
            gate: [parts[number * count + place] for parts in apart]
            for number, gate in enumerate(gates)
        }
        for place in range(count)
    ]


def model_scores(
    measured: Sequence[Distances], sentences: Sequence[ParsedSentence]
) -> dict[tuple[int, str, str], dict[str, Any]]:
    """Scores single models and summarizes the scores.

    Args:
        measured: list of the distances of each model.
        sentences: list of `ParsedSentence`.

    Returns:
        Dictionary from (layer, gate, method) to scores. `agreement` is the mean F1 of one model's
        trees against another's, which needs no gold trees.

    Raises:
        ValueError: if the models differ in gates or numbers of layers.
    """
    gates = tuple(measured[0])
    if any(tuple(one) != gates for one in measured):
        raise ValueError("--models: they measure different distances. Name them one by one.")
    layers = len(measured[0][gates[0]][0])
    if any(len(one[gates[0]][0]) != layers for one in measured):
        raise ValueError("--models: they differ in their number of layers. Name them one by one.")
    rows = {}
    for key in itertools.product(range(1, layers + 1), gates, METHODS):
        layer, gate, method = key
        trees = [
            _trees(
                [numbers[layer - 1] for numbers in one[gate]],
                sentences,
                lambda numbers, tokens, method=method: build_tree(numbers, tokens, method),
            )
            for one in measured
        ]
        rows[key] = _combined([tree_scores(of_one, sentences) for of_one in trees])
        pairs = [score(*pair)["f1"] for pair in itertools.combinations(trees, 2)]
        rows[key]["agreement"] = statistics.fmean(pairs) if pairs else None
    return rows


def _trees(distances, sentences, make):
    pairs = zip(distances, sentences, strict=True)
    return [make(numbers, sentence.tokens) for numbers, sentence in pairs]


def _combined(models):
    """Mean, standard deviation and maximum over models, for every score."""
    summaries: dict[str, Any] = {}
    for name in models[0]:
        values = [model[name] for model in models]
        if None in values:
            summaries[name] = None
            continue
        deviation = statistics.stdev(values) if len(values) > 1 else None
        summaries[name] = {
            "mean": statistics.fmean(values),
            "deviation": deviation,
            "largest": max(values),
            "values": values,
        }
    return summaries


def ensemble_scores(
    measured: Sequence[Distances], sentences: Sequence[ParsedSentence]
) -> dict[tuple[int | None, str], dict[str, Any]]:
    """Scores ensembles of models.

    The rules are those of `Parser`: trees of mean distances, and votes. They use the distances of
    the forget gates unless the rule names both gates.

    Args:
        measured: list of the distances of two models or more.
        sentences: list of `ParsedSentence`.

    Returns:
        Dictionary from (layer, rule) to scores; layer `None` is all layers. `agreement` is the F1
        of the trees of one half of the models against those of the other half.
    """

    def of_means(method):
        return lambda rows, tokens: build_tree(rows.mean(axis=0, dtype="float64"), tokens, method)

    rules = {
        "mean distances, greedy": of_means("greedy"),
        "mean distances, binary": of_means("binary"),
        "votes, greedy": lambda rows, tokens: vote(rows, tokens, ("greedy",)),
        "votes, greedy and binary": vote,
    }
    every = tuple(measured[0])
    if len(every) == 2:
        rules["votes, greedy and binary, both gates"] = vote

    def trees(models, layer, rule):
        gates = every if rule.endswith("both gates") else every[:1]
        voters = [one[gate] for gate in gates for one in models]
        place = slice(None) if layer is None else slice(layer - 1, layer)
        rows = (
            np.concatenate([numbers[place] for numbers in sentence])
            for sentence in zip(*voters, strict=True)
        )
        return _trees(rows, sentences, rules[rule])

    half = len(measured) // 2
    results = {}
    for layer in (*range(1, len(measured[0][every[0]][0]) + 1), None):
        for rule in rules:
            if layer is None and not rule.startswith("votes"):
                continue  # the distances of layers have different scales
            scores = tree_scores(trees(measured, layer, rule), sentences)
            halves = [trees(part, layer, rule) for part in (measured[:half], measured[half:])]
            results[layer, rule] = {**scores, "agreement": score(*halves)["f1"]}
    return results


def baseline_scores(sentences: Sequence[ParsedSentence]) -> dict[str, dict[str, float | None]]:
    """Scores baseline trees, which need no model.

    Args:
        sentences: list of `ParsedSentence`.

    Returns:
        Dictionary from the names of baselines to scores.
    """
    draw = random.Random(0)
    makers = {
        "random trees": lambda tokens: random_tree(tokens, draw),
        "balanced trees": balanced,
        "left-branching trees": left_branching,
        "right-branching trees": right_branching,
    }
    return {
        name: tree_scores([make(sentence.tokens) for sentence in sentences], sentences)
        for name, make in makers.items()
    }
