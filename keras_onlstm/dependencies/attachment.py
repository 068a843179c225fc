"""Attachment scores: how many words have the right head, and the right relation to it."""

import itertools
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.validation import renamed_arguments

PUNCTUATION = frozenset(["``", "''", ",", ".", ":"])  # gold tags of the Penn Treebank


class Counts(NamedTuple):
    """Numbers of words: all, those with the right head, and those with the right relation too.

    `relations` is `None` if trees have no relations.
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


def _sum(a, b):
    relations = None if None in (a.relations, b.relations) else a.relations + b.relations
    return Counts(a.words + b.words, a.heads + b.heads, relations)


@dataclass(frozen=True)
class Attachment:
    """Attachment counts of sentences. `+` adds the counts of two sets of sentences.

    `without_punctuation` is as in published results on the Penn Treebank.

    >>> from keras_onlstm.dependencies import DependencyTree, attachment, chain
    >>> gold = DependencyTree(["cats", "sleep", "."], [2, 0, 2], ["NNS", "VBP", "."])
    >>> scores = attachment([gold], [chain(gold.words)]) + attachment([gold], [gold])
    >>> scores.all.uas, scores.without_punctuation.uas
    (0.6666666666666666, 0.5)
    """

    all: Counts = field(default_factory=Counts)
    without_punctuation: Counts = field(default_factory=Counts)

    def __add__(self, other: object) -> "Attachment":
        if not isinstance(other, Attachment):
            return NotImplemented
        return Attachment(
            _sum(self.all, other.all), _sum(self.without_punctuation, other.without_punctuation)
        )


@renamed_arguments(found="predicted")
def attachment(
    gold: Iterable[DependencyTree],
    predicted: Iterable[DependencyTree],
    punctuation: Collection[str] = PUNCTUATION,
) -> Attachment:
    """Compares predicted trees with gold trees.

    Args:
        gold: iterable of `DependencyTree`, with tags.
        predicted: iterable of as many `DependencyTree`, of the same words.
        punctuation: the gold tags of punctuation. For coarse tags of CoNLL-U: `["PUNCT"]`.

    Returns:
        `Attachment`: `all` and `without_punctuation`, each with `uas` and `las`.

    Raises:
        ValueError: if the numbers of trees differ, the words of two trees differ, or a gold tree
            has no tags.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree, attachment
    >>> words, tags = ["the", "cat", "sleeps"], ["DT", "NN", "VBZ"]
    >>> gold = DependencyTree(words, [2, 3, 0], tags, ["det", "nsubj", "root"])
    >>> predicted = DependencyTree(words, [2, 3, 0], tags, ["det", "obj", "root"])
    >>> attachment([gold], [predicted]).all
    Counts(words=3, heads=3, relations=2)
    """
    gold, predicted = list(gold), list(predicted)
    if len(gold) != len(predicted):
        raise ValueError(f"predicted must have {len(gold)} trees like gold, got {len(predicted)}.")
    total = Attachment()
    for number, (a, b) in enumerate(zip(gold, predicted, strict=True), 1):
        check_words(f"sentence {number}", b, a.words)
        if a.tags is None:
            raise ValueError(f"sentence {number}: the gold tree must have tags.")
        heads = np.equal(a.heads, b.heads)
        relations = None
        if a.relations is not None and b.relations is not None:
            relations = heads & [x == y for x, y in zip(a.relations, b.relations, strict=True)]
        is_word = np.array([tag not in punctuation for tag in a.tags])
        total += Attachment(
            _counts(np.ones(len(a), bool), heads, relations), _counts(is_word, heads, relations)
        )
    return total


def check_words(name: str, tree: DependencyTree, expected: Sequence[str]) -> None:
    """Raises ValueError if a tree has other words; `name` begins the message."""
    for position, (word, wanted) in enumerate(itertools.zip_longest(tree.words, expected), 1):
        if word != wanted:
            raise ValueError(
                f"{name}: word {position} must be {reprlib.repr(wanted)}, not {reprlib.repr(word)}."
            )


def _counts(mask, heads, relations):
    both = None if relations is None else int((mask & relations).sum())
    return Counts(int(mask.sum()), int((mask & heads).sum()), both)
