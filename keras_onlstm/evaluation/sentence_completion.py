"""Sentence completion: a model chooses the one of five sentences that is likeliest given its tree.

The score of a sentence is log P(words | tree), over all its words. Ties go to the first sentence.
`arrange` adds trees to the questions of the MSR challenge; `evaluation.blanks` makes questions
from a treebank.

Sources: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 3.2,
https://aclanthology.org/N16-1035; Zweig and Burges 2011, "The Microsoft Research Sentence
Completion Challenge".
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keras_onlstm.datasets.sentence_completion import CANDIDATES, Question
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.attachment import check_words
from keras_onlstm.text.vocabulary import UNKNOWN
from keras_onlstm.utils.arguments import integer

__all__ = [
    "Completion",
    "all_known",
    "arrange",
    "choose",
    "groups",
    "most_frequent",
    "score",
]


class Completion(NamedTuple):
    """A question, and a tree for each of its sentences.

    Attributes:
        question: `datasets.sentence_completion.Question`.
        trees: tuple of five `DependencyTree`.
    """

    question: Question
    trees: tuple[DependencyTree, ...]


def arrange(
    questions: Sequence[Question], trees: Iterable[DependencyTree], name: str = "trees"
) -> list[Completion]:
    """Combines questions with the trees of their sentences.

    Args:
        questions: list of `Question`.
        trees: iterable of `DependencyTree`, five per question, in the order of the sentences.
        name: name of the trees, for error messages.

    Returns:
        List of `Completion`.

    Raises:
        ValueError: if the number of trees is wrong, or a tree differs from its sentence in words.

    Example:

    >>> from keras_onlstm.datasets.sentence_completion import Question
    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.evaluation.sentence_completion import arrange
    >>> sentences = tuple(("it", word) for word in "rains snows pours hails thaws".split())
    >>> question = Question(sentences, 1, tuple(words[1] for words in sentences), 0)
    >>> arrange([question], map(chain, sentences))[0].trees[4].words
    ('it', 'thaws')
    >>> arrange([question], map(chain, sentences[:4]))
    Traceback (most recent call last):
    ...
    ValueError: trees: 4 trees for 5 sentences. Parse them again, one tree a sentence.
    """
    trees = list(trees)
    sentences = [sentence for question in questions for sentence in question.sentences]
    if len(trees) != len(sentences):
        raise ValueError(
            f"{name}: {len(trees):,} trees for {len(sentences):,} sentences. Parse them again, "
            "one tree a sentence."
        )
    for number, (tree, sentence) in enumerate(zip(trees, sentences, strict=True), 1):
        check_words(f"{name}, tree {number}", tree, sentence)
    rows = zip(*[iter(trees)] * CANDIDATES, strict=True)
    return [Completion(*pair) for pair in zip(questions, rows, strict=True)]


def choose(scores: npt.ArrayLike) -> np.ndarray:
    """Chooses the candidates with the highest scores; ties go to the first.

    Args:
        scores: array (questions, candidates).

    Returns:
        Integers (questions,), 0-based.

    Raises:
        ValueError: if a score is NaN.

    Example:

    >>> from keras_onlstm.evaluation.sentence_completion import choose
    >>> choose([[-3.0, -1.0, -1.0], [-2.0, -2.0, -2.5]]).tolist()
    [1, 0]
    """
    scores = np.asarray(scores)
    if np.isnan(scores).any():
        place = int(np.flatnonzero(np.isnan(scores).any(axis=1))[0])
        raise ValueError(f"question {place + 1}: a score is no number.")
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

    So sentences that differ only in unknown words have exactly equal scores, whatever the other
    trees in their batches are.

    P(<unk>) is the probability of any unknown word. In a small training text with many of them, it
    is far above that of a rare known word; `unknown` divides it among them.

    Args:
        log_probability: function from a list of trees to an array, as `TreeLSTM.log_probability`.
        completions: list of `Completion`.
        vocabulary: the words that the model knows; others become `<unk>`.
        change: function of a tree and the 0-based number of its question; returns the tree to
            score.
        unknown: positive integer, how many words share P(<unk>). 1: as published.
        block: number of trees between two calls of `progress`.
        progress: function of the number of trees read and of all, or `None`.

    Returns:
        Array (questions, candidates), in nats.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.evaluation.sentence_completion import Completion, score
    >>> trees = tuple(chain([word]) for word in "abcde")
    >>> def log_probability(trees):
    ...     return np.array([-1.0 if tree.words == ("b",) else -2.0 for tree in trees])
    >>> score(log_probability, [Completion(None, trees)], ["b"]).tolist()
    [[-2.0, -1.0, -2.0, -2.0, -2.0]]
    """
    vocabulary, share = frozenset(vocabulary), -math.log(integer("unknown", unknown))
    places: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
    distinct: list[DependencyTree] = []
    rows = []
    for number, completion in enumerate(completions):
        row = []
        for tree in completion.trees:
            tree = change(tree, number)
            words = tuple(word if word in vocabulary else UNKNOWN for word in tree.words)
            key = words, tree.heads
            if key not in places:
                places[key] = len(distinct)
                distinct.append(DependencyTree(words, tree.heads))
            row.append(places[key])
        rows.append(row)
    found = np.zeros(len(distinct))
    order = np.argsort([len(tree) for tree in distinct], kind="stable")  # to batch similar lengths
    for start in range(0, len(distinct), block):
        some = order[start : start + block]
        found[some] = log_probability([distinct[place] for place in some])
        if progress is not None:
            progress(start + len(some), len(distinct))
    found += [share * tree.words.count(UNKNOWN) for tree in distinct]
    return found[np.array(rows, "int64").reshape(-1, CANDIDATES)]


