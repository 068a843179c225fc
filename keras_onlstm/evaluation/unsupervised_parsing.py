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
    "LABELS", "SHORT", "baseline_scores", "ensemble_scores", "measured_distances", "model_scores",
    "tree_scores",
]  # fmt: skip

SHORT = 10  # words, as in the test set WSJ10
LABELS = ("ADJP", "NP", "PP", "INTJ")
Distances = Mapping[str, Sequence[np.ndarray]]


def tree_scores(
    trees: Sequence[NltkTree], sentences: Sequence[ParsedSentence]
) -> dict[str, float | None]:
    """Scores trees against the gold trees of all sentences and of short ones.

    Returns:
        Dictionary of `f1`, `corpus_f1`, `evalb_f1`, `depth`, `f1_short`, and the recall of labels.

    >>> from nltk import Tree
    >>> gold = Tree.fromstring("(S (NP the cat) (VP saw it))")
    >>> tree = Tree.fromstring("(X (X the cat) (X saw it))")
    >>> round(tree_scores([tree], [ParsedSentence(gold.leaves(), gold)])["f1"], 6)
    1.0
    """
    short = [i for i, sentence in enumerate(sentences) if len(sentence.tokens) <= SHORT]
    scores = score(trees, [sentence.tree for sentence in sentences])
    row = {key: scores[key] for key in ("f1", "corpus_f1", "evalb_f1", "depth")}
    short_scores = score([trees[i] for i in short], [sentences[i].tree for i in short])
    row["f1_short"] = short_scores["f1"] if short else None
    for label in LABELS:
        right, count = scores["label_recall"].get(label, (0, 0))
        row[f"recall_{label}"] = right / count if count else None
    return row


def measured_distances(parser: Any, sentences: Sequence[ParsedSentence]) -> list[Distances]:
    """Computes the distances of every model of a `Parser`, one dictionary per model."""
    layers = getattr(parser.model, "layers_per_model", (parser.model.num_layers,))
    gates = parser.model.gates
    distances = parser.distances_many(
        [sentence.tokens for sentence in sentences], "both" if len(gates) == 2 else gates[0]
    )
    # The rows of a sentence: the layers of all models for one gate, then those for the next.
    ends = np.cumsum(len(gates) * tuple(layers))[:-1]
    parts = [np.split(array, ends) for array in distances]
    count = len(layers)
    return [
        {gate: [rows[i * count + model] for rows in parts] for i, gate in enumerate(gates)}
        for model in range(count)
    ]


def model_scores(
    measured: Sequence[Distances], sentences: Sequence[ParsedSentence]
) -> dict[tuple[int, str, str], dict[str, Any]]:
    """Scores single models, given the distances of each, and summarizes the scores.

    Returns:
        Dictionary from (layer, gate, method) to scores. `agreement` is the mean F1 of one model's
        trees against another's, which needs no gold trees.
    """
    gates = tuple(measured[0])
    layers = len(measured[0][gates[0]][0])
    if any(tuple(distances) != gates for distances in measured):
        raise ValueError("--models: the models have different gates. Evaluate them one by one.")
    if any(len(distances[gates[0]][0]) != layers for distances in measured):
        raise ValueError("--models: the numbers of layers differ. Evaluate them one by one.")
    results = {}
    for key in itertools.product(range(1, layers + 1), gates, METHODS):
        layer, gate, method = key
        trees = [
            [
                build_tree(rows[layer - 1], sentence.tokens, method)
                for rows, sentence in zip(distances[gate], sentences, strict=True)
            ]
            for distances in measured
        ]
        results[key] = _summary([tree_scores(model_trees, sentences) for model_trees in trees])
        pairs = [score(*pair)["f1"] for pair in itertools.combinations(trees, 2)]
        results[key]["agreement"] = statistics.fmean(pairs) if pairs else None
    return results


def _summary(models):
    """Mean, standard deviation and maximum over models, for every score."""
    summaries: dict[str, Any] = {}
    for name in models[0]:
        values = [model[name] for model in models]
        summaries[name] = None if None in values else {
            "mean": statistics.fmean(values),
            "deviation": statistics.stdev(values) if len(values) > 1 else None,
            "largest": max(values),
            "values": values,
        }  # fmt: skip
    return summaries


def ensemble_scores(
    measured: Sequence[Distances], sentences: Sequence[ParsedSentence]
) -> dict[tuple[int | None, str], dict[str, Any]]:
    """Scores ensembles of two or more models, given the distances of each.

    The rules are those of `Parser`: trees of mean distances, and votes. They use the distances of
    the forget gates unless the rule names both gates.

    Returns:
        Dictionary from (layer, rule) to scores; layer `None` is all layers. `agreement` is the F1
        of the trees of the first half of the models against those of the second half.
    """

    def mean_tree(method):
        return lambda rows, tokens: build_tree(rows.mean(axis=0, dtype="float64"), tokens, method)

    rules = {
        "mean distances, greedy": mean_tree("greedy"),
        "mean distances, binary": mean_tree("binary"),
        "votes, greedy": lambda rows, tokens: vote(rows, tokens, ("greedy",)),
        "votes, greedy and binary": vote,
    }
    all_gates = tuple(measured[0])
    if len(all_gates) == 2:
        rules["votes, greedy and binary, both gates"] = vote

    def trees(models, layer, rule):
        gates = all_gates if rule.endswith("both gates") else all_gates[:1]
        voters = [distances[gate] for gate in gates for distances in models]
        layers = slice(None) if layer is None else slice(layer - 1, layer)
        return [
            rules[rule](np.concatenate([rows[layers] for rows in voter_rows]), sentence.tokens)
            for *voter_rows, sentence in zip(*voters, sentences, strict=True)
        ]

    half = len(measured) // 2
    results = {}
    for layer in (*range(1, len(measured[0][all_gates[0]][0]) + 1), None):
        for rule in rules:
            if layer is None and not rule.startswith("votes"):
                continue  # the distances of layers have different scales
            scores = tree_scores(trees(measured, layer, rule), sentences)
            parts = [trees(part, layer, rule) for part in (measured[:half], measured[half:])]
            results[layer, rule] = {**scores, "agreement": score(*parts)["f1"]}
    return results


def baseline_scores(sentences: Sequence[ParsedSentence]) -> dict[str, dict[str, float | None]]:
    """Scores of random, balanced, left- and right-branching trees, by their names."""
    generator = random.Random(0)
    makers = {
        "random trees": lambda tokens: random_tree(tokens, generator),
        "balanced trees": balanced,
        "left-branching trees": left_branching,
        "right-branching trees": right_branching,
    }
    return {
        name: tree_scores([make(sentence.tokens) for sentence in sentences], sentences)
        for name, make in makers.items()
    }
