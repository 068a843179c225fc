"""Sentence completion questions from a treebank: five words of similar tag and frequency."""

import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from keras_onlstm.datasets.sentence_completion import CANDIDATES, Question
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.evaluation.sentence_completion import Completion
from keras_onlstm.text.vocabulary import by_frequency
from keras_onlstm.utils.arguments import integer

__all__ = ["blanks"]

CONTENT = ("NN", "VB", "JJ", "RB")  # prefixes of the Penn Treebank's tags of content words
_FUNCTION = {
    *("be", "am", "is", "are", "was", "were", "been", "being", "not"),
    *("have", "has", "had", "having", "do", "does", "did", "done", "doing"),
}
_LETTERS = re.compile(r"[^\W\d_]+(-[^\W\d_]+)*")


class _Dictionary:
    """Word frequencies in tagged trees, and the content words by their most frequent tag."""

    def __init__(self, trees, least):
        tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for tree in trees:
            for word, tag in zip(tree.words, _tags(tree), strict=True):
                tags[word][tag] += 1
        self.counts = {word: n for word, of in tags.items() if (n := of.total()) >= least}
        self.by_tag: defaultdict[str, list[str]] = defaultdict(list)
        forms: set[tuple[str, str]] = set()  # (tag, normalized word)
        for word in by_frequency(self.counts):
            # The most frequent tag; ties go to the alphabetically first one.
            tag = min(tags[word], key=lambda tag: (-tags[word][tag], tag))
            if _has_content(word, tag) and (tag, normalize(word)) not in forms:
                forms.add((tag, normalize(word)))
                self.by_tag[tag].append(word)

    def distractors(self, answer, tag, generator):
        """Four words of the tag whose frequencies are next to the answer's, or `None`."""
        words = self.by_tag[tag]
        if answer not in words:
            return None
        draws = generator.permutation(len(words)).tolist()  # to break ties
        order = sorted(range(len(words)), key=lambda i: (self.counts[words[i]], draws[i]))
        place = order.index(words.index(answer))
        if not CANDIDATES <= place + 1 <= len(words) + 1 - CANDIDATES:
            return None  # too close to an end to have every rank among its neighbours
        first = place - int(generator.integers(CANDIDATES))
        return [words[i] for i in order[first : first + CANDIDATES] if words[i] != answer]


def blanks(
    train: Iterable[DependencyTree],
    test: Iterable[DependencyTree],
    seed: int = 0,
    least: int = 2,
) -> list[Completion]:
    """Makes sentence completion questions: a content word of each sentence becomes the gap.

    The most frequent tag of all five candidates in the training trees is the tag of the gap. They
    are adjacent in frequency, with the answer at a random rank, so that frequency gives no hint;
    the four most frequent and the four rarest words of a tag are therefore never answers. The tree
    stays the same. The first word of a sentence is never the gap.

    Args:
        train: iterable of `DependencyTree` with tags of the Penn Treebank, for the candidates and
            their frequencies.
        test: iterable of `DependencyTree` with such tags, the sentences.
        seed: integer, for gaps, ties in frequency, and the order of candidates.
        least: positive integer, minimum count of each candidate in `train`.

    Returns:
        List of `Completion`, one for every sentence that has a suitable word.

    Raises:
        ValueError: if a tree has no tags.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.evaluation.blanks import blanks
    >>> trees = [
    ...     DependencyTree(["the", noun], [2, 0], ["DT", "NN"])
    ...     for count, noun in enumerate("ant bee cat cow dog eel fly hen pig".split(), 2)
    ...     for _ in range(count)
    ... ]
    >>> one = blanks(trees, [DependencyTree(["a", "dog"], [2, 0], ["DT", "NN"])])[0]
    >>> one.question.place, one.trees[0].heads, one.question.candidates[one.question.answer]
    (1, (2, 0), 'dog')
    >>> sorted(one.question.candidates)
    ['cat', 'cow', 'dog', 'eel', 'fly']
    """
    dictionary = _Dictionary(train, integer("least", least))
    generator = np.random.Generator(np.random.PCG64(integer("seed", seed, 0)))
    completions = []
    for tree in test:
        tags = _tags(tree)
        places = [p for p in range(1, len(tree)) if _has_content(tree.words[p], tags[p])]
        for place in generator.permutation(places).tolist():
            others = dictionary.distractors(tree.words[place], tags[place], generator)
            if others is not None:
                completions.append(_completion(tree, place, others, generator))
                break
    return completions


def _completion(tree, place, others, generator):
    candidates = [tree.words[place], *others]
    order = generator.permutation(CANDIDATES).tolist()
    trees = []
    for number in order:
        words = [*tree.words[:place], candidates[number], *tree.words[place + 1 :]]
        trees.append(DependencyTree(words, tree.heads, tree.tags, tree.relations))
    sentences = tuple(tree.words for tree in trees)
    ordered = tuple(candidates[number] for number in order)
    return Completion(Question(sentences, place, ordered, order.index(0)), tuple(trees))


def _tags(tree):
    if tree.tags is None:
        raise ValueError(f"{reprlib.repr(list(tree.words))}: has no tags.")
    return tree.tags


def _has_content(word, tag):
    return (
        tag.startswith(CONTENT) and bool(_LETTERS.fullmatch(word)) and word.lower() not in _FUNCTION
    )
