"""Accuracy of language models on minimal pairs, with confidence intervals and tests.

The score of a sentence is the log-probability of its words and of the full stop after them, read
from zero states. A model is right if the grammatical sentence scores strictly higher.

Source: Marvin & Linzen 2018, "Targeted Syntactic Evaluation of Language Models",
https://aclanthology.org/D18-1151.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets.syntactic_evaluation import CONTRASTS, ROWS, MinimalPair, Row
from keras_onlstm.utils import Sentence

__all__ = [
    "Outcome",
    "compare",
    "difference_interval",
    "discrimination",
    "interval",
    "mcnemar",
    "rows_of",
    "score_pairs",
]

STOP = "."
_Z = NormalDist().inv_cdf(0.975)  # for 95% confidence intervals


class Outcome(NamedTuple):
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

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]:
        """Log-probabilities of the words of each sentence, and of `<eos>` if `end`."""
        ...


def score_pairs(
    model: Scoring,
    pairs: Iterable[MinimalPair],
    block: int = 4096,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, np.ndarray]:
    """Log-probabilities of all sentences of minimal pairs, computed once for each distinct one.

    Args:
        model: `LanguageModel` with a vocabulary. If the vocabulary lacks the full stop, the end of
            the sentence is scored instead.
        pairs: list of `MinimalPair`.
        block: number of sentences between two calls of `progress`.
        progress: function of the number of sentences done and of all, or `None`.

    Returns:
        Dictionary from sentences to float32 arrays (words + 1,), in nats: of every word and of the
        full stop.

    Example:

    >>> from keras_onlstm.datasets.syntactic_evaluation import MinimalPair
    >>> from keras_onlstm.evaluation.minimal_pairs import score_pairs
    >>> from keras_onlstm.models import LanguageModel
    >>> words = ["<eos>", "<unk>", ".", "the", "author", "laughs", "laugh"]
    >>> model = LanguageModel(len(words), 8, 16, chunk_size=4, vocabulary=words)
    >>> pair = MinimalPair("simple", "sing", ("the author laughs", "the author laugh"))
    >>> {sentence: len(logs) for sentence, logs in score_pairs(model, [pair]).items()}
    {'the author laugh': 4, 'the author laughs': 4}
    """
    sentences = sorted(
        {s for pair in pairs for s in pair.sentences}, key=lambda s: (s.count(" "), s)
    )
    stopped = STOP in (model.vocabulary or ())
    scores_of: dict[str, np.ndarray] = {}
    for start in range(0, len(sentences), block):
        some = sentences[start : start + block]
        read = [f"{sentence} {STOP}" for sentence in some] if stopped else some
        scores = model.score(read, end=not stopped)
        scores_of.update(zip(some, scores, strict=True))
        if progress is not None:
            progress(len(scores_of), len(sentences))
    return scores_of


def _differing(pair, first, second):
    """Positions at which two sentences of a pair differ, or `None` if their lengths do."""
    one, other = (pair.sentences[place].split() for place in (first, second))
    if len(one) != len(other):
        return None
    return [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _known(pair, first, second, vocabulary):
    """Whether all words in which two sentences differ are known.

    If their lengths differ, these are the words that one has more often than the other.
    """
    one, other = (pair.sentences[place].split() for place in (first, second))
    places = _differing(pair, first, second)
    if places is not None:
        words = {sentence[place] for sentence in (one, other) for place in places}
    else:
        words = {w for w in set(one) | set(other) if one.count(w) != other.count(w)}
    return words <= vocabulary


def rows_of(pairs: Iterable[MinimalPair]) -> list[Row]:
    """Lists the rows of the results table that minimal pairs belong to.

    Args:
        pairs: list of `MinimalPair`.

    Returns:
        List of `syntactic_evaluation.Row`: first the rows of the published table, then one row for
        every other construction, or three rows if its items have three sentences.

    Example:

    >>> from keras_onlstm.datasets.syntactic_evaluation import MinimalPair
    >>> from keras_onlstm.evaluation.minimal_pairs import rows_of
    >>> pair = MinimalPair("passive", "sing", ("it is seen", "it are seen"))
    >>> [row.name for row in rows_of([pair])]
    ['passive']
    """
    present = {(pair.construction, len(pair.sentences)) for pair in pairs}
    rows = [
        row
        for row in ROWS
        if any((name, 3 if row.contrast else 2) in present for name in row.constructions)
    ]
    published = {(name, 3 if row.contrast else 2) for row in ROWS for name in row.constructions}
    for name, count in sorted(present - published):
        if count == 2:
            rows.append(Row("", "", name, (name,)))
        else:
            rows += [Row("", "", f"{name} ({c})", (name,), both) for c, both in CONTRASTS.items()]
    return rows


def compare(
    pairs: Sequence[MinimalPair],
    scores: Mapping[str, np.ndarray],
    vocabulary: Iterable[str],
    differing: bool = False,
) -> list[Outcome]:
    """Compares the sentences of minimal pairs by their scores.

    Args:
        pairs: list of `MinimalPair`.
        scores: dictionary that `score_pairs` returned.
        vocabulary: the words that the model knows.
        differing: whether to add up the log-probabilities of only those words in which two
            sentences differ, instead of all words.

    Returns:
        List of `Outcome`, in the order of `rows_of`.

    Raises:
        ValueError: with `differing`, if two sentences have different numbers of words.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.datasets.syntactic_evaluation import MinimalPair
    >>> from keras_onlstm.evaluation.minimal_pairs import compare
    >>> pair = MinimalPair("passive", "sing", ("it is seen", "it are seen"))
    >>> scores = {"it is seen": np.array([-2, -1, -4]), "it are seen": np.array([-2, -3, -4])}
    >>> (outcome,) = compare([pair], scores, ["it", "is", "seen"])
    >>> outcome.right.tolist(), outcome.margins.tolist(), outcome.known.tolist()
    ([True], [2.0], [False])
    """
    vocabulary = frozenset(vocabulary)
    totals = {sentence: math.fsum(array) for sentence, array in scores.items()}
    outcomes = []
    for row in rows_of(pairs):
        first, second = row.contrast or (0, 1)
        chosen = [
            pair
            for pair in pairs
            if pair.construction in row.constructions
            and len(pair.sentences) == (3 if row.contrast else 2)
        ]
        margins, words = [], []
        for pair in chosen:
            sentences = pair.sentences[first], pair.sentences[second]
            places = _differing(pair, first, second)
            if differing:
                if places is None:
                    raise ValueError(
                        f"{pair.construction}, {pair.case}: {' and '.join(map(repr, sentences))} "
                        "have different numbers of words. The differing words alone can be "
                        "compared only where there are equally many."
                    )
                better, worse = (math.fsum(scores[s][p] for p in places) for s in sentences)
            else:
                better, worse = (totals[sentence] for sentence in sentences)
            margins.append(better - worse)
            alone = places is not None and len(places) == 1
            words.append(tuple(s.split()[places[0]] for s in sentences) if alone else None)
        known = [_known(pair, first, second, vocabulary) for pair in chosen]
        cases = [(pair.construction, pair.case) for pair in chosen]
        differences = np.array(margins)
        outcome = Outcome(row, cases, differences > 0, np.array(known), differences, words)
        outcomes.append(outcome)
    return outcomes


def discrimination(outcome: Outcome) -> float | None:
    """How well the context determines the right word, whatever the words' frequencies.

    A model that always prefers *smile* to *smiles* is right in half of the pairs, whether or not
    its preference is weaker after *the author laughs and*. So the preference for one of two words
    is compared between contexts that require it and contexts that require the other. The result is
    the share of such pairs of contexts in which it is stronger where it is right, the area under
    the ROC curve. Unknown words are left out.

    Args:
        outcome: `Outcome` of pairs that differ in one word, each word right in some of them.

    Returns:
        Number in [0, 1], 0.5 if contexts have no effect: the mean over pairs of words, weighted by
        their numbers of comparisons. `None` if no two words are compared both ways.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.evaluation.minimal_pairs import Outcome, discrimination
    >>> words = [("smiles", "smile"), ("smile", "smiles")]
    >>> cases, known = [("simple_agrmt", "sing"), ("simple_agrmt", "plur")], np.array([True, True])
    >>> margins = np.array([-1.0, 3.0])  # always "smile", but less so where "smiles" is right
    >>> discrimination(Outcome(None, cases, margins > 0, known, margins, words))
    1.0
    """
    groups: dict[tuple[str, ...], tuple[list[float], list[float]]] = {}
    for (construction, _), known, margin, words in zip(
        outcome.cases, outcome.known, outcome.margins, outcome.words, strict=True
    ):
        if words is not None and known:
            first = min(words) == words[0]
            group = groups.setdefault((construction, *sorted(words)), ([], []))
            group[not first].append(margin if first else -margin)
    areas, weights = [], []
    for wanted, unwanted in groups.values():
        if wanted and unwanted:
            order = np.sort(unwanted)
            below = np.searchsorted(order, wanted, "left") + np.searchsorted(order, wanted, "right")
            areas.append(below.mean() / (2 * len(order)))
            weights.append(len(wanted) + len(unwanted))
    return float(np.average(areas, weights=weights)) if areas else None


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's 95% confidence interval for a proportion.

    Args:
        right: integer, successes.
        count: positive integer, trials.

    Returns:
        (lowest, highest).

    Example:

    >>> from keras_onlstm.evaluation.minimal_pairs import interval
    >>> low, high = interval(9, 10)
    >>> round(low, 4), round(high, 4)
    (0.5958, 0.9821)
    """
    share, square = right / count, _Z**2 / count
    middle = share + square / 2
    width = _Z * math.sqrt(share * (1 - share) / count + square / (4 * count))
    return max((middle - width) / (1 + square), 0.0), min((middle + width) / (1 + square), 1.0)


