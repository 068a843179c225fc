"""Sentence completion: a model chooses the likeliest of five sentences."""

import math
import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets.sentence_completion import CANDIDATES, Question
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.attachment import check_words
from keras_onlstm.text.vocabulary import UNKNOWN, by_frequency
from keras_onlstm.utils.validation import check_integer, renamed_arguments

__all__ = [
    "Completion", "all_known", "arrange", "blanks", "choose", "groups", "most_frequent", "score",
]  # fmt: skip

CONTENT = ("NN", "VB", "JJ", "RB")  # prefixes of the Penn Treebank's tags of content words
_FUNCTION = {
    *("be", "am", "is", "are", "was", "were", "been", "being", "not"),
    *("have", "has", "had", "having", "do", "does", "did", "done", "doing"),
}
_LETTERS = re.compile(r"[^\W\d_]+(-[^\W\d_]+)*")


class Completion(NamedTuple):
    """A question, and a tree for each of its five sentences."""

    question: Question
    trees: tuple[DependencyTree, ...]


def arrange(
    questions: Sequence[Question], trees: Iterable[DependencyTree], name: str = "trees"
) -> list[Completion]:
    """Combines questions with the trees of their sentences, five per question, in this order.

    `name` is the name of the trees in error messages.

    >>> from keras_onlstm.dependencies import chain
    >>> sentences = tuple(("it", word) for word in "rains snows pours hails thaws".split())
    >>> question = Question(sentences, 1, tuple(words[1] for words in sentences), 0)
    >>> arrange([question], map(chain, sentences))[0].trees[4].words
    ('it', 'thaws')
    """
    trees = list(trees)
    sentences = [sentence for question in questions for sentence in question.sentences]
    if len(trees) != len(sentences):
        raise ValueError(
            f"{name}: has {len(trees):,} trees for {len(sentences):,} sentences. Parse the "
            "sentences again, so that each has one tree."
        )
    for number, (tree, sentence) in enumerate(zip(trees, sentences, strict=True), 1):
        check_words(f"{name}, tree {number}", tree, sentence)
    rows = zip(*[iter(trees)] * CANDIDATES, strict=True)
    return [Completion(*pair) for pair in zip(questions, rows, strict=True)]


def choose(scores: npt.ArrayLike) -> np.ndarray:
    """The index (questions,) of the highest of the scores (questions, candidates).

    Ties go to the first. Raises `ValueError` if a score is NaN.

    >>> choose([[-3.0, -1.0, -1.0], [-2.0, -2.0, -2.5]]).tolist()
    [1, 0]
    """
    scores = np.asarray(scores)
    if np.isnan(scores).any():
        question = int(np.isnan(scores).any(axis=1).argmax())
        raise ValueError(f"question {question + 1}: a score is NaN. Check the model's weights.")
    return np.argmax(scores, axis=1)


