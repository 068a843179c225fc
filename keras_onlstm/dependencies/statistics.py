"""Statistics of dependency trees: lengths, depths, dependents of a word, distances to heads."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.validation import warn_renamed

_TITLES = {
    "words": "words of a sentence",
    "depth": "depth of a tree",
    "left": "dependents on the left of a word",
    "right": "dependents on the right of a word",
    "distance": "words from a word to its head",
}


class Summary(NamedTuple):
    """Mean, quantiles 0.1, 0.5 and 0.9, each the smallest number that reaches it, and maximum."""

    mean: float
    low: int
    median: int
    high: int
    maximum: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low} {self.median} {self.high}; {self.maximum})"

    @property
    def greatest(self) -> int:
        """Deprecated. Use `maximum`."""
        warn_renamed("Summary.greatest", "maximum")
        return self.maximum


def _summary(numbers):
    low, median, high = np.quantile(numbers, (0.1, 0.5, 0.9), method="inverted_cdf").tolist()
    return Summary(float(np.mean(numbers)), low, median, high, max(numbers))


def statistics(trees: Iterable[DependencyTree]) -> dict[str, Summary]:
    """Summarises `words`, `depth`, `left`, `right` and `distance` of at least one tree.

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.dependencies.statistics import statistics
    >>> statistics([DependencyTree("the cat saw a dog".split(), [2, 3, 0, 5, 3])])["left"]
    Summary(mean=0.6, low=0, median=1, high=1, maximum=1)
    """
    numbers: dict[str, list[int]] = {name: [] for name in _TITLES}
    for tree in trees:
        numbers["words"].append(len(tree))
        numbers["depth"].append(tree.depth)
        for left, right in tree.dependents()[1:]:
            numbers["left"].append(len(left))
            numbers["right"].append(len(right))
        heads = enumerate(tree.heads, 1)
        numbers["distance"] += [abs(position - head) for position, head in heads if head]
    if not numbers["words"]:
        raise ValueError("trees must not be empty.")
    return {name: _summary(values or [0]) for name, values in numbers.items()}


def statistics_rows(corpora: Mapping[str, Iterable[DependencyTree]]) -> list[list[str]]:
    """Makes table rows of statistics: a title, and a `Summary` as text for each corpus.

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.dependencies.statistics import statistics_rows
    >>> statistics_rows({"chains": [chain(["a"] * n) for n in range(1, 11)]})[1]
    ['depth of a tree', '5.50 (1 5 9; 10)']
    """
    summaries = [statistics(trees) for trees in corpora.values()]
    return [[title, *(str(s[key]) for s in summaries)] for key, title in _TITLES.items()]
