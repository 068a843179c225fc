"""Accuracy of language models on minimal pairs, with confidence intervals and tests.

The score of a sentence is the log-probability of its words and of the full stop after them, read
from zero states. A model is right if the grammatical sentence scores strictly higher.

Source: Marvin & Linzen 2018, https://aclanthology.org/D18-1151.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets.syntactic_evaluation import CONTRASTS, ROWS, MinimalPair, Row
from keras_onlstm.utils import Sentence
from keras_onlstm.utils.validation import module_getattr

__all__ = [
    "RowResult", "compare", "difference_interval", "discrimination", "interval", "mcnemar",
    "score_pairs",
]  # fmt: skip

STOP = "."
_QUANTILE = NormalDist().inv_cdf(0.975)  # for 95% confidence intervals


class RowResult(NamedTuple):
    """A model's results on one row of minimal pairs.

    Attributes:
        row: `syntactic_evaluation.Row`.
        cases: list of (construction, case), one for every comparison.
        right: booleans (comparisons,), whether the better sentence scored strictly higher.
        known: booleans (comparisons,), whether all words that differ are in the vocabulary.
        margins: numbers (comparisons,), by how much the better sentence scored higher, in nats.
        words: list of (word of the better sentence, word of the worse one) if the sentences differ
            in only one word, else `None`.
    """

    row: Row
    cases: list[tuple[str, str]]
    right: np.ndarray
    known: np.ndarray
    margins: np.ndarray
    words: list[tuple[str, str] | None]


class Scoring(Protocol):
    """Interface of the models that `score_pairs` takes."""

    vocabulary: list[str] | None

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]: ...


def score_pairs(
    model: Scoring,
    pairs: Iterable[MinimalPair],
    block: int = 4096,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, np.ndarray]:
    """Log-probabilities of all sentences of minimal pairs, computed once for each distinct one.

    Args:
        model: `LanguageModel`. If its vocabulary lacks the full stop, `<eos>` is scored instead.
        pairs: list of `MinimalPair`.
        block: number of sentences between two calls of `progress`.
        progress: function of the number of sentences done and of all, or `None`.

    Returns:
        Dictionary from sentences to float32 arrays (words + 1,), in nats.

    >>> from keras_onlstm.models import LanguageModel
    >>> words = ["<eos>", "<unk>", ".", "the", "author", "laughs", "laugh"]
    >>> model = LanguageModel(len(words), 8, 16, chunk_size=4, vocabulary=words)
    >>> pair = MinimalPair("simple", "sing", ("the author laughs", "the author laugh"))
    >>> {sentence: len(logs) for sentence, logs in score_pairs(model, [pair]).items()}
    {'the author laugh': 4, 'the author laughs': 4}
    """
    distinct = {sentence for pair in pairs for sentence in pair.sentences}
    sentences = sorted(distinct, key=lambda sentence: (sentence.count(" "), sentence))
    has_stop = STOP in (model.vocabulary or ())
    scores: dict[str, np.ndarray] = {}
    for start in range(0, len(sentences), block):
        part = sentences[start : start + block]
        texts = [f"{sentence} {STOP}" for sentence in part] if has_stop else part
        scores.update(zip(part, model.score(texts, end=not has_stop), strict=True))
        if progress is not None:
            progress(len(scores), len(sentences))
    return scores


def _differing(better, worse):
    """Positions at which two lists of words differ, or `None` if their lengths do."""
    if len(better) != len(worse):
        return None
    return [i for i, (a, b) in enumerate(zip(better, worse, strict=True)) if a != b]


def _is_known(better, worse, positions, vocabulary):
    """Whether all words in which two sentences differ are known."""
    if positions is None:  # the words that one has more often than the other
        words = {w for w in {*better, *worse} if better.count(w) != worse.count(w)}
    else:
        words = {sentence[i] for sentence in (better, worse) for i in positions}
    return words <= vocabulary


def rows_of(pairs: Iterable[MinimalPair]) -> list[Row]:
    """The rows of minimal pairs: those of the published table, then of other constructions."""
    present = {(pair.construction, len(pair.sentences)) for pair in pairs}
    rows = [row for row in ROWS if present & _published(row)]
    for name, count in sorted(present.difference(*map(_published, ROWS))):
        if count == 2:
            rows.append(Row("", "", name, (name,)))
        else:
            rows += [Row("", "", f"{name} ({c})", (name,), both) for c, both in CONTRASTS.items()]
    return rows


def _published(row):
    """The constructions of a row, with the number of sentences of their items."""
    return {(name, 3 if row.contrast else 2) for name in row.constructions}


def compare(
    pairs: Sequence[MinimalPair],
    scores: Mapping[str, np.ndarray],
    vocabulary: Iterable[str],
    differing: bool = False,
) -> list[RowResult]:
    """Compares the sentences of minimal pairs by their scores.

    Args:
        pairs: list of `MinimalPair`.
        scores: dictionary that `score_pairs` returned.
        vocabulary: the words that the model knows.
        differing: whether to add up only the words in which two sentences differ.

    Returns:
        List of `RowResult`: of the rows of the published table, then of other constructions.

    Raises:
        ValueError: with `differing`, if two sentences have different numbers of words.

    >>> pair = MinimalPair("passive", "sing", ("it is seen", "it are seen"))
    >>> scores = {"it is seen": np.array([-2, -1, -4]), "it are seen": np.array([-2, -3, -4])}
    >>> (result,) = compare([pair], scores, ["it", "is", "seen"])
    >>> result.right.tolist(), result.margins.tolist(), result.known.tolist()
    ([True], [2.0], [False])
    """
    vocabulary = frozenset(vocabulary)
    totals = {sentence: math.fsum(array) for sentence, array in scores.items()}
    results = []
    for row in rows_of(pairs):
        first, second = row.contrast or (0, 1)
        keys, cases, known, margins, words = _published(row), [], [], [], []
        for pair in pairs:
            if (pair.construction, len(pair.sentences)) not in keys:
                continue
            sentences = pair.sentences[first], pair.sentences[second]
            better, worse = (sentence.split() for sentence in sentences)
            positions = _differing(better, worse)
            if differing and positions is None:
                raise ValueError(
                    f"{pair.construction}, {pair.case}: {' and '.join(map(repr, sentences))} have "
                    "different numbers of words, so they cannot be compared by differing words."
                )
            high, low = (
                math.fsum(scores[s][i] for i in positions) if differing else totals[s]
                for s in sentences
            )
            margins.append(high - low)
            cases.append((pair.construction, pair.case))
            known.append(_is_known(better, worse, positions, vocabulary))
            is_single = positions is not None and len(positions) == 1
            words.append((better[positions[0]], worse[positions[0]]) if is_single else None)
        array = np.array(margins)
        results.append(RowResult(row, cases, array > 0, np.array(known), array, words))
    return results


def discrimination(result: RowResult) -> float | None:
    """How well the context determines the right word, whatever the words' frequencies.

    A model that always prefers *smile* to *smiles* is right in half of the pairs, whether or not
    its preference is weaker after *the author laughs and*. So the preference for one of two words
    is compared between contexts that require it and contexts that require the other. The result is
    the share of such pairs of contexts in which it is stronger where it is right, the area under
    the ROC curve. Unknown words are left out.

    Returns:
        Number in [0, 1], 0.5 if contexts have no effect: the mean over pairs of words, weighted by
        their numbers of comparisons. `None` if no two words are compared both ways.

    >>> words = [("smiles", "smile"), ("smile", "smiles")]
    >>> cases, known = [("simple_agrmt", "sing"), ("simple_agrmt", "plur")], np.array([True, True])
    >>> margins = np.array([-1.0, 3.0])  # always "smile", but less so where "smiles" is right
    >>> discrimination(RowResult(None, cases, margins > 0, known, margins, words))
    1.0
    """
    groups: dict[tuple[str, ...], tuple[list[float], list[float]]] = {}
    for (construction, _), known, margin, words in zip(
        result.cases, result.known, result.margins, result.words, strict=True
    ):
        if words is not None and known:
            is_first = min(words) == words[0]
            group = groups.setdefault((construction, *sorted(words)), ([], []))
            group[not is_first].append(margin if is_first else -margin)
    areas, weights = [], []
    for wanted, unwanted in groups.values():
        if wanted and unwanted:
            order = np.sort(unwanted)
            below = np.searchsorted(order, wanted, "left") + np.searchsorted(order, wanted, "right")
            areas.append(below.mean() / (2 * len(order)))
            weights.append(len(wanted) + len(unwanted))
    return float(np.average(areas, weights=weights)) if areas else None


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's 95% confidence interval (low, high) for `right` successes in `count` trials.

    >>> low, high = interval(9, 10)
    >>> round(low, 4), round(high, 4)
    (0.5958, 0.9821)
    """
    share, square = right / count, _QUANTILE**2 / count
    middle = share + square / 2
    width = _QUANTILE * math.sqrt(share * (1 - share) / count + square / (4 * count))
    return max((middle - width) / (1 + square), 0.0), min((middle + width) / (1 + square), 1.0)


