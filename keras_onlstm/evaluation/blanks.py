"""Questions made of a treebank: five words for a gap, alike in tag and frequency."""

import math
import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from keras_onlstm.datasets.sentence_completion import CANDIDATES, Question
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.evaluation.sentence_completion import Completion
from keras_onlstm.utils.arguments import integer

__all__ = ["blanks"]

CONTENT = ("NN", "VB", "JJ", "RB")  # how the tags of the Penn Treebank begin of words with content
_FUNCTION = {
    *("be", "am", "is", "are", "was", "were", "been", "being", "not"),
    *("have", "has", "had", "having", "do", "does", "did", "done", "doing"),
}
_LETTERS = re.compile(r"[^\W\d_]+(-[^\W\d_]+)*")


class _Dictionary:
    """Words by their tag, and how often each occurs, in trees with tags."""

    def __init__(self, trees, least):
        tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for tree in trees:
            for word, tag in zip(tree.words, _tags(tree), strict=True):
                tags[word][tag] += 1
        self.counts = {word: n for word, of in tags.items() if (n := of.total()) >= least}
        self.by_tag: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(self.counts):
            # The tag that it has most often, of equals the first of the alphabet.
            tag = min(tags[word], key=lambda tag: (-tags[word][tag], tag))
            if _has_content(word, tag):
                self.by_tag[tag].append(word)

    def distractors(self, answer, tag, generator):
        """Four words of this tag, of the frequencies nearest to that of the answer, or `None`."""
        words = self.by_tag[tag]
        if answer not in self.counts:
            return None
        ratios = [abs(math.log(self.counts[word] / self.counts[answer])) for word in words]
        draws = generator.permutation(len(words)).tolist()  # for equals
        found: dict[str, str] = {normalize(answer): answer}
        for place in sorted(range(len(words)), key=lambda place: (ratios[place], draws[place])):
            found.setdefault(normalize(words[place]), words[place])
            if len(found) == CANDIDATES:
                return list(found.values())[1:]
        return None


def blanks(
    train: Iterable[DependencyTree],
    test: Iterable[DependencyTree],
    seed: int = 0,
    least: int = 2,
) -> list[Completion]:
    """Makes questions of a treebank: in each sentence a word with content is the gap.

    The four other candidates have the tag of the answer and the frequencies nearest to its own in
    the training trees, so that frequency alone does not give it away. The tree stays. The first
    word of a sentence is no gap.

    Args:
        train: iterable of `DependencyTree` with tags of the Penn Treebank: where candidates are
            from, and their frequencies.
        test: likewise, the sentences.
        seed: integer, of gaps, candidates of equal frequency, and their order.
        least: positive integer: how often an answer and the other candidates occur in `train` at
            least.

    Returns:
        List of `Completion`, one for every sentence that has such a word.

    Raises:
        ValueError: if a tree has no tags.

    Example:

    >>> from keras_onlstm.dependencies import DependencyTree
    >>> from keras_onlstm.evaluation.blanks import blanks
    >>> trees = [
    ...     DependencyTree(["the", noun], [2, 0], ["DT", "NN"])
    ...     for noun in "cat dog cow hen pig".split()
    ... ]
    >>> one = blanks(trees, trees[:1], least=1)[0]
    >>> one.question.place, sorted(one.question.candidates), one.trees[0].heads
    (1, ['cat', 'cow', 'dog', 'hen', 'pig'], (2, 0))
    >>> one.question.candidates[one.question.answer]
    'cat'
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
