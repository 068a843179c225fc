"""Sentence completion: scores, choices, groups of questions, and questions from a treebank."""

import math
from collections import Counter

import numpy as np
import pytest

from helpers.corpora import corpora_in
from keras_onlstm.datasets import dependency_treebank
from keras_onlstm.datasets import sentence_completion as data
from keras_onlstm.datasets.sentence_completion import Question
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree, chain
from keras_onlstm.evaluation.sentence_completion import (
    Completion,
    all_known,
    arrange,
    blanks,
    choose,
    groups,
    most_frequent,
    score,
)

pytestmark = pytest.mark.keras_free


def question(candidates, answer=0, before=("it",)):
    sentences = tuple((*before, word) for word in candidates)
    return Question(sentences, len(before), tuple(candidates), answer)


def completion(candidates, answer=0):
    one = question(candidates, answer)
    return Completion(one, tuple(map(chain, one.sentences)))


QUESTIONS = [question("abcde"), question("fghij")]
SENTENCES = [words for one in QUESTIONS for words in one.sentences]


def test_arrange_combines_trees_with_sentences():
    found = arrange(QUESTIONS, map(chain, SENTENCES))
    assert [one.question for one in found] == QUESTIONS
    assert [[tree.words for tree in one.trees] for one in found] == [SENTENCES[:5], SENTENCES[5:]]


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (SENTENCES[:9], "9 trees for 10 sentences"),
        ([*SENTENCES[:7], ("it", "H"), *SENTENCES[8:]], "tree 8: word 2 must be 'h', not 'H'"),
    ],
)
def test_arrange_rejects_trees_of_other_sentences(sentences, message):
    with pytest.raises(ValueError, match=f"msr.conll.*{message}"):
        arrange(QUESTIONS, map(chain, sentences), "msr.conll")


def test_ties_go_to_the_first_candidate():
    rows = [[-1, -1, -1, -1, -1], [-3, -2, -2, -4, -2], [-5, -4, -3, -2, -1], [-np.inf] * 5]
    assert choose(rows).tolist() == [0, 1, 4, 0]
    assert choose(np.zeros((0, 5))).tolist() == []
    with pytest.raises(ValueError, match="question 2: a score is NaN"):
        choose([[0.0, 1.0], [0.0, np.nan]])


def test_scores_keep_the_order_of_trees():
    """By a model that knows each word's number, and reads sentences of any lengths."""
    generator = np.random.default_rng(0)
    numbers = {word: float(generator.integers(-99, 0)) for word in "abcdefghijklmnopqrst"}
    completions = []
    for start in (0, 5, 10, 15):
        words = "abcdefghijklmnopqrst"[start : start + 5]
        trees = tuple(chain([words[0]] * (start % 4) + [word]) for word in words)
        completions.append(Completion(question(words), trees))
    read = []

    def log_probability(trees):
        read.append(len(trees))
        return np.array([sum(numbers[word] for word in tree.words) for tree in trees])

    done = []
    found = score(
        log_probability, completions, numbers, block=3, progress=lambda *two: done.append(two)
    )
    expected = [[sum(map(numbers.get, t.words)) for t in one.trees] for one in completions]
    assert found.tolist() == expected
    assert read == [3, 3, 3, 3, 3, 3, 2]
    assert done == [(count, 20) for count in (3, 6, 9, 12, 15, 18, 20)]


def test_equal_sentences_are_scored_once():
    """A model that gives every tree it is asked another score would break ties otherwise."""
    asked = []

    def log_probability(trees):
        asked.extend(trees)
        return -np.arange(len(trees)) - 1.0

    found = score(log_probability, [completion("vwxya")], ["it", "a"])
    assert [tree.words for tree in asked] == [("it", "<unk>"), ("it", "a")]
    assert found.tolist() == [[-1, -1, -1, -1, -2]] and choose(found).tolist() == [0]
    # Another tree of the same words is another one.
    trees = [
        DependencyTree(["it", "v"], heads) for heads in ([0, 1], [2, 0], [0, 1], [2, 0], [2, 0])
    ]
    asked.clear()
    found = score(log_probability, [Completion(None, tuple(trees))], [])
    assert [tree.heads for tree in asked] == [(0, 1), (2, 0)]
    assert found.tolist() == [[-1, -2, -1, -2, -2]]
    assert score(log_probability, [], []).shape == (0, 5)


