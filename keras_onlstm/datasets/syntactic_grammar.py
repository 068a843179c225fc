"""Minimal pairs of a small grammar, so that syntactic evaluation runs without a download.

The constructions are those of Marvin & Linzen 2018, under the same names; words and sentences are
our own. All words are in the vocabulary of the Penn Treebank as Mikolov prepared it.
"""

import random
from itertools import product

from keras_onlstm.datasets.syntactic_evaluation import MinimalPair
from keras_onlstm.utils.validation import check_integer

__all__ = ["generate"]


def _words(text):
    return text.split()


# Nouns and verbs are pairs: [0] singular, [1] plural.
_PEOPLE = [
    (noun, f"{noun}s")
    for noun in _words(
        "executive analyst lawyer official investor trader manager director customer "
        "employee worker banker judge senator farmer teacher doctor writer"
    )
]
_OTHERS = _PEOPLE[::2]  # people in phrases between subject and verb
_THINGS = [
    (noun, f"{noun}s") for noun in _words("report plan bill product contract program book film")
]
_ACTS = [("works", "work"), ("leaves", "leave"), ("returns", "return"), ("agrees", "agree"),
         ("declines", "decline"), ("wins", "win"), ("moves", "move")]  # fmt: skip
_FEELINGS = [("wants", "want"), ("needs", "need"), ("knows", "know"), ("sees", "see"),
             ("supports", "support"), ("helps", "help"), ("likes", "like"),
             ("opposes", "oppose")]  # fmt: skip
_HABITS = [("makes decisions every day", "make decisions every day"),
           ("sells shares at night", "sell shares at night"),
           ("buys books for the company", "buy books for the company"),
           ("writes letters at home", "write letters at home"),
           ("takes money from the bank", "take money from the bank")]  # fmt: skip
_IS = ("is", "are")
_PROPERTIES = _words("good new important useful expensive")
_PREPOSITIONS = "near behind with", "of by from"  # for people, for things
_DEEDS = _words("helped protected defended blamed hurt found injured criticized")
_SAID = _words("said thought believed knew")
_SELVES = [("himself", "themselves"), ("herself", "themselves")]
_PRAISE = _words("popular rich successful powerful famous")
_DONE = _words("sold used changed published approved")
_EVER = {"past": "have ever been", "future": "will ever be"}
_NUMBERS = ("singular", "plural")
_BOTH = (0, 1)


def _judged(frame, forms, number):
    """A frame filled with the form that agrees and the one that does not."""
    return frame.format(forms[number]), frame.format(forms[1 - number])


def _alone(number):
    return _NUMBERS[number]


def _beside(number, other):
    return f"{_NUMBERS[number]}, beside a {_NUMBERS[other]}"


def _simple():
    for noun, verb, n in product(_PEOPLE, _ACTS, _BOTH):
        yield _alone(n), _judged(f"the {noun[n]} {{}}", verb, n)


def _sentential_complement():
    for said, other, noun, verb, n, m in product(_SAID, _OTHERS, _PEOPLE, _ACTS, _BOTH, _BOTH):
        if noun != other:
            frame = f"the {other[m]} {said} the {noun[n]} {{}}"
            yield _beside(n, m), _judged(frame, verb, n)


def _coordination(verbs):
    for noun, first, verb, n in product(_PEOPLE, verbs, verbs, _BOTH):
        if first != verb:
            yield _alone(n), _judged(f"the {noun[n]} {first[n]} and {{}}", verb, n)


def _main_verb(nouns):
    """Verb phrases for people or things: pairs of forms."""
    return _ACTS if nouns is _PEOPLE else [tuple(f"{b} {p}" for b in _IS) for p in _PROPERTIES]


def _preposition(nouns):
    between = _words(_PREPOSITIONS[nouns is _THINGS])
    for noun, word, other, verb, n, m in product(
        nouns, between, _OTHERS, _main_verb(nouns), _BOTH, _BOTH
    ):
        if noun != other:
            frame = f"the {noun[n]} {word} the {other[m]} {{}}"
            yield _beside(n, m), _judged(frame, verb, n)


def _subject_relative():
    for noun, feels, other, verb, n, m in product(_PEOPLE, _FEELINGS, _OTHERS, _ACTS, _BOTH, _BOTH):
        if noun != other:
            frame = f"the {noun[n]} that {feels[n]} the {other[m]} {{}}"
            yield _beside(n, m), _judged(frame, verb, n)


