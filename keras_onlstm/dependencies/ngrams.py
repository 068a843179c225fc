"""Interpolated Kneser-Ney models of words, given the words before or the path from ROOT.

Source: Kneser and Ney 1995, "Improved backing-off for M-gram language modeling"; Chen and Goodman
1999, "An empirical study of smoothing techniques for language modeling", section 2.7.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.validation import check_integer

Context = tuple[Hashable, ...]
_ROOT = None  # the word of ROOT, and padding


def word_contexts(tree: DependencyTree, order: int) -> list[Context]:
    """Returns the n-gram context of each word: the n - 1 words before it. `None` pads the start.

    >>> from keras_onlstm.dependencies import chain, word_contexts
    >>> word_contexts(chain(["the", "cat", "sleeps"]), 3)
    [(None, None), (None, 'the'), ('the', 'cat')]
    """
    words = [_ROOT] * (order - 1) + list(tree.words)
    return [tuple(words[i : i + order - 1]) for i in range(len(tree))]


def dependency_contexts(tree: DependencyTree, order: int) -> list[Context]:
    """Returns the context of each word in a dependency n-gram: the end of its path, D(w).

    It has n - 1 pairs, a word and the `Edge` from it. The word of ROOT is `None`, and `None` pads
    the start. A tree that is not projective is a `ValueError`.

    >>> from keras_onlstm.dependencies import DependencyTree, dependency_contexts
    >>> tree = DependencyTree(["the", "cat", "sleeps"], [2, 3, 0])
    >>> [(word, str(edge)) for ((word, edge),) in dependency_contexts(tree, 2)]
    [('cat', 'LEFT'), ('sleeps', 'LEFT'), (None, 'RIGHT')]
    """
    words = (_ROOT, *tree.words)
    contexts: list[Context] = [(_ROOT,) * (order - 1)] * (len(tree) + 1)
    for position, source, edge, _ in tree.steps():
        context = (*contexts[source], (words[source], edge))
        contexts[position] = context[1:] if order > 1 else ()
    return contexts[1:]


class _Level(NamedTuple):
    discount: float
    counts: Counter  # of (context, word)
    totals: Counter  # of contexts
    kinds: Counter  # of contexts: number of different words


def _level(counts):
    once, twice = (sum(count == number for count in counts.values()) for number in (1, 2))
    totals: Counter = Counter()
    for (context, _), count in counts.items():
        totals[context] += count
    kinds = Counter(context for context, _ in counts)
    return _Level(once / (once + 2 * twice) if once else 0.0, counts, totals, kinds)


class KneserNey:
    """A Kneser-Ney model, interpolated down to the uniform distribution.

    The highest order uses word counts. Lower orders use continuation counts: in how many different
    contexts, longer by one, a word was seen. Each order has one discount, n1 / (n1 + 2 n2), where
    n1 and n2 are its numbers of counts of 1 and 2.

    Args:
        trees: list of `DependencyTree`, to train on.
        vocabulary: list of the words that have a probability, including `unknown`.
        order: integer, n. Contexts have n - 1 words or pairs.
        contexts: `word_contexts`, `dependency_contexts`, or another function of a tree and n that
            returns a tuple of n - 1 values for every word, the nearest one last.
        unknown: the token that replaces words outside the vocabulary.

    Raises:
        ValueError: if `trees` is empty, or `unknown` is not in the vocabulary.

    Example:

    >>> from keras_onlstm.dependencies import KneserNey, chain
    >>> trees = [chain("the cat saw the dog".split()), chain("the cat fled".split())]
    >>> round(KneserNey(trees, ["<unk>", "the", "cat"], order=2).perplexity(trees), 3)
    1.382
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
        self.order = check_integer("order", order)
        self._known = frozenset(vocabulary)
        self._contexts, self._unknown = contexts, unknown
        if unknown not in self._known:
            raise ValueError(f"vocabulary must contain the unknown word {unknown!r}.")
        counts = Counter(event for tree in trees for event in self._events(tree))
        if not counts:
            raise ValueError("trees must not be empty.")
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
        """Discount of each order, shortest contexts first."""
        return [level.discount for level in self._levels]

    def probability(self, word: str, context: Context) -> float:
        """The probability of a word of the vocabulary after n - 1 values, as from `contexts`."""
        probability = 1 / len(self._known)
        for length, level in enumerate(self._levels):
            end = context[len(context) - length :]
            total = level.totals[end]
            if not total:  # longer contexts are unseen too
                break
            discounted = max(level.counts[end, word] - level.discount, 0.0)
            probability = (discounted + level.discount * level.kinds[end] * probability) / total
        return probability

    def score(self, trees: Iterable[DependencyTree]) -> list[np.ndarray]:
        """Log-probabilities of the words of each tree: float64 arrays (words,), in nats."""
        with np.errstate(divide="ignore"):  # log(0) for unseen words if the discount is 0
            return [
                np.log([self.probability(word, context) for context, word in self._events(tree)])
                for tree in trees
            ]

    def perplexity(self, trees: Iterable[DependencyTree]) -> float:
        """Perplexity per word of at least one tree, without end-of-sentence tokens."""
        return math.exp(-np.concatenate(self.score(trees)).mean())
