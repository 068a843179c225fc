"""Unlabelled scores of predicted trees against gold trees."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from keras_onlstm.utils import NltkTree

TINY = 1e-8  # added to denominators as in the authors' code, to reproduce their means exactly


def walk(tree: NltkTree) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Lists (label, start, end) of every constituent, and the words."""
    from nltk import Tree

    constituents: list[tuple[str, int, int]] = []
    words: list[str] = []
    # A constituent is pushed again below its children, and recorded when they are done.
    pending: list[tuple[NltkTree, int | None]] = [(tree, None)]
    while pending:
        node, start = pending.pop()
        if start is not None:
            constituents.append((node.label(), start, len(words)))
        elif isinstance(node, Tree):
            pending.append((node, len(words)))
            pending += [(child, None) for child in reversed(list(node))]
        else:
            words.append(node)
    return constituents, words


def _ratio(part, whole):
    return part / whole if whole else 0.0


def _f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True)
class Scores(Mapping[str, Any]):
    """Scores of any number of sentences, as a mapping; two `Scores` can be added.

    | key | value |
    |---|---|
    | `sentences` | number of sentences |
    | `precision`, `recall`, `f1` | means over sentences, without spans of one word or of all |
    | `corpus_precision`, `corpus_recall`, `corpus_f1` | of the same spans, over the corpus |
    | `evalb_precision`, `evalb_recall`, `evalb_f1` | the same, but spans of all words count |
    | `upper_bound_f1` | the mean F1 of binary trees that contain every gold span |
    | `depth` | mean over sentences of the mean depth of their words in the predicted tree |
    | `label_recall` | `{label: (found, all)}` of gold constituents, with spans of all words |

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import score
    >>> tree = Tree.fromstring("(S (NP the cat) (VP saw (NP a dog)))")
    >>> scores = score([tree], [tree]) + score([tree], [tree])
    >>> scores["sentences"], round(scores["f1"], 6), scores["label_recall"]["NP"]
    (2, 1.0, (4, 4))
    """

    sentences: int = 0
    sums: Counter = field(default_factory=Counter)  # of the scores that are means
    counts: Counter = field(default_factory=Counter)  # of spans
    found: Counter = field(default_factory=Counter)  # gold constituents, by label
    all: Counter = field(default_factory=Counter)

    def __add__(self, other: object) -> "Scores":
        if not isinstance(other, Scores):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Scores(*(_add(left, right) for left, right in pairs))

    def _values(self):
        values = {name: _ratio(self.sums[name], self.sentences) for name in _MEANS}
        both, predicted, gold = (self.counts[name] for name in ("both", "predicted", "gold"))
        for prefix, whole in (("corpus", 0), ("evalb", self.counts["whole"])):
            precision = _ratio(both + whole, predicted + whole)
            recall = _ratio(both + whole, gold + whole)
            values[f"{prefix}_precision"], values[f"{prefix}_recall"] = precision, recall
            values[f"{prefix}_f1"] = _f1(precision, recall)
        labels = {label: (self.found[label], self.all[label]) for label in sorted(self.all)}
        return {"sentences": self.sentences, **values, "label_recall": labels}

    def __getitem__(self, key: str) -> Any:
        return self._values()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'Scores'")


_MEANS = ("precision", "recall", "f1", "upper_bound_f1", "depth")


def _add(left, right):
    if isinstance(left, Counter):  # `+` would drop counts of zero
        return Counter({key: left[key] + right[key] for key in left.keys() | right.keys()})
    return left + right


def _sentence(predicted, gold, number):
    (constituents, predicted_words), (gold_constituents, gold_words) = walk(predicted), walk(gold)
    words = len(predicted_words)
    if words != len(gold_words):
        raise ValueError(
            f"sentence {number}: the trees must have as many words, but the predicted tree has "
            f"{words} and the gold tree {len(gold_words)}."
        )
    if not words:
        raise ValueError(f"sentence {number}: the tree has no words.")
    spans, gold_spans = (
        {(start, end) for _, start, end in labelled if 1 < end - start < words}
        for labelled in (constituents, gold_constituents)
    )
    both = len(spans & gold_spans)
    precision = 1.0 if not spans | gold_spans else both / (len(spans) + TINY)
    recall = both / (len(gold_spans) + TINY) if gold_spans else 1.0
    # A binary tree of n words has n - 2 spans of more than one and fewer than n words.
    bound = _ratio(len(gold_spans), words - 2) if gold_spans else float(words <= 2)
    distinct = {
        (start, end, re.split("[-=]", label)[0] or label)
        for label, start, end in gold_constituents
        if end - start > 1
    }
    recalled = spans | {(0, words)}
    sums = {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall + TINY),
        "upper_bound_f1": _f1(bound, 1.0),
        # A word's depth is the number of constituents of several words around it.
        "depth": sum(e - s for _, s, e in constituents if e - s > 1) / words,
    }
    counts = {"both": both, "predicted": len(spans), "gold": len(gold_spans)}
    return Scores(
        1,
        Counter(sums),
        Counter({**counts, "whole": int(words > 1)}),
        Counter(label for start, end, label in distinct if (start, end) in recalled),
        Counter(label for _, _, label in distinct),
    )


def score(predicted_trees: Iterable[NltkTree], gold_trees: Iterable[NltkTree]) -> Scores:
    """Scores predicted trees against gold trees by their spans, without labels.

    A sentence whose gold tree has no scored span has recall 1, and precision 1 if the predicted
    tree has none either. Labels of the gold trees are cut at the first `-` or `=`.

    Raises:
        ValueError: if the numbers of trees differ, or the lengths of two trees of a sentence.

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import right_branching, score
    >>> gold = Tree.fromstring("(S (NP the cat) (VP saw (NP a dog)))")
    >>> scores = score([right_branching(gold.leaves())], [gold])
    >>> round(scores["precision"], 3), round(scores["recall"], 3), scores["label_recall"]["NP"]
    (0.667, 0.667, (1, 2))
    """
    total = Scores()
    predicted_trees, gold_trees = list(predicted_trees), list(gold_trees)
    if len(predicted_trees) != len(gold_trees):
        raise ValueError(
            "predicted_trees and gold_trees must have as many trees, got "
            f"{len(predicted_trees)} and {len(gold_trees)}."
        )
    for number, pair in enumerate(zip(predicted_trees, gold_trees, strict=True), 1):
        total += _sentence(*pair, number)
    return total