def score(
    log_probability: Callable[[list[DependencyTree]], np.ndarray],
    completions: Sequence[Completion],
    vocabulary: Iterable[str],
    change: Callable[[DependencyTree, int], DependencyTree] = lambda tree, _: tree,
    unknown: int = 1,
    block: int = 1024,
    progress: Callable[[int, int], object] | None = None,
) -> np.ndarray:
    """Computes log-probabilities of all sentences, once for each distinct tree.

    So sentences that differ only in unknown words have exactly equal scores.

    P(<unk>) is the probability of any unknown word. In a small training text with many of them, it
    is far above that of a rare known word; `unknown` divides it among them.

    Args:
        log_probability: function from a list of trees to an array, as `TreeLSTM.log_probability`.
        completions: list of `Completion`.
        vocabulary: the words that the model knows; others become `<unk>`.
        change: function of a tree and the index of its question; returns the tree to score.
        unknown: positive integer, how many words share P(<unk>). 1: as published.
        block: number of trees between two calls of `progress`.
        progress: function of the number of trees read and of all, or `None`.

    Returns:
        Array (questions, candidates), in nats.

    >>> from keras_onlstm.dependencies import chain
    >>> trees = tuple(chain([word]) for word in "abcde")
    >>> def log_probability(trees):
    ...     return np.array([-1.0 if tree.words == ("b",) else -2.0 for tree in trees])
    >>> score(log_probability, [Completion(None, trees)], ["b"]).tolist()
    [[-2.0, -1.0, -2.0, -2.0, -2.0]]
    """
    vocabulary, share = frozenset(vocabulary), -math.log(check_integer("unknown", unknown))
    indices: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}  # of distinct trees
    distinct: list[DependencyTree] = []
    rows = []
    for number, completion in enumerate(completions):
        for tree in completion.trees:
            tree = change(tree, number)
            words = tuple(word if word in vocabulary else UNKNOWN for word in tree.words)
            key = words, tree.heads
            if key not in indices:
                indices[key] = len(distinct)
                distinct.append(DependencyTree(words, tree.heads))
            rows.append(indices[key])
    scores = np.zeros(len(distinct))
    order = np.argsort([len(tree) for tree in distinct], kind="stable")  # to batch similar lengths
    for start in range(0, len(distinct), block):
        part = order[start : start + block]
        scores[part] = log_probability([distinct[index] for index in part])
        if progress is not None:
            progress(start + len(part), len(distinct))
    scores += [share * tree.words.count(UNKNOWN) for tree in distinct]
    return scores[np.array(rows, "int64").reshape(-1, CANDIDATES)]


def all_known(
    completions: Sequence[Completion], vocabulary: Iterable[str], change: Callable[[str], str] = str
) -> np.ndarray:
    """Booleans (questions,): whether all candidates are in the vocabulary.

    Args:
        completions: list of `Completion`.
        vocabulary: words.
        change: function from a word to its form in the vocabulary.

    >>> question = Question((), 0, tuple("abcde"), 0)
    >>> all_known([Completion(question, ())], ["a", "b"]).tolist()
    [False]
    """
    words = frozenset(vocabulary)
    known = [all(change(word) in words for word in c.question.candidates) for c in completions]
    return np.array(known, "bool")


def most_frequent(
    completions: Sequence[Completion], vocabulary: Sequence[str], change: Callable[[str], str] = str
) -> np.ndarray:
    """The choices (questions,) of a baseline without a model: the most frequent candidate.

    Args:
        completions: list of `Completion`.
        vocabulary: words, the most frequent ones first.
        change: function from a word to its form in the vocabulary.

    >>> question = Question((), 0, tuple("xyabz"), 0)
    >>> most_frequent([Completion(question, ())], ["b", "a"]).tolist()
    [3]
    """
    ranks = {word: rank for rank, word in enumerate(vocabulary)}
    rows = [[-ranks.get(change(w), len(ranks)) for w in c.question.candidates] for c in completions]
    return choose(np.array(rows, "float64").reshape(-1, CANDIDATES))


@renamed_arguments(halves="split")
def groups(count: int, known: npt.ArrayLike, split: bool = True) -> dict[str, np.ndarray]:
    """Booleans (questions,) of the groups of questions for which accuracies are reported.

    Args:
        count: integer, number of questions.
        known: booleans (questions,), see `all_known`.
        split: whether the first half is for validation and the second for test, as published.

    >>> {name: rows.tolist() for name, rows in groups(3, [True, False, True]).items()}
    {'all': [True, True, True], 'validation': [True, False, False], 'test': [False, True, True],
     'known': [True, False, True]}
    """
    first = np.arange(count) < count // 2
    parts = {"validation": first, "test": ~first} if split else {}
    return {"all": np.ones(count, "bool"), **parts, "known": np.asarray(known, "bool")}


