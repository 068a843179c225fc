"""Comparing the sentences of minimal pairs, and how sure the outcome is."""

import numpy as np
import pytest

from helpers.checks import assert_close
from keras_onlstm.datasets.syntactic_evaluation import ROWS, MinimalPair
from keras_onlstm.evaluation.minimal_pairs import (
    compare,
    difference_interval,
    discrimination,
    interval,
    mcnemar,
    rows_of,
    score_pairs,
)

pytestmark = pytest.mark.keras_free


class Unigrams:
    """A language model by hand: every word has a log-probability of its own."""

    def __init__(self, **probabilities):
        self.logs = {"<eos>": -1.0, "<unk>": -9.0, **probabilities}
        self.vocabulary = list(self.logs)
        self.read = []

    def score(self, sentences, end):
        self.read += sentences
        return [
            np.array([self.logs.get(w, -9.0) for w in [*s.split(), *["<eos>"] * end]])
            for s in sentences
        ]


def pair(better, worse, construction="simple_agrmt", case="sing"):
    return MinimalPair(construction, case, (better, worse))


def accuracies(pairs, model, **kwargs):
    found = compare(pairs, score_pairs(model, pairs), model.vocabulary, **kwargs)
    return {o.row.name: (o.right.tolist(), o.known.tolist()) for o in found}


def test_sentences_are_scored_once_with_full_stop():
    model = Unigrams(a=-2.0, b=-3.0, **{".": -0.5})
    pairs = [pair("a b", "a a"), pair("a a", "b"), pair("b", "a b")]
    told = []
    scores = score_pairs(model, pairs, block=2, progress=lambda *numbers: told.append(numbers))
    assert sorted(model.read) == ["a a .", "a b .", "b ."]
    assert told == [(2, 3), (3, 3)]
    assert {key: value.tolist() for key, value in scores.items()} == {
        "a b": [-2.0, -3.0, -0.5],
        "a a": [-2.0, -2.0, -0.5],
        "b": [-3.0, -0.5],
    }


def test_end_of_sentence_is_scored_without_full_stop():
    scores = score_pairs(Unigrams(a=-2.0), [pair("a", "a a")])
    assert scores["a"].tolist() == [-2.0, -1.0] and scores["a a"].tolist() == [-2.0, -2.0, -1.0]


def test_accuracies_and_known_words():
    model = Unigrams(a=-1.0, b=-2.0, c=-2.0)
    pairs = [
        pair("a a", "a b"),  # right
        pair("b a", "a a"),  # wrong
        pair("a b", "a c"),  # a tie is wrong
        pair("a x", "a y"),  # both unknown: a tie
        pair("a a", "a y"),  # right, one of two unknown
        pair("x a", "x b"),  # right; shared words may be unknown
    ]
    assert accuracies(pairs, model) == {
        "Simple": ([True, False, False, False, True, True], [True, True, True, False, False, True])
    }


def test_sums_in_different_order_are_ties():
    """Sums of the same numbers in another order."""
    model = Unigrams(a=-0.1, b=-0.2, c=-0.3)
    found = accuracies([pair("a b c", "c b a"), pair("c b a", "a b c")], model)
    assert found["Simple"][0] == [False, False]


def test_differing_compares_only_different_words():
    class Following(Unigrams):
        """After b all words are likelier."""

        def score(self, sentences, end):
            found = super().score(sentences, end)
            for sentence, scores in zip(sentences, found, strict=True):
                if "b" in sentence.split():
                    scores[sentence.split().index("b") + 1 :] += 5.0
            return found

    model = Following(a=-1.0, b=-2.0)
    pairs = [pair("a a a", "a b a")]
    assert accuracies(pairs, model)["Simple"][0] == [False]
    assert accuracies(pairs, model, differing=True)["Simple"][0] == [True]


def test_sentences_of_unequal_lengths():
    model = Unigrams(a=-1.0, b=-2.0)
    pairs = [pair("a b", "a b b"), pair("a b", "a b x"), pair("x b", "x b b")]
    assert accuracies(pairs, model)["Simple"] == ([True, True, True], [True, False, True])
    with pytest.raises(ValueError, match="simple_agrmt, sing: 'a b' and 'a b b' have different"):
        accuracies(pairs, model, differing=True)


def test_three_sentences_are_compared_in_pairs():
    model = Unigrams(no=-1.0, the=-2.0, most=-1.5, men=-1.0)
    three = MinimalPair("simple_npi_anim", "past", ("no men", "the men", "most men"))
    crossed = MinimalPair("simple_npi_inanim", "past", ("no the men", "the no men", "most men x"))
    found = accuracies([three, crossed], model)
    assert found == {
        "Simple (grammatical vs. intrusive)": ([True, False], [True, True]),
        "Simple (intrusive vs. ungrammatical)": ([False, True], [True, False]),
        "Simple (grammatical vs. ungrammatical)": ([True, True], [True, False]),
    }


def test_constructions_are_pooled_by_count():
    model = Unigrams(a=-1.0, b=-2.0)
    pairs = [pair("a", "b", "prep_anim")] * 3 + [pair("b", "a", "prep_inanim", "plur")]
    (outcome,) = compare(pairs, score_pairs(model, pairs), model.vocabulary)
    assert outcome.row.name == "Across a prepositional phrase"
    assert outcome.right.mean() == 0.75
    assert outcome.cases == [("prep_anim", "sing")] * 3 + [("prep_inanim", "plur")]


