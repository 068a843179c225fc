"""Attachment scores and selection of trees for parse_reranking.py. Does not import Keras.

Axes: S sentences; K trees of a sentence, best first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.dependencies import DependencyTree, attachment
from keras_onlstm.evaluation.reranking import Candidates, bootstrap, choose, last_best, table

MAX_K = 20  # as published
ORACLE_KS = (2, 4, 8, 20)
# Weights of the parser's score, which is added to log P. The best one depends on the parser.
WEIGHTS = (0.0, *(2.0**power for power in range(-8, 9)))
# UAS and LAS in percent: Zhang, Lu, Lapata 2016, Table 2; Penn Treebank, sections 22 and 23.
PUBLISHED = {
    "MSTParser, second order": (92.20, 88.78, 91.63, 88.44),
    "TreeLSTM, K 2": (92.51, 89.07, 91.79, 88.53),
    "TreeLSTM with GloVe vectors, K 4": (92.64, 89.09, 91.97, 88.69),
    "LdTreeLSTM, K 4": (92.66, 89.14, 91.99, 88.69),
    "NN parser (Chen and Manning 2014)": (92.00, 89.70, 91.80, 89.60),
    "S-LSTM (Dyer et al. 2015)": (93.20, 90.90, 93.10, 90.90),
}


class Part(NamedTuple):
    """Candidate trees of a part of the data and their accuracy, punctuation excluded.

    Attributes:
        candidates: list of S `Candidates`.
        heads: integers (S, K), number of words with a correct head; 0 for missing trees.
        relations: integers (S, K), words with correct head and relation; `None` if unlabelled.
        words: integers (S,), number of words that are not punctuation.
        scores: array (S, K), scores of the parser; 0 for missing trees.
    """

    candidates: list[Candidates]
    heads: np.ndarray
    relations: np.ndarray | None
    words: np.ndarray
    scores: np.ndarray

    @classmethod
    def compare(cls, candidates: list[Candidates], golds: Sequence[DependencyTree]) -> "Part":
        """Compares candidates with gold trees."""
        counts = [
            [attachment([gold], [tree]).without_punctuation for tree in trees]
            for (trees, _), gold in zip(candidates, golds, strict=True)
        ]
        labelled = all(count.relations is not None for row in counts for count in row)
        return cls(
            candidates,
            table([[count.heads for count in row] for row in counts], 0).astype(int),
            table([[count.relations for count in row] for row in counts], 0).astype(int)
            if labelled
            else None,
            np.array([row[0].words for row in counts]),
            table([scores for _, scores in candidates], 0),
        )

    def correct(self, chosen: np.ndarray) -> dict[str, np.ndarray | None]:
        """Number of correct words of every sentence, (S,), in the chosen trees, (S,)."""
        rows = np.arange(len(self.words)), chosen
        relations = None if self.relations is None else self.relations[rows]
        return {"uas": self.heads[rows], "las": relations}

    def accuracy(self, correct: Mapping[str, np.ndarray | None]) -> dict[str, float | None]:
        """UAS and LAS from numbers of correct words."""
        words = self.words.sum()
        return {
            name: None if counts is None else float(counts.sum() / words)
            for name, counts in correct.items()
        }

    def oracle(self, k: int) -> dict[str, float | None]:
        """Scores of the best choice among the first `k` trees."""
        best = {"uas": self.heads[:, :k].max(1), "las": None}
        if self.relations is not None:
            best["las"] = self.relations[:, :k].max(1)
        return self.accuracy(best)


class Choice(NamedTuple):
    """A rule that chooses a tree for every sentence, tuned on the validation sentences.

    Attributes:
        name: name in the report.
        k: integer, number of trees to choose from.
        weight: weight of the parser's score, which is added to log P.
    """

    name: str
    k: int
    weight: float

    def correct(self, part: Part, logs: np.ndarray) -> dict[str, np.ndarray | None]:
        """Numbers of correct words in the trees chosen by `logs` (S, K), log P of all trees."""
        return part.correct(choose(logs + self.weight * part.scores, self.k))


def log_table(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Log P of the trees of sentences, (S, K); minus infinity for missing trees."""
    return table(rows, -np.inf)


