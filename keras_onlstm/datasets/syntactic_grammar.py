"""Minimal pairs of a small grammar, so that syntactic evaluation runs without a download.

The constructions are those of Marvin & Linzen 2018, under the same names; words and sentences are
our own. All words are in the vocabulary of the Penn Treebank as Mikolov prepared it.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from keras_onlstm.datasets.syntactic_evaluation import MinimalPair
from keras_onlstm.utils.validation import check_integer

__all__ = ["generate"]


def _words(text):
    return text.split()


def _nouns(text):
    return [(noun, f"{noun}s") for noun in text.split()]


def _verbs(text):
    return [(f"{verb}s", verb) for verb in text.split()]


# Nouns and verbs are pairs: [0] singular, [1] plural.
_PEOPLE = _nouns(
    "executive analyst lawyer official investor trader manager director customer "
    "employee worker banker judge senator farmer teacher doctor writer"
)
_OTHERS = _PEOPLE[::2]  # people in phrases between subject and verb
_THINGS = _nouns("report plan bill product contract program book film")
_ACTS = _verbs("work leave return agree decline win move")
_FEELINGS = _verbs("want need know see support help like oppose")
_HABITS = [("makes decisions every day", "make decisions every day"),
           ("sells shares at night", "sell shares at night"),
           ("buys books for the company", "buy books for the company"),
           ("writes letters at home", "write letters at home"),
           ("takes money from the bank", "take money from the bank")]  # fmt: skip
_PROPERTIES = [(f"is {p}", f"are {p}") for p in _words("good new important useful expensive")]
_ACTIONS = _words("helped protected defended blamed hurt found injured criticized")
_REPORTS = _words("said thought believed knew")
_REFLEXIVES = [("himself", "themselves"), ("herself", "themselves")]
_NUMBERS = ("singular", "plural")
_EVER = {"past": "have ever been", "future": "will ever be"}  # polarity items, by case
# Sentences of words in the slots of a construction, for each of its cases.
_Cases = dict[str, Callable[[dict[str, Any]], tuple[str, ...]]]


def _agreement(frame: str, target: str = "verb", number: str = "n") -> _Cases:
    """Cases for all numbers of the nouns, n and, if it occurs in the frame, m.

    `{noun_n}` is a word with the number n. The sentences differ in the slot `target`: the first has
    its form with the number `number`.
    """
    letters = "nm" if "_m}" in frame else "n"
    cases: _Cases = {}
    for values in product((0, 1), repeat=len(letters)):
        numbers = dict(zip(letters, values, strict=True))
        case = _NUMBERS[numbers[number]]
        if len(letters) > 1:
            case += f", beside a {_NUMBERS[numbers['m' if number == 'n' else 'n']]}"
        cases[case] = partial(_agreement_pair, frame, target, numbers, numbers[number])
    return cases


def _agreement_pair(frame, target, numbers, right, words):
    forms = {f"{name}_{x}": word[n] for name, word in words.items() for x, n in numbers.items()}
    return tuple(
        frame.format(**forms, **{**words, target: words[target][n]}) for n in (right, 1 - right)
    )


def _polarity(frame: str, *determiners: tuple[str, ...]) -> _Cases:
    """Cases for the polarity items. The sentences differ in their determiners."""
    return {
        case: partial(_polarity_triple, frame, determiners, ever) for case, ever in _EVER.items()
    }


def _polarity_triple(frame, determiners, ever, words):
    plurals = {name: word if isinstance(word, str) else word[1] for name, word in words.items()}
    return tuple(frame.format(*choice, ever=ever, **plurals) for choice in determiners)


def _constructions() -> Iterator[tuple[str, dict[str, list], _Cases]]:
    """The names, the words of each slot, and the cases of the constructions."""
    people, across = {"noun": _PEOPLE}, {"other": _OTHERS, "feels": _FEELINGS}
    reflexive = {"action": _ACTIONS, "verb": _REFLEXIVES}
    yield "simple_agrmt", {**people, "verb": _ACTS}, _agreement("the {noun_n} {verb}")
    slots = {"report": _REPORTS, "other": _OTHERS, **people, "verb": _ACTS}
    yield "sent_comp", slots, _agreement("the {other_m} {report} the {noun_n} {verb}")
    for name, verbs in (("vp_coord", _ACTS), ("long_vp_coord", _HABITS)):
        slots = {**people, "first": verbs, "verb": verbs}
        yield name, slots, _agreement("the {noun_n} {first_n} and {verb}")
    slots = {**people, "feels": _FEELINGS, "other": _OTHERS, "verb": _ACTS}
    yield "subj_rel", slots, _agreement("the {noun_n} that {feels_n} the {other_m} {verb}")
    cases = _agreement("the {noun_n} {action} {verb}")
    yield "simple_reflexives", {**people, **reflexive}, cases
    slots = {"other": _OTHERS, "report": _REPORTS, **people, **reflexive}
    cases = _agreement("the {other_m} {report} the {noun_n} {action} {verb}")
    yield "reflexive_sent_comp", slots, cases
    cases = _agreement("the {noun_n} that the {other_m} {feels_m} {action} {verb}")
    yield "reflexives_across", {**people, **across, **reflexive}, cases
    for kind, nouns, verbs, prepositions, ends in (
        ("anim", _PEOPLE, _ACTS, "near behind with", "popular rich successful powerful famous"),
        ("inanim", _THINGS, _PROPERTIES, "of by from", "sold used changed published approved"),
    ):
        slots = {"noun": nouns, "word": _words(prepositions), "other": _OTHERS, "verb": verbs}
        yield f"prep_{kind}", slots, _agreement("the {noun_n} {word} the {other_m} {verb}")
        slots = {"noun": nouns, **across, "verb": verbs}
        for name, that in (("obj_rel", " that"), ("obj_rel_no_comp", "")):
            start = f"the {{noun_n}}{that} the {{other_m}}"
            yield f"{name}_across_{kind}", slots, _agreement(start + " {feels_m} {verb}")
            cases = _agreement(start + " {feels} {verb_n}", "feels", "m")
            yield f"{name}_within_{kind}", slots, cases
        slots = {"noun": nouns, "end": _words(ends)}
        cases = _polarity("{} {noun} {ever} {end}", ("no",), ("the",), ("most",))
        yield f"simple_npi_{kind}", slots, cases
        frame = "{} {noun} that {} {other} {feels} {ever} {end}"
        cases = _polarity(frame, ("no", "the"), ("the", "no"), ("most", "the"))
        yield f"npi_across_{kind}", {"noun": nouns, **across, "end": _words(ends)}, cases


def _combinations(slots):
    """All combinations of words, without those that have a noun or verb twice."""
    rows = list(product(*slots.values()))
    for pair in (("noun", "other"), ("first", "verb")):
        if slots.keys() >= set(pair):
            i, j = map(list(slots).index, pair)
            rows = [row for row in rows if row[i] is not row[j]]
    return rows


def generate(count: int = 100, seed: int = 0) -> list[MinimalPair]:
    """Draws distinct minimal pairs of every construction.

    Args:
        count: positive integer, maximum number of pairs of each case. Each of the 22 constructions
            has 2 or 4 cases, by number of the nouns or by tense.
        seed: integer, random seed.

    >>> generate(count=1)[0].sentences
    ('the teacher agrees', 'the teacher agree')
    """
    check_integer("count", count)
    generator = random.Random(seed)
    pairs = []
    for construction, slots, cases in _constructions():
        rows = _combinations(slots)
        for case, sentences in cases.items():
            for i in sorted(generator.sample(range(len(rows)), min(count, len(rows)))):
                words = dict(zip(slots, rows[i], strict=True))
                pairs.append(MinimalPair(construction, case, sentences(words)))
    return pairs