class _Dictionary:
    """Word frequencies in tagged trees, and the content words by their most frequent tag."""

    def __init__(self, trees, min_count):
        tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for tree in trees:
            for word, tag in zip(tree.words, _tags(tree), strict=True):
                tags[word][tag] += 1
        self.counts = {word: n for word, of in tags.items() if (n := of.total()) >= min_count}
        self.by_tag: defaultdict[str, list[str]] = defaultdict(list)
        forms: set[tuple[str, str]] = set()  # (tag, normalized word)
        for word in by_frequency(self.counts):
            # The most frequent tag; ties go to the alphabetically first one.
            tag = min(tags[word], key=lambda tag: (-tags[word][tag], tag))
            if _is_content(word, tag) and (tag, normalize(word)) not in forms:
                forms.add((tag, normalize(word)))
                self.by_tag[tag].append(word)

    def distractors(self, answer, tag, generator):
        """Four words of the tag whose frequencies are next to the answer's, or `None`."""
        words = self.by_tag[tag]
        if answer not in words:
            return None
        draws = generator.permutation(len(words)).tolist()  # to break ties
        order = sorted(range(len(words)), key=lambda i: (self.counts[words[i]], draws[i]))
        rank = order.index(words.index(answer))
        if not CANDIDATES <= rank + 1 <= len(words) + 1 - CANDIDATES:
            return None  # too close to an end to have every rank among its neighbours
        first = rank - int(generator.integers(CANDIDATES))
        return [words[i] for i in order[first : first + CANDIDATES] if words[i] != answer]


@renamed_arguments(least="min_count")
def blanks(
    train: Iterable[DependencyTree],
    test: Iterable[DependencyTree],
    seed: int = 0,
    min_count: int = 2,
) -> list[Completion]:
    """Makes sentence completion questions: a content word of each sentence becomes the gap.

    The most frequent tag of all five candidates in the training trees is the tag of the gap. They
    are adjacent in frequency, with the answer at a random rank, so that frequency gives no hint;
    the four most frequent and the four rarest words of a tag are therefore never answers. The tree
    stays the same. The first word of a sentence is never the gap, and a sentence without a suitable
    word gives no question.

    Args:
        train: iterable of `DependencyTree` with tags of the Penn Treebank, for the candidates.
        test: iterable of `DependencyTree` with such tags, the sentences.
        seed: integer, for gaps, ties in frequency, and the order of candidates.
        min_count: positive integer, minimum count of each candidate in `train`.

    >>> trees = [
    ...     DependencyTree(["the", noun], [2, 0], ["DT", "NN"])
    ...     for count, noun in enumerate("ant bee cat cow dog eel fly hen pig".split(), 2)
    ...     for _ in range(count)
    ... ]
    >>> (completion,) = blanks(trees, [DependencyTree(["a", "dog"], [2, 0], ["DT", "NN"])])
    >>> sorted(completion.question.candidates)
    ['cat', 'cow', 'dog', 'eel', 'fly']
    """
    dictionary = _Dictionary(train, check_integer("min_count", min_count))
    generator = np.random.Generator(np.random.PCG64(check_integer("seed", seed, 0)))
    completions = []
    for tree in test:
        tags = _tags(tree)
        positions = [p for p in range(1, len(tree)) if _is_content(tree.words[p], tags[p])]
        for position in generator.permutation(positions).tolist():
            distractors = dictionary.distractors(tree.words[position], tags[position], generator)
            if distractors is not None:
                completions.append(_completion(tree, position, distractors, generator))
                break
    return completions


def _completion(tree, position, distractors, generator):
    order = generator.permutation(CANDIDATES).tolist()
    candidates = [[tree.words[position], *distractors][index] for index in order]
    trees = []
    for candidate in candidates:
        words = [*tree.words[:position], candidate, *tree.words[position + 1 :]]
        trees.append(DependencyTree(words, tree.heads, tree.tags, tree.relations))
    sentences = tuple(tree.words for tree in trees)
    question = Question(sentences, position, tuple(candidates), order.index(0))
    return Completion(question, tuple(trees))


def _tags(tree):
    if tree.tags is None:
        raise ValueError(f"{reprlib.repr(list(tree.words))}: has no tags. Give a tagged tree.")
    return tree.tags


def _is_content(word, tag):
    is_word = bool(_LETTERS.fullmatch(word)) and word.lower() not in _FUNCTION
    return tag.startswith(CONTENT) and is_word
