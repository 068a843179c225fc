"""Scores, choices and comparisons of parse_reranking.py. Without Keras.

Axes: S sentences; K trees of a sentence, best first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_onlstm.dependencies import DependencyTree, attachment
from keras_onlstm.evaluation.reranking import Candidates, bootstrap, choose, last_best, table

MOST = 20  # largest K, as published
ORACLES = (2, 4, 8, 20)
# Weights of the parser's score, added to log P. The best one depends on the parser.
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
    """Candidate trees of a part of the data and their accuracy without punctuation.

    Attributes:
        candidates: list of S `Candidates`.
        heads: integers (S, K), number of words with the right head; 0 if a tree is missing.
        relations: integers (S, K), words with right head and relation; `None` if unlabelled.
        words: integers (S,), number of words without punctuation.
        scores: array (S, K), the parser's scores; 0 if a tree is missing.
    """

    candidates: list[Candidates]
    heads: np.ndarray
    relations: np.ndarray | None
    words: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, candidates: list[Candidates], golds: Sequence[DependencyTree]) -> "Part":
        """Compares candidates with gold trees."""
        counts = [
            [attachment([gold], [tree]).without_punctuation for tree in trees]
            for (trees, _), gold in zip(candidates, golds, strict=True)
        ]
        labelled = all(one.relations is not None for row in counts for one in row)
        return cls(
            candidates,
            table([[one.heads for one in row] for row in counts], 0).astype(int),
            table([[one.relations for one in row] for row in counts], 0).astype(int)
            if labelled
            else None,
            np.array([row[0].words for row in counts]),
            table([scores for _, scores in candidates], 0),
        )

    def right(self, chosen: np.ndarray) -> dict[str, np.ndarray | None]:
        """Number of right words of every sentence (S,) in the chosen trees (S,)."""
        rows = np.arange(len(self.words)), chosen
        relations = None if self.relations is None else self.relations[rows]
        return {"uas": self.heads[rows], "las": relations}

    def shares(self, right: Mapping[str, np.ndarray | None]) -> dict[str, float | None]:
        """UAS and LAS from numbers of right words."""
        words = self.words.sum()
        return {
            name: None if counts is None else float(counts.sum() / words)
            for name, counts in right.items()
        }

    def oracle(self, count: int) -> dict[str, float | None]:
        """Scores of the best choice among the first `count` trees."""
        best = {"uas": self.heads, "las": self.relations}
        return self.shares(
            {name: None if one is None else one[:, :count].max(1) for name, one in best.items()}
        )


class Choice(NamedTuple):
    """A way to choose a tree for every sentence, tuned on the validation sentences.

    Attributes:
        name: in the report.
        k: integer, number of trees to choose from.
        weight: weight of the parser's score, added to log P.
    """

    name: str
    k: int
    weight: float

    def right(self, part: Part, logs: np.ndarray) -> dict[str, np.ndarray | None]:
        """Numbers of right words in the chosen trees, given `logs` (S, K), log P of all trees."""
        return part.right(choose(logs + self.weight * part.scores, self.k))


def log_table(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Log P of the trees of sentences, (S, K), minus infinity if a tree is missing."""
    return table(rows, -np.inf)


def choices(part: Part, logs: np.ndarray) -> tuple[list[Choice], list[float]]:
    """The best choices on validation data: by log P only, and with the parser's score.

    Among equals it takes the largest K, then the largest weight.

    Args:
        part: `Part` of the validation sentences.
        logs: array (S, K) of log P.

    Returns:
        Two `Choice`, and UAS by log P only for K = 1, 2, and so on.
    """
    counts = range(1, min(MOST, logs.shape[1]) + 1)

    def best(name: str, weights: Sequence[float]) -> tuple[Choice, list[int]]:
        tried = [Choice(name, count, weight) for count in counts for weight in weights]
        right = [int(choice.right(part, logs)["uas"].sum()) for choice in tried]
        return tried[last_best(right)], right

    alone, right = best("log P", (0.0,))
    both, _ = best("log P and parser", WEIGHTS)
    return [alone, both], (np.array(right) / part.words.sum()).tolist()


def compared(part: Part, right: Mapping[str, np.ndarray | None], seed: int) -> dict[str, Any]:
    """Scores of a choice of trees, and the difference of its UAS to the parser's."""
    base = part.heads[:, 0]
    difference = bootstrap(base, right["uas"], part.words, seed=seed)
    return {**part.shares(right), "difference": difference._asdict()}


def evaluate(
    parts: Mapping[str, Part],
    log_probability: Callable[[str], np.ndarray] | None,
    seed: int = 0,
) -> dict[str, Any]:
    """Computes all results.

    Args:
        parts: `Part` by name, `validation` first and `test`.
        log_probability: function of the name of a part, which returns log P of its trees, (S, K);
            `None`: nothing is reranked.
        seed: integer, seed of the bootstrap.

    Returns:
        JSON-serializable dictionary.
    """
    results: dict[str, Any] = {
        "sentences": {name: len(part.words) for name, part in parts.items()},
        "words": {name: int(part.words.sum()) for name, part in parts.items()},
        "parser": {
            name: part.shares(part.right(np.zeros(len(part.words), int)))
            for name, part in parts.items()
        },
        "oracle": {
            str(count): {name: part.oracle(count) for name, part in parts.items()}
            for count in ORACLES
            if count <= max(part.heads.shape[1] for part in parts.values())
        },
        "reranked": [],
    }
    if log_probability is None:
        return results
    logs = {name: log_probability(name) for name in parts}
    chosen, results["uas_by_k"] = choices(parts["validation"], logs["validation"])
    for choice in chosen:
        scores = {
            name: compared(part, choice.right(part, logs[name]), seed)
            for name, part in parts.items()
        }
        results["reranked"].append({**choice._asdict(), **scores})
    return results


HEADER = (
    *("Percent", "K", "weight", "UAS validation", "LAS", "UAS test", "LAS"),
    *("test - parser", "95%", "p"),
)


def rows_of(results: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table of results, followed by published ones."""

    def shown(scores):
        found = [scores[part][name] for part in ("validation", "test") for name in ("uas", "las")]
        return ["" if share is None else f"{100 * share:.2f}" for share in found]

    rows = [["parser", "1", "", *shown(results["parser"])]]
    for one in results["reranked"]:
        value, low, high, p = (100 * number for number in one["test"]["difference"].values())
        row = [one["name"], str(one["k"]), f"{one['weight']:.4g}", *shown(one)]
        row += [f"{value:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{p / 100:.4f}"]
        rows.append(row)
    for count, scores in results["oracle"].items():
        rows.append([f"best of the first {count}", count, "", *shown(scores)])
    for name, numbers in PUBLISHED.items():
        rows.append([f"published: {name}", "", "", *(f"{number:.2f}" for number in numbers)])
    return [row + [""] * (len(HEADER) - len(row)) for row in rows]