def tune(part: Part, logs: np.ndarray) -> tuple[list[Choice], list[float]]:
    """Finds the best rules on validation data: with log P only, and with the parser's score too.

    Ties are broken in favour of the largest K, then of the largest weight.

    Args:
        part: `Part` of the validation sentences.
        logs: array (S, K) of log P.

    Returns:
        Two `Choice`, and the UAS of log P only for K = 1, 2, and so on.
    """
    ks = range(1, min(MAX_K, logs.shape[1]) + 1)

    def best(name: str, weights: Sequence[float]) -> tuple[Choice, list[int]]:
        candidates = [Choice(name, k, weight) for k in ks for weight in weights]
        correct = [int(choice.correct(part, logs)["uas"].sum()) for choice in candidates]
        return candidates[last_best(correct)], correct

    by_model, correct = best("log P", (0.0,))
    combined, _ = best("log P and parser", WEIGHTS)
    return [by_model, combined], (np.array(correct) / part.words.sum()).tolist()


def compare_with_parser(
    part: Part, correct: Mapping[str, np.ndarray | None], seed: int
) -> dict[str, Any]:
    """Scores of the chosen trees, and the difference between their UAS and the parser's."""
    difference = bootstrap(part.heads[:, 0], correct["uas"], part.words, seed=seed)
    return {**part.accuracy(correct), "difference": difference._asdict()}


def evaluate(
    parts: Mapping[str, Part], log_probability: Callable[[str], np.ndarray] | None, seed: int = 0
) -> dict[str, Any]:
    """Computes all results.

    Args:
        parts: dictionary of `Part`: `validation` and `test`.
        log_probability: function that maps the name of a part to log P of its trees, (S, K). With
            `None` nothing is reranked.
        seed: integer, seed of the bootstrap.

    Returns:
        JSON-serializable dictionary.
    """
    results: dict[str, Any] = {
        "sentences": {name: len(part.words) for name, part in parts.items()},
        "words": {name: int(part.words.sum()) for name, part in parts.items()},
        "parser": {
            name: part.accuracy(part.correct(np.zeros(len(part.words), int)))
            for name, part in parts.items()
        },
        "oracle": {
            str(k): {name: part.oracle(k) for name, part in parts.items()}
            for k in ORACLE_KS
            if k <= max(part.heads.shape[1] for part in parts.values())
        },
        "reranked": [],
    }
    if log_probability is None:
        return results
    logs = {name: log_probability(name) for name in parts}
    choices, results["uas_by_k"] = tune(parts["validation"], logs["validation"])
    for choice in choices:
        scores = {
            name: compare_with_parser(part, choice.correct(part, logs[name]), seed)
            for name, part in parts.items()
        }
        results["reranked"].append({**choice._asdict(), **scores})
    return results


HEADER = (
    *("Percent", "K", "weight", "UAS validation", "LAS", "UAS test", "LAS"),
    *("test - parser", "95%", "p"),
)


def table_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table of results, followed by published ones."""

    def cells(scores):
        values = [scores[part][name] for part in ("validation", "test") for name in ("uas", "las")]
        return ["" if value is None else f"{100 * value:.2f}" for value in values]

    rows = [["parser", "1", "", *cells(results["parser"])]]
    for scores in results["reranked"]:
        value, low, high, p = (100 * number for number in scores["test"]["difference"].values())
        row = [scores["name"], str(scores["k"]), f"{scores['weight']:.4g}", *cells(scores)]
        row += [f"{value:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{p / 100:.4f}"]
        rows.append(row)
    for k, scores in results["oracle"].items():
        rows.append([f"best of the first {k}", k, "", *cells(scores)])
    for name, numbers in PUBLISHED.items():
        rows.append([f"published: {name}", "", "", *(f"{number:.2f}" for number in numbers)])
    return [row + [""] * (len(HEADER) - len(row)) for row in rows]