def test_unknown_words_share_their_probability():
    """Of b, c and d, which are unknown, one has a third of P(<unk>), less than a known word has."""
    logs = {"it": -1.0, "a": math.log(0.2), "<unk>": math.log(0.5)}

    def log_probability(trees):
        return np.array([sum(logs[word] for word in tree.words) for tree in trees])

    for unknown, first in ((1, 0), (2, 0), (3, 1)):
        found = score(log_probability, [completion("bacda")], logs, unknown=unknown)
        shares = [0.5 / unknown, 0.2, 0.5 / unknown, 0.5 / unknown, 0.2]
        np.testing.assert_allclose(found[0], -1 + np.log(shares), rtol=0, atol=1e-12)
        assert choose(found).tolist() == [first]
    before = Completion(None, tuple(chain(["x", "y", word]) for word in "abcde"))
    found = score(lambda trees: np.zeros(len(trees)), [before], ["a"], unknown=4)
    np.testing.assert_allclose(found, -np.log(4) * np.array([[2, 3, 3, 3, 3]]), atol=1e-12)
    with pytest.raises(ValueError, match="unknown"):
        score(log_probability, [], [], unknown=0)


def test_change_replaces_the_scored_trees():
    read = []

    def change(tree, number):
        return chain([*tree.words, str(number)])

    def log_probability(trees):
        read.extend(tree.words for tree in trees)
        return np.zeros(len(trees))

    words = ["it", *"abcde", "0", "1"]
    score(log_probability, [completion("abcde"), completion("edcba")], words, change)
    assert read[:1] == [("it", "a", "0")] and read[-1:] == [("it", "a", "1")] and len(read) == 10


def test_groups_of_questions():
    found = groups(1040, np.arange(1040) % 3 == 0)
    counts = {name: int(rows.sum()) for name, rows in found.items()}
    assert counts == {"all": 1040, "validation": 520, "test": 520, "known": 347}
    assert found["validation"][519] and not found["validation"][520]
    assert (found["validation"] ^ found["test"]).all()
    assert [*groups(2, [True, False], split=False)] == ["all", "known"]


def test_all_known_checks_all_candidates():
    completions = [completion("abcde"), completion("abcdf"), completion("ABCDE")]
    assert all_known(completions, "abcde").tolist() == [True, False, False]
    assert all_known(completions, "abcde", str.lower).tolist() == [True, False, True]


def test_most_frequent_chooses_by_rank():
    completions = [completion("vwbax"), completion("vwxyz"), completion("vwxAz")]
    assert most_frequent(completions, ["<unk>", "a", "b"]).tolist() == [3, 0, 0]
    assert most_frequent(completions, ["<unk>", "a", "b"], str.lower).tolist() == [3, 0, 3]


def test_frequency_in_brown_answers_a_quarter(shared_data):
    """25.3% of 1,040 questions, as measured apart from this code; 54% of known candidates."""
    from keras_onlstm.datasets import brown

    with corpora_in(shared_data / "nltk_data"):
        files = brown.load_files()
    counts = Counter(
        normalize(word) for sentences in files.values() for words in sentences for word in words
    )
    questions = data.load(shared_data / "msr_sentence_completion")
    completions = [Completion(one, ()) for one in questions]
    answers = np.array([one.answer for one in questions])
    rows = [[counts[normalize(word)] for word in one.candidates] for one in questions]
    assert round(1000 * np.mean(choose(rows) == answers)) == 253
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    found = most_frequent(completions, ordered, normalize) == answers
    assert abs(np.mean(found) - 0.253) < 0.003  # of equal counts the alphabet decides
    often = [word for word in ordered if counts[word] >= 2]
    assert round(100 * np.mean(all_known(completions, often, normalize))) == 54


def sentence(noun, tag="NN"):
    return DependencyTree(["the", noun, "is", "old"], [2, 3, 0, 3], ["DT", tag, "VBZ", "JJ"])


