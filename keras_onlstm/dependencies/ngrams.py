"""Interpolated Kneser-Ney models of words, given the words before or the way from ROOT.

Source: Kneser and Ney 1995, "Improved backing-off for M-gram language modeling"; Chen and Goodman
1999, "An empirical study of smoothing techniques for language modeling", section 2.7.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.arguments import integer

__all__ = ["KneserNey", "dependency_contexts", "word_contexts"]

Context = tuple[Hashable, ...]
_ROOT = None  # no word: neither known nor unknown


def word_contexts(tree: DependencyTree, order: int) -> list[Context]:
    """What an n-gram of words knows of each word: the words before.

    Args:
        tree: `DependencyTree`.
        order: integer, n.

    Returns:
        List of tuples of n - 1 words, of each word of the sentence; `None`, ROOT, stands before the
        first.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.dependencies.ngrams import word_contexts
    >>> word_contexts(chain(["the", "cat", "sleeps"]), 3)
    [(None, None), (None, 'the'), ('the', 'cat')]
    """
    words = [_ROOT] * (order - 1) + list(tree.words)
    return [tuple(words[place : place + order - 1]) for place in range(len(tree))]


def dependency_contexts(tree: DependencyTree, order: int) -> list[Context]:
    """What an n-gram of dependencies knows of each word: the end of its path from ROOT, D(w).

    Args:
        tree: `DependencyTree`, projective.
        order: integer, n.

    Returns:
        List of tuples of n - 1 pairs, a word and the `Edge` from it; `None` stands before ROOT,
        whose word is `None`.

    Raises:
        ValueError: if the tree is not projective.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.dependencies.ngrams import dependency_contexts
    >>> tree = DependencyTree(["the", "cat", "sleeps"], [2, 3, 0])
    >>> for ((word, edge),) in dependency_contexts(tree, 2):
    ...     print(word, edge)
    cat LEFT
    sleeps LEFT
    None RIGHT
    """
    words = (_ROOT, *tree.words)
    found: list[Context] = [(None,) * (order - 1)] * (len(tree) + 1)
    for place, source, edge, _ in tree.steps():
        found[place] = (*found[source], (words[source], edge))[1:] if order > 1 else ()
    return found[1:]


class _Level(NamedTuple):
    """Counts of words in contexts of one length."""

    discount: float
    counts: Counter  # of (context, word)
    totals: Counter  # of contexts
    kinds: Counter  # of contexts: how many different words


def _level(counts):
    once, twice = (sum(count == number for count in counts.values()) for number in (1, 2))
    totals: Counter = Counter()
    for (context, _), count in counts.items():
        totals[context] += count
    kinds = Counter(context for context, _ in counts)
    return _Level(once / (once + 2 * twice) if once else 0.0, counts, totals, kinds)


class KneserNey:
    """A Kneser-Ney model, interpolated down to equal probabilities.

    The longest contexts have the counts of words; the shorter ones count in how many different
    ones a word was seen that are longer by one. Each length has one discount, by its counts of one
    and two: n1 / (n1 + 2 n2).

    Args:
        trees: list of `DependencyTree`, to train on.
        vocabulary: list of the words that have a probability, `<unk>` among them. Others are
            `<unk>`.
        order: integer, n: of a context there are n - 1 words or pairs.
        contexts: `word_contexts`, `dependency_contexts`, or another function of a tree and n that
            returns a tuple of n - 1 things for every word, the nearest one last.
        unknown: the word that unknown ones are.

    Raises:
        ValueError: if there is no tree, or `unknown` is not in the vocabulary.

    Example:

    >>> from keras_onlstm.dependencies import KneserNey, chain
    >>> trees = [chain("the cat saw the dog".split()), chain("the cat fled".split())]
    >>> model = KneserNey(trees, ["<unk>", "the", "cat"], order=2)
    >>> round(model.perplexity(trees), 3)
    2.209
    >>> round(sum(model.probability(word, ("the",)) for word in model.vocabulary), 6)
    1.0
    """

    def __init__(
        self,
        trees: Iterable[DependencyTree],
        vocabulary: Sequence[str],
        order: int = 3,
        contexts: Callable[[DependencyTree, int], list[Context]] = word_contexts,
        unknown: str = "<unk>",
    ) -> None:
        self.vocabulary = list(vocabulary)
        self.order = integer("order", order)
        self._known = frozenset(vocabulary)
        self._contexts, self._unknown = contexts, unknown
        if unknown not in self._known:
            raise ValueError(f"vocabulary: lacks {unknown}.")
        counts = Counter(event for tree in trees for event in self._events(tree))
        if not counts:
            raise ValueError("trees: there are none to train on.")
        self._levels = [_level(counts)]
        for _ in range(order - 1):
            counts = Counter((context[1:], word) for context, word in counts)
            self._levels.insert(0, _level(counts))

    def _events(self, tree):
        words = [word if word in self._known else self._unknown for word in tree.words]
        known = DependencyTree(words, tree.heads)
        return zip(self._contexts(known, self.order), words, strict=True)

    @property
    def discounts(self) -> list[float]:
        """What is taken off counts, of the shortest contexts first."""
        return [level.discount for level in self._levels]

    def probability(self, word: str, context: Context) -> float:
        """The probability of a word.

        Args:
            word: string, of the vocabulary.
            context: tuple of n - 1 things, as of `contexts`.

        Returns:
            Number. Those of all words of the vocabulary add up to 1.
        """
        probability = 1 / len(self._known)
        for length, level in enumerate(self._levels):
            end = context[len(context) - length :]
            total = level.totals[end]
            if not total:  # nor are longer ones known
                break
            kept = max(level.counts[end, word] - level.discount, 0.0)
            probability = (kept + level.discount * level.kinds[end] * probability) / total
        return probability

    def score(self, trees: Iterable[DependencyTree]) -> list[np.ndarray]:
        """Log-probabilities of the words of trees.

        Args:
            trees: iterable of `DependencyTree`.

        Returns:
            List of float64 arrays (words,), in nats, in the order of the sentence.
        """
        with np.errstate(divide="ignore"):  # minus infinity, where no discount leaves anything
            return [
                np.log([self.probability(word, context) for context, word in self._events(tree)])
                for tree in trees
            ]

    def perplexity(self, trees: Iterable[DependencyTree]) -> float:
        """Perplexity per word, without an end of sentences.

        Args:
            trees: iterable of `DependencyTree`, one at least.

        Returns:
            Number.
        """
        return math.exp(-np.concatenate(self.score(trees)).mean())
