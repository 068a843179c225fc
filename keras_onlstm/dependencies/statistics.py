"""Statistics of dependency trees: lengths, depths, dependents of a word, distances to heads."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.validation import warn_renamed

__all__ = ["Summary", "statistics", "statistics_rows"]

_QUANTILES = (0.1, 0.5, 0.9)
_TITLES = {
    "words": "words of a sentence",
    "depth": "depth of a tree",
    "left": "dependents on the left of a word",
    "right": "dependents on the right of a word",
    "distance": "words from a word to its head",
}


class Summary(NamedTuple):
    """Mean, quantiles 0.1 (`low`), 0.5 (`median`) and 0.9 (`high`), and maximum of numbers.

    A quantile is the smallest number that this share of them does not exceed.
    """

    mean: float
    low: int
    median: int
    high: int
    maximum: int

    @property
    def greatest(self) -> int:
        """Deprecated. Use `maximum`."""
        warn_renamed("Summary.greatest", "maximum")
        return self.maximum


def _summary(numbers):
    numbers = np.asarray(numbers)
    low, median, high = np.quantile(numbers, _QUANTILES, method="inverted_cdf").tolist()
    return Summary(float(numbers.mean()), low, median, high, int(numbers.max()))


def statistics(trees: Iterable[DependencyTree]) -> dict[str, Summary]:
    """Summarises lengths, depths, numbers of dependents, and distances to heads.

    Args:
        trees: iterable of at least one `DependencyTree`.

    Returns:
        Dictionary of `Summary`: `words` and `depth` of each tree; number of dependents on the
        `left` and `right` of each word; `distance` of each word from its head, 1 for neighbours.
        The dependent of ROOT has no distance.

    Raises:
        ValueError: if `trees` is empty.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.dependencies.statistics import statistics
    >>> trees = [DependencyTree("the cat saw a dog".split(), [2, 3, 0, 5, 3])]
    >>> statistics(trees)["words"], statistics(trees)["left"]
    (Summary(mean=5.0, low=5, median=5, high=5, maximum=5),
     Summary(mean=0.6, low=0, median=1, high=1, maximum=1))
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
    """Makes table rows of statistics: their names, and a column for each corpus of trees.

    The columns have the mean and, in brackets, the 0.1, 0.5 and 0.9 quantiles and the maximum.

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.dependencies.statistics import statistics_rows
    >>> for row in statistics_rows({"chains": [chain(["a"] * n) for n in range(1, 11)]})[1:4]:
    ...     print(row)
    ['depth of a tree', '5.50 (1 5 9; 10)']
    ['dependents on the left of a word', '0.00 (0 0 0; 0)']
    ['dependents on the right of a word', '0.82 (0 1 1; 1)']
    """
    summaries = [statistics(trees) for trees in corpora.values()]
    return [
        [title, *(_format(summary[key]) for summary in summaries)] for key, title in _TITLES.items()
    ]


def _format(summary):
    mean, low, median, high, maximum = summary
    return f"{mean:.2f} ({low} {median} {high}; {maximum})"