def all_known(
    completions: Sequence[Completion],
    vocabulary: Iterable[str],
    change: Callable[[str], str] = str,
) -> np.ndarray:
    """Finds the questions whose candidates are all in the vocabulary.

    Args:
        completions: list of `Completion`.
        vocabulary: words.
        change: function from a word to its form in the vocabulary.

    Returns:
        Booleans (questions,).

    Example:

    >>> from keras_onlstm.datasets.sentence_completion import Question
    >>> from keras_onlstm.evaluation.sentence_completion import Completion, all_known
    >>> question = Question((), 0, tuple("abcde"), 0)
    >>> all_known([Completion(question, ())], ["a", "b"]).tolist()
    [False]
    """
    words = frozenset(vocabulary)
    return np.array(
        [all(change(word) in words for word in one.question.candidates) for one in completions],
        "bool",
    )


def most_frequent(
    completions: Sequence[Completion],
    vocabulary: Sequence[str],
    change: Callable[[str], str] = str,
) -> np.ndarray:
    """Baseline without a model: chooses the most frequent candidate.

    Args:
        completions: list of `Completion`.
        vocabulary: list of words by falling frequency. All other words count as rarer.
        change: function from a word to its form in the vocabulary.

    Returns:
        Integers (questions,), 0-based.

    Example:

    >>> from keras_onlstm.datasets.sentence_completion import Question
    >>> from keras_onlstm.evaluation.sentence_completion import Completion, most_frequent
    >>> question = Question((), 0, tuple("xyabz"), 0)
    >>> most_frequent([Completion(question, ())], ["b", "a"]).tolist()
    [3]
    """
    ranks = {word: place for place, word in enumerate(vocabulary)}
    rows = [
        [-ranks.get(change(word), len(ranks)) for word in one.question.candidates]
        for one in completions
    ]
    return choose(np.array(rows, "float64").reshape(-1, CANDIDATES))


def groups(count: int, known: npt.ArrayLike, halves: bool = True) -> dict[str, np.ndarray]:
    """Groups of questions for which accuracies are reported.

    Args:
        count: integer, number of questions.
        known: booleans (questions,), see `all_known`.
        halves: whether to use the first half for validation and the second for test, as in the
            published code.

    Returns:
        Dictionary from names of groups to booleans (questions,).

    Example:

    >>> from keras_onlstm.evaluation.sentence_completion import groups
    >>> {name: rows.tolist() for name, rows in groups(3, [True, False, True]).items()}
    {'all': [True, True, True], 'validation': [True, False, False], 'test': [False, True, True],
     'known': [True, False, True]}
    """
    first = np.arange(count) < count // 2
    found = {"all": np.ones(count, "bool")}
    if halves:
        found |= {"validation": first, "test": ~first}
    return {**found, "known": np.asarray(known, "bool")}
