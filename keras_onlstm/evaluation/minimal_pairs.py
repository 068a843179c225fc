"""Which sentence of a minimal pair a language model prefers, and how sure that is.

The score of a sentence is the log-probability of its words and of the full stop after them, read
from zero states. A model is right where the better sentence scores strictly higher.

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
from keras_onlstm.utils.types import Sentence

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
_Z = NormalDist().inv_cdf(0.975)  # of intervals of 95%


class Outcome(NamedTuple):
    """What a model made of a row of minimal pairs.

    Attributes:
        row: `syntactic_evaluation.Row`.
        cases: list of (construction, case), one for every comparison.
        right: booleans (comparisons,), whether the better sentence scored strictly higher.
        known: likewise, whether the model knows all the words in which the sentences differ.
        margins: numbers (comparisons,), by how much the better sentence scored higher, in nats.
        words: list of (word of the better sentence, word of the worse one) where these are all
            that differs, else `None`.
    """

    row: Row
    cases: list[tuple[str, str]]
    right: np.ndarray
    known: np.ndarray
    margins: np.ndarray
    words: list[tuple[str, str] | None]


class Scoring(Protocol):
    """What `score_pairs` wants of a model."""

    vocabulary: list[str] | None

    def score(self, sentences: Iterable[Sentence], end: bool = True) -> list[np.ndarray]:
        """Log-probabilities of the words of sentences, and of the end."""
        ...


def score_pairs(
    model: Scoring,
    pairs: Iterable[MinimalPair],
    block: int = 4096,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, np.ndarray]:
    """Log-probabilities of all sentences of minimal pairs, each distinct one read once.

    Args:
        model: `LanguageModel` with a vocabulary. If that lacks the full stop, the end of the
            sentence takes its place.
        pairs: list of `MinimalPair`.
        block: how many sentences are read between two calls of `progress`.
        progress: function of the number of sentences done and of all, or `None`.

    Returns:
        Dictionary from sentences to float32 arrays (words + 1,), in nats: of every word, and of the
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
    """The places in which two sentences of a pair differ, `None` if one has more words."""
    one, other = (pair.sentences[place].split() for place in (first, second))
    if len(one) != len(other):
        return None
    return [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _known(pair, first, second, vocabulary):
    """Whether all words in which two sentences differ are known.

    Where one has more words, these are the words that it has more often than the other.
    """
    one, other = (pair.sentences[place].split() for place in (first, second))
    places = _differing(pair, first, second)
    if places is not None:
        words = {sentence[place] for sentence in (one, other) for place in places}
    else:
        words = {w for w in set(one) | set(other) if one.count(w) != other.count(w)}
    return words <= vocabulary


def rows_of(pairs: Iterable[MinimalPair]) -> list[Row]:
    """The rows into which minimal pairs fall.

    Args:
        pairs: list of `MinimalPair`.

    Returns:
        List of `syntactic_evaluation.Row`: those of the published table first, then one for every
        other construction, or three of them where there are three sentences.

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
        scores: what `score_pairs` returned.
        vocabulary: the words that the model knows.
        differing: whether to add up the log-probabilities of the words alone in which two
            sentences differ, instead of all.

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
    """How surely the context moves a model to the right word, however frequent the two words are.

    A model that always prefers *smile* to *smiles* is right in half of the pairs, whether or not
    its preference is weaker after *the author laughs and*. So the preference for one of two words
    is compared between the contexts that want it and those that want the other: the share of such
    pairs of contexts in which it is stronger where it is right, the area under the ROC curve. Words
    that the model does not know cannot be told apart and are left out.

    Args:
        outcome: `Outcome`, of pairs that differ in one word, each word right in some of them.

    Returns:
        Number in [0, 1], 0.5 if contexts do not matter: the mean over pairs of words, weighted by
        how many comparisons each has. `None` if no two words are compared both ways.

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
    """Wilson's interval of 95% of a share.

    Args:
        right: integer.
        count: positive integer.

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
    """Interval of 95% of the difference of two models' accuracies on the same pairs.

    Args:
        first: booleans (pairs,), where the one model is right.
        second: likewise, of the other.

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
        first: booleans (pairs,), where the one model is right.
        second: likewise, of the other.

    Returns:
        Probability of a difference as large as this or larger, if there were none: two-sided.

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