def difference_interval(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, float, float]:
    """95% confidence interval for the difference of two models' accuracies on the same pairs.

    Args:
        first: booleans (pairs,), where the first model is right.
        second: booleans (pairs,), where the second model is right.

    Returns:
        (difference, lowest, highest): first minus second.

    Example:

    >>> from keras_onlstm.evaluation.minimal_pairs import difference_interval
    >>> interval = difference_interval([True] * 8 + [False] * 2, [True] * 5 + [False] * 5)
    >>> [round(number, 4) for number in interval]
    [0.3, -0.053, 0.5665]

    Source: Newcombe 1998, "Improved confidence intervals for the difference between binomial
    proportions based on paired data", method 10.
    """
    first, second = np.asarray(first, "bool"), np.asarray(second, "bool")
    count = len(first)
    both, one = int(np.sum(first & second)), int(np.sum(first & ~second))
    other, none = int(np.sum(~first & second)), int(np.sum(~first & ~second))
    shares = (both + one) / count, (both + other) / count
    (low_1, high_1), (low_2, high_2) = interval(both + one, count), interval(both + other, count)
    product = (both + one) * (other + none) * (both + other) * (one + none)
    linked: float = both * none - one * other
    if linked > 0:
        linked = max(linked - count / 2, 0)  # correction for continuity
    correlation = linked / math.sqrt(product) if product else 0.0

    def width(a, b):
        return math.sqrt(max(a * a - 2 * correlation * a * b + b * b, 0.0))

    difference = shares[0] - shares[1]
    return (
        difference,
        difference - width(shares[0] - low_1, high_2 - shares[1]),
        difference + width(high_1 - shares[0], shares[1] - low_2),
    )


def mcnemar(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """McNemar's exact test of whether two models differ on the same pairs.

    Args:
        first: booleans (pairs,), where the first model is right.
        second: booleans (pairs,), where the second model is right.

    Returns:
        The two-sided p-value.

    Example:

    >>> from keras_onlstm.evaluation.minimal_pairs import mcnemar
    >>> mcnemar([True] * 5 + [False], [False] * 5 + [True])
    0.21875
    """
    first, second = np.asarray(first, "bool"), np.asarray(second, "bool")
    one, other = int(np.sum(first & ~second)), int(np.sum(~first & second))
    total, ways, term = one + other, 0, 1
    for number in range(min(one, other) + 1):
        ways += term
        term = term * (total - number) // (number + 1)
    return min(2 * ways / 2**total, 1.0)