def difference_interval(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, float, float]:
    """95% confidence interval for the difference of two models' accuracies on the same pairs.

    Source: Newcombe 1998, "Improved confidence intervals for the difference between binomial
    proportions based on paired data", method 10.

    Args:
        first: booleans (pairs,), where the first model is right.
        second: booleans (pairs,), where the second model is right.

    Returns:
        (difference, lowest, highest): first minus second.

    >>> interval = difference_interval([True] * 8 + [False] * 2, [True] * 5 + [False] * 5)
    >>> [round(number, 4) for number in interval]
    [0.3, -0.053, 0.5665]
    """
    first, second = np.asarray(first, "bool"), np.asarray(second, "bool")
    count = len(first)
    both, only_first = int(np.sum(first & second)), int(np.sum(first & ~second))
    only_second, neither = int(np.sum(~first & second)), int(np.sum(~first & ~second))
    right_1, right_2 = both + only_first, both + only_second
    (low_1, high_1), (low_2, high_2) = interval(right_1, count), interval(right_2, count)
    product = right_1 * (count - right_1) * right_2 * (count - right_2)
    association: float = both * neither - only_first * only_second
    if association > 0:
        association = max(association - count / 2, 0)  # correction for continuity
    correlation = association / math.sqrt(product) if product else 0.0

    def width(a, b):
        return math.sqrt(max(a * a - 2 * correlation * a * b + b * b, 0.0))

    share_1, share_2 = right_1 / count, right_2 / count
    return (
        share_1 - share_2,
        share_1 - share_2 - width(share_1 - low_1, high_2 - share_2),
        share_1 - share_2 + width(high_1 - share_1, share_2 - low_2),
    )


def mcnemar(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The two-sided p-value of McNemar's exact test, given where (pairs,) two models are right.

    >>> mcnemar([True] * 5 + [False], [False] * 5 + [True])
    0.21875
    """
    first, second = np.asarray(first, "bool"), np.asarray(second, "bool")
    only_first, only_second = int(np.sum(first & ~second)), int(np.sum(~first & second))
    total, ways, term = only_first + only_second, 0, 1
    for number in range(min(only_first, only_second) + 1):
        ways += term
        term = term * (total - number) // (number + 1)  # binomial coefficient
    return min(2 * ways / 2**total, 1.0)


__getattr__ = module_getattr(__name__, {"Outcome": "RowResult"})