def treebank(**counts):
    return [sentence(noun) for noun, count in counts.items() for _ in range(count)]


def test_distractors_are_neighbours_by_frequency():
    train = treebank(a=2, b=100, c=9, d=10, e=11, f=12, g=30, h=3, i=1, k=40)
    train += [sentence("j", "NNS")] * 10
    order = "ahcdefgkb"  # i is there but once
    windows = {tuple(sorted(order[start : start + 5])) for start in range(5)}
    seen, places = set(), set()
    for seed in range(60):
        (one,) = blanks(train, [sentence("e")], seed)
        candidates = one.question.candidates
        assert candidates[one.question.answer] == "e" and one.question.position == 1
        seen.add(tuple(sorted(candidates)))
        places.add(one.question.answer)
        for tree, words, word in zip(one.trees, one.question.sentences, candidates, strict=True):
            assert tree.words == words == ("the", word, "is", "old")
            assert (tree.heads, tree.tags) == ((2, 3, 0, 3), ("DT", "NN", "VBZ", "JJ"))
    assert seen == windows and places == {0, 1, 2, 3, 4}
    for word in "ahcdfgkb":  # four are rarer, four more frequent than e
        assert blanks(train, [sentence(word)]) == []
    assert blanks(train, [sentence("d")], min_count=1) != []


NOUNS = {letter: 9 + place for place, letter in enumerate("abcdefghi")}


def test_unsuitable_gaps_and_candidates_are_excluded():
    train = treebank(**NOUNS)
    assert len(blanks(train, [sentence("e")])) == 1
    assert blanks(train, [sentence("z")]) == []  # no word of the training trees
    assert blanks(train, [sentence("e")], min_count=10) == []  # a, the fourth below it, has 9
    assert blanks(train, [sentence("e", "NNS")]) == []  # another tag than it has mostly
    # Four words below it; two are not words, or count as one for a model.
    assert blanks(treebank(**{**NOUNS, "%": 10} | {"a": 1}), [sentence("e")]) == []
    assert blanks(treebank(**{**NOUNS, "B": 9} | {"a": 1}), [sentence("e")]) == []
    first = DependencyTree(["e", "is"], [2, 0], ["NN", "VBZ"])
    assert (
        blanks(train, [first]) == []
    )  # `is` is a function word, and the first word is never a gap
    with pytest.raises(ValueError, match="has no tags"):
        blanks(train, [chain(["the", "e"])])


def test_blanks_depend_on_the_seed():
    train = treebank(**dict.fromkeys("abcdefghijklmnop", 5))
    test = [sentence(word) for word in "abcdefghijklmnop"]
    first = blanks(train, test, seed=1)
    assert blanks(train, test, seed=1) == first != blanks(train, test, seed=2)
    assert len({one.question.answer for one in first}) > 1
    pairs = {frozenset(one.question.candidates) for one in first}
    assert len(pairs) == len(first) > 3  # of equals, the neighbours are drawn


def test_blanks_of_the_treebank(shared_data):
    """Tags and frequencies of all candidates, counted anew."""
    with corpora_in(shared_data / "nltk_data"):
        train, test = (dependency_treebank.load(part) for part in ("train", "test"))
    counts, tags = Counter(), {}
    for tree in train:
        counts.update(tree.words)
        for word, tag in zip(tree.words, tree.tags, strict=True):
            tags.setdefault(word, Counter())[tag] += 1
    completions = blanks(train, test)
    assert 250 < len(completions) <= len(test)
    logs = []
    for question, trees in completions:
        assert len({normalize(word) for word in question.candidates}) == 5
        tag = trees[0].tags[question.position]
        assert tag[:2] in ("NN", "VB", "JJ", "RB") and question.position > 0
        for word in question.candidates:
            assert counts[word] >= 2 and tags[word][tag] == max(tags[word].values())
        numbers = np.log([counts[word] for word in question.candidates])
        logs.append(np.abs(numbers - numbers[question.answer]).max())
    assert np.median(logs) < 0.2
    by_count = choose([[counts[word] for word in one.question.candidates] for one in completions])
    right = np.mean(by_count == [one.question.answer for one in completions])
    assert 0.15 < right < 0.25, right  # frequency gives no hint