def _object_relative(nouns, that, within):
    """Agreement within the relative clause, or of the verb after it."""
    for noun, other, feels, verb, n, m in product(
        nouns, _OTHERS, _FEELINGS, _main_verb(nouns), _BOTH, _BOTH
    ):
        if noun == other:
            continue
        start = f"the {noun[n]}{' that' if that else ''} the {other[m]}"
        if within:
            yield _beside(m, n), _judged(f"{start} {{}} {verb[n]}", feels, m)
        else:
            yield _beside(n, m), _judged(f"{start} {feels[m]} {{}}", verb, n)


def _reflexive():
    for noun, deed, selves, n in product(_PEOPLE, _DEEDS, _SELVES, _BOTH):
        yield _alone(n), _judged(f"the {noun[n]} {deed} {{}}", selves, n)


def _reflexive_in_complement():
    for other, said, noun, deed, selves, n, m in product(
        _OTHERS, _SAID, _PEOPLE, _DEEDS, _SELVES, _BOTH, _BOTH
    ):
        if noun != other:
            frame = f"the {other[m]} {said} the {noun[n]} {deed} {{}}"
            yield _beside(n, m), _judged(frame, selves, n)


def _reflexive_across():
    for noun, other, feels, deed, selves, n, m in product(
        _PEOPLE, _OTHERS, _FEELINGS, _DEEDS, _SELVES, _BOTH, _BOTH
    ):
        if noun != other:
            frame = f"the {noun[n]} that the {other[m]} {feels[m]} {deed} {{}}"
            yield _beside(n, m), _judged(frame, selves, n)


def _polarity(nouns):
    for noun, (case, ever), end in product(
        nouns, _EVER.items(), _PRAISE if nouns is _PEOPLE else _DONE
    ):
        frame = f"{{}} {noun[1]} {ever} {end}"
        yield case, tuple(frame.format(word) for word in ("no", "the", "most"))


def _polarity_across(nouns):
    for noun, other, feels, (case, ever), end in product(
        nouns, _OTHERS, _FEELINGS, _EVER.items(), _PRAISE if nouns is _PEOPLE else _DONE
    ):
        if noun != other:
            frame = f"{{}} {noun[1]} that {{}} {other[1]} {feels[1]} {ever} {end}"
            words = ("no", "the"), ("the", "no"), ("most", "the")
            yield case, tuple(frame.format(*pair) for pair in words)


def _constructions():
    yield "simple_agrmt", _simple()
    yield "sent_comp", _sentential_complement()
    yield "vp_coord", _coordination(_ACTS)
    yield "long_vp_coord", _coordination(_HABITS)
    yield "subj_rel", _subject_relative()
    yield "simple_reflexives", _reflexive()
    yield "reflexive_sent_comp", _reflexive_in_complement()
    yield "reflexives_across", _reflexive_across()
    for kind, nouns in (("anim", _PEOPLE), ("inanim", _THINGS)):
        yield f"prep_{kind}", _preposition(nouns)
        yield f"obj_rel_across_{kind}", _object_relative(nouns, that=True, within=False)
        yield f"obj_rel_within_{kind}", _object_relative(nouns, that=True, within=True)
        yield f"obj_rel_no_comp_across_{kind}", _object_relative(nouns, that=False, within=False)
        yield f"obj_rel_no_comp_within_{kind}", _object_relative(nouns, that=False, within=True)
        yield f"simple_npi_{kind}", _polarity(nouns)
        yield f"npi_across_{kind}", _polarity_across(nouns)


def generate(count: int = 100, seed: int = 0) -> list[MinimalPair]:
    """Draws minimal pairs of every construction.

    Args:
        count: positive integer, maximum number of pairs of each case. Each of the 22 constructions
            has 2 or 4 cases, by number of the nouns or by tense.
        seed: integer, random seed.

    Returns:
        List of distinct `syntactic_evaluation.MinimalPair`.

    Raises:
        ValueError: if `count` is not positive.

    Example:

    >>> from keras_onlstm.datasets import syntactic_grammar
    >>> syntactic_grammar.generate(count=1)[0].sentences
    ('the teacher agrees', 'the teacher agree')
    """
    check_integer("count", count)
    draw = random.Random(seed)
    pairs = []
    for construction, items in _constructions():
        cases: dict[str, list[tuple[str, ...]]] = {}
        for case, sentences in items:
            cases.setdefault(case, []).append(sentences)
        for case, sentences in cases.items():
            chosen = draw.sample(range(len(sentences)), min(count, len(sentences)))
            pairs += [MinimalPair(construction, case, sentences[i]) for i in sorted(chosen)]
    return pairs