def test_discrimination_is_the_area_under_the_curve():
    draw = np.random.default_rng(3)
    contexts = [f"{number} w{n}" for n in range(9) for number in ("one", "many")]
    numbers = {(c, w): draw.normal() for c in contexts for w in ("is", "are", "has", "have")}

    class Contextual(Unigrams):
        """Strongly prefers `are` and `has`, and adds the effect of the context."""

        def score(self, sentences, end):
            bias = {"is": -9.0, "are": -1.0, "has": -1.0, "have": -9.0}
            split = [s.removesuffix(" .").rsplit(" ", 1) for s in sentences]
            return [np.array([bias.get(w, 0.0) + numbers.get((c, w), 0.0)]) for c, w in split]

    model = Contextual(**dict.fromkeys(("is", "are", "has", "have"), -1.0))
    verbs = {"one": [("is", "are")], "many": [("are", "is"), ("have", "has")]}
    verbs["one"] += [("has", "have"), ("goes", "go")]  # the last two are unknown
    pairs = [
        pair(f"{context} {better}", f"{context} {worse}", case=context)
        for context in contexts
        for better, worse in verbs[context.split()[0]]
    ]
    pairs.append(pair("one is is", "one are are"))  # differs in two words
    (outcome,) = compare(pairs, score_pairs(model, pairs), model.vocabulary)

    def preference(context, first, second):
        return numbers[context, first] - numbers[context, second]

    in_order = [
        preference(one, *words) > preference(many, *words)
        for words in (("is", "are"), ("has", "have"))
        for one in contexts[::2]
        for many in contexts[1::2]
    ]
    assert_close(discrimination(outcome), np.mean(in_order), 1e-12, "discrimination")
    assert outcome.right[outcome.known].mean() == pytest.approx(0.5, abs=0.05)  # bias decides


def test_discrimination_without_context_effect():
    model = Unigrams(a=-1.0, b=-2.0)
    pairs = [pair("a", "b"), pair("b", "a"), pair("a", "b"), pair("x a", "x b")]
    (outcome,) = compare(pairs, score_pairs(model, pairs), model.vocabulary)
    assert discrimination(outcome) == 0.5  # ties
    (one_sided,) = compare(pairs[:1], score_pairs(model, pairs), model.vocabulary)
    assert discrimination(one_sided) is None


def test_other_constructions_get_their_own_rows():
    three = MinimalPair("island", "x", ("a", "b", "c"))
    pairs = [three, pair("a", "b", "wh"), pair("a", "b", "vp_coord"), pair("a", "b", "npi_x")]
    found = rows_of(pairs)
    contrasts = {row.name: row.contrast for row in found}
    assert list(contrasts.values()) == [None, (0, 1), (1, 2), (0, 2), None, None]
    assert [*contrasts][:2] == ["Short VP coordination", "island (grammatical vs. intrusive)"]
    assert [*contrasts][4:] == ["npi_x", "wh"]
    everything = [
        MinimalPair(name, "x", ("a", "b", "c") if row.contrast else ("a", "b"))
        for row in ROWS
        for name in row.constructions
    ]
    assert rows_of(everything) == ROWS


def test_wilsons_interval():
    # scipy.stats.binomtest(k, n).proportion_ci(method="wilson"), SciPy 1.17
    for right, count, low, high in (
        (9, 10, 0.5958499732047615, 0.9821237869049271),
        (0, 10, 0.0, 0.2775327998628892),
        (10, 10, 0.7224672001371107, 1.0),
        (11200 - 17, 11200, 0.9975703848216362, 0.9990520719526961),
    ):
        assert_close(np.array(interval(right, count)), np.array([low, high]), 1e-12, "interval")


def table(both, one, other, none):
    """Outcomes of two models: both right, one of them, none."""
    first = [True] * (both + one) + [False] * (other + none)
    second = [True] * both + [False] * one + [True] * other + [False] * none
    return first, second


def test_newcombes_interval():
    # The example of Newcombe 1998, method 10: 36 both right, 12 and 2 one of them, n = 50.
    found = difference_interval(*table(36, 12, 2, 0))
    assert [round(number, 4) for number in found] == [0.2, 0.0569, 0.3404]


def test_difference_interval_is_antisymmetric():
    first, second = table(50, 20, 9, 21)
    difference, low, high = difference_interval(first, second)
    other = difference_interval(second, first)
    assert_close(np.array(other), -np.array([difference, high, low]), 1e-12, "interval")
    assert low < difference < high
    assert difference_interval([True] * 5, [True] * 5)[0] == 0


def test_mcnemar():
    # scipy.stats.binomtest(k, n, 0.5).pvalue, SciPy 1.17
    for one, other, expected in (
        (5, 1, 0.21875),
        (0, 0, 1.0),
        (3, 3, 1.0),
        (12, 2, 0.012939453125),
        (400, 480, 0.007707305043339153),
    ):
        assert_close(mcnemar(*table(7, one, other, 3)), expected, 1e-12, "p")
        assert mcnemar(*table(7, one, other, 3)) == mcnemar(*table(7, other, one, 3))
