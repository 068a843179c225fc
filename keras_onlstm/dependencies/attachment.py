"""Attachment scores: how many words have the right head, and the right relation to it."""

import itertools
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keras_onlstm.dependencies.tree import DependencyTree

__all__ = ["PUNCTUATION", "Attachment", "Counts", "attachment", "check_words"]

PUNCTUATION = frozenset(["``", "''", ",", ".", ":"])  # gold tags of the Penn Treebank


class Counts(NamedTuple):
    """Counts of words.

    Attributes:
        words: integer, number of words.
        heads: integer, words with the right head.
        relations: integer, words with the right head and relation; `None` if trees have no
            relations.
    """

    words: int = 0
    heads: int = 0
    relations: int | None = 0

    @property
    def uas(self) -> float:
        """The unlabelled attachment score, from 0 to 1."""
        return self.heads / self.words if self.words else 0.0

    @property
    def las(self) -> float | None:
        """The labelled attachment score, or `None` without relations."""
        if self.relations is None:
            return None
        return self.relations / self.words if self.words else 0.0


_NONE = Counts()


def _sum(one, other):
    relations = None
    if one.relations is not None and other.relations is not None:
        relations = one.relations + other.relations
    return Counts(one.words + other.words, one.heads + other.heads, relations)


@dataclass(frozen=True)
class Attachment:
    """Attachment counts of sentences. `+` adds the counts of two sets of sentences.

    Attributes:
        all: `Counts` of all words.
        without_punctuation: `Counts` without punctuation, as in published results on the Penn
            Treebank.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree, attachment, chain
    >>> gold = DependencyTree(["cats", "sleep", "."], [2, 0, 2], ["NNS", "VBP", "."])
    >>> found = attachment([gold], [chain(gold.words)]) + attachment([gold], [gold])
    >>> found.all.uas, found.without_punctuation.uas
    (0.6666666666666666, 0.5)
    """

    all: Counts = _NONE
    without_punctuation: Counts = _NONE

    def __add__(self, other: object) -> "Attachment":
        if not isinstance(other, Attachment):
            return NotImplemented
        return Attachment(
            _sum(self.all, other.all), _sum(self.without_punctuation, other.without_punctuation)
        )


def attachment(
    gold: Iterable[DependencyTree],
    found: Iterable[DependencyTree],
    punctuation: Collection[str] = PUNCTUATION,
) -> Attachment:
    """Compares trees with gold trees.

    Args:
        gold: iterable of `DependencyTree`, with tags.
        found: iterable of as many `DependencyTree`, of the same words.
        punctuation: the gold tags of punctuation. For coarse tags of CoNLL-U: `["PUNCT"]`.

    Returns:
        `Attachment`: `.all` and `.without_punctuation`, each with `.uas` and `.las`.

    Raises:
        ValueError: if the numbers of trees differ, the words of two trees differ, or a gold tree
            has no tags.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree, attachment
    >>> words, tags = ["the", "cat", "sleeps"], ["DT", "NN", "VBZ"]
    >>> gold = DependencyTree(words, [2, 3, 0], tags, ["det", "nsubj", "root"])
    >>> found = DependencyTree(words, [2, 3, 0], tags, ["det", "obj", "root"])
    >>> attachment([gold], [found]).all
    Counts(words=3, heads=3, relations=2)
    """
    gold, found = list(gold), list(found)
    if len(gold) != len(found):
        raise ValueError(f"there are {len(gold)} gold trees and {len(found)} found ones.")
    total = Attachment()
    for number, (one, other) in enumerate(zip(gold, found, strict=True), 1):
        check_words(f"sentence {number}", other, one.words)
        if one.tags is None:
            raise ValueError(f"sentence {number}: the gold tree has no tags, so no punctuation.")
        heads = [a == b for a, b in zip(one.heads, other.heads, strict=True)]
        relations = None
        if one.relations is not None and other.relations is not None:
            pairs = zip(heads, one.relations, other.relations, strict=True)
            relations = [right and a == b for right, a, b in pairs]
        words = [tag not in punctuation for tag in one.tags or ()]
        total += Attachment(
            _counts([True] * len(one), heads, relations), _counts(words, heads, relations)
        )
    return total


def check_words(name: str, found: DependencyTree, expected: Sequence[str]) -> None:
    """Raises ValueError if a tree has other words; `name` begins the message."""
    for place, (word, wanted) in enumerate(itertools.zip_longest(found.words, expected), 1):
        if word != wanted:
            raise ValueError(
                f"{name}: word {place} must be {reprlib.repr(wanted)}, not {reprlib.repr(word)}."
            )


def _counts(words, heads, relations):
    both = None if relations is None else sum(map(min, words, relations))
    return Counts(sum(words), sum(map(min, words, heads)), both)
