"""Binary trees from distances, baseline trees, and writing trees.

No function here is recursive, so sentences may have any length. `nltk.Tree` recurses in `leaves`,
`str` and `pprint`; use `brackets` and `nested_json` to write deep trees.
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_onlstm.utils import NltkTree

LABEL = "X"  # of every constituent, because trees are unlabelled
METHODS = ("greedy", "binary")


def check_tokens(tokens: Iterable[str]) -> list[str]:
    """Returns the tokens as a list, which must not be empty."""
    tokens = list(tokens)
    if not tokens:
        raise ValueError("tokens is empty: a sentence without words has no tree.")
    return tokens


def from_splits(tokens: Iterable[str], split: Callable[[int, int], int]) -> NltkTree:
    """The binary tree that splits each constituent [start, end) at `split(start, end)`."""
    from nltk import Tree  # takes half a second, which must not delay loading a parser

    tokens = check_tokens(tokens)
    if len(tokens) == 1:
        return Tree(LABEL, tokens)
    root = Tree(LABEL, [])
    pending = [(root, 0, len(tokens))]
    while pending:
        tree, start, end = pending.pop()
        middle = split(start, end)
        for left, right in ((start, middle), (middle, end)):
            if right - left == 1:
                tree.append(tokens[left])
            else:
                tree.append(Tree(LABEL, []))
                pending.append((tree[-1], left, right))
    return root


def build_tree(distances: npt.ArrayLike, tokens: Iterable[str], method: str = "greedy") -> NltkTree:
    """Builds a binary tree from distances.

    `"greedy"` is the published algorithm: it splits a constituent before the word with the largest
    distance, x_i, into `((x_<i) (x_i (x_>i)))`. It is biased to right-branching trees and cannot
    build every binary tree (Dyer, Melis and Blunsom 2019, https://arxiv.org/abs/1909.09428).
    `"binary"` is unbiased: it splits a constituent at the largest of the distances between its
    words. The left-most of equal distances is used.

    Source: Shen et al. 2019, "Ordered Neurons", section 5.2, https://arxiv.org/abs/1810.09536.

    Args:
        distances: numbers (words,): how much of the cell state is forgotten at each word.
        tokens: list of as many words.
        method: `"greedy"` or `"binary"`.

    Returns:
        `nltk.Tree` of constituents labelled `X` with two children; of a single word with one.

    Raises:
        ValueError: if `tokens` is empty, lengths differ, a distance is not finite, or the method is
            unknown.

    >>> from keras_onlstm.parsing import build_tree
    >>> print(build_tree([0.9, 0.1, 0.8, 0.2, 0.3], "the cat saw a dog".split()))
    (X the (X cat (X saw (X a dog))))
    >>> print(build_tree([0.9, 0.1, 0.8, 0.3, 0.2], "the cat saw a dog".split(), "binary"))
    (X (X the cat) (X saw (X a dog)))
    """
    if method not in METHODS:
        raise ValueError(f"method must be 'greedy' or 'binary', got {method!r}.")
    tokens = check_tokens(tokens)
    values = np.asarray(distances, "float64")
    if values.shape != (len(tokens),):
        raise ValueError(
            f"distances must have the shape ({len(tokens)},), got the shape {values.shape}."
        )
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"distances[{index}] must be finite, got {values[index]}.")

    def split(start: int, end: int) -> int:
        if method == "binary":
            return start + 1 + int(values[start + 1 : end].argmax())
        # After the split before x_i, the constituent (x_i x_>i) begins with its largest distance.
        index = start + int(values[start:end].argmax())
        return index if index > start else start + 1

    return from_splits(tokens, split)


def left_branching(tokens: Iterable[str]) -> NltkTree:
    """The tree ((((a b) c) d) e) of a list of words; `ValueError` if it is empty.

    >>> from keras_onlstm.parsing import left_branching
    >>> print(left_branching(["a", "b", "c"]))
    (X (X a b) c)
    """
    return from_splits(tokens, lambda start, end: end - 1)


def right_branching(tokens: Iterable[str]) -> NltkTree:
    """The tree (a (b (c (d e)))) of a list of words; `ValueError` if it is empty.

    >>> from keras_onlstm.parsing import right_branching
    >>> print(right_branching(["a", "b", "c"]))
    (X a (X b c))
    """
    return from_splits(tokens, lambda start, end: start + 1)


def balanced(tokens: Iterable[str]) -> NltkTree:
    """Splits every constituent in the middle; if its length is odd, the right part is longer.

    >>> from keras_onlstm.parsing import balanced
    >>> print(balanced(["a", "b", "c", "d"]))
    (X (X a b) (X c d))
    """
    return from_splits(tokens, lambda start, end: (start + end) // 2)


def random_tree(tokens: Iterable[str], seed: int | random.Random = 0) -> NltkTree:
    """Splits every constituent at a random position; all positions are equally likely.

    The seed is an integer, or a `random.Random`, from which to draw many trees.

    >>> from keras_onlstm.parsing import random_tree
    >>> print(random_tree(["a", "b", "c"], seed=1))
    (X a (X b c))
    """
    generator = seed if isinstance(seed, random.Random) else random.Random(seed)
    return from_splits(tokens, lambda start, end: generator.randrange(start + 1, end))


def brackets(tree: NltkTree) -> str:
    """Writes a tree of any depth as bracketed text that `nltk.Tree.fromstring` can read.

    In words and labels, brackets are written as `-LRB-` and `-RRB-`, white space and an empty word
    as `_`.

    >>> from keras_onlstm.parsing import brackets, right_branching
    >>> brackets(right_branching(["a", "(", "b"]))
    '(X a (X -LRB- b))'
    """
    from nltk import Tree

    written, pending = [], [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, Tree):
            written.append(node)
            continue
        # After an empty label, common at the top of treebank trees, a word would become the label.
        bare = str(node.label()) == "" and (not node or isinstance(node[0], Tree))
        written.append("(" if bare else f"({escape(node.label())}")
        pending.append(")")
        children = [child if isinstance(child, Tree) else escape(child) for child in node]
        pending += reversed(children)
    return " ".join(written).replace(" )", ")")


def nested_json(tree: NltkTree) -> str:
    """Writes a tree as JSON: a word is a string, a constituent is the list of its children.

    Labels are not written. `json.loads` can read some hundreds of levels.

    >>> from keras_onlstm.parsing import nested_json, right_branching
    >>> nested_json(right_branching(["a", "(", "b"]))
    '["a", ["(", "b"]]'
    """
    from nltk import Tree

    written: list[str] = []
    pending: list[tuple[Any, str]] = [(tree, "")]  # a node, or `None` for "]", and its separator
    while pending:
        node, separator = pending.pop()
        if node is None:
            written.append("]")
        elif isinstance(node, Tree):
            written.append(separator + "[")
            pending.append((None, ""))
            pending += reversed([(child, ", " if i else "") for i, child in enumerate(node)])
        else:
            written.append(separator + json.dumps(str(node), ensure_ascii=False))
    return "".join(written)


def escape(token: object) -> str:
    """Escapes a word or a label for bracketed text."""
    text = str(token).replace("(", "-LRB-").replace(")", "-RRB-")
    return re.sub(r"\s", "_", text) or "_"


def with_punctuation(tree: NltkTree, tokens: Sequence[str], is_word: Sequence[bool]) -> NltkTree:
    """Adds the punctuation of a sentence to its tree, attached as high as possible.

    That is where treebanks have it: at both ends of a sentence as a child of the root, and between
    two words as a child of the smallest constituent that contains both.

    Args:
        tree: `nltk.Tree` over the words.
        tokens: list of the words and punctuation marks, in order.
        is_word: list of bools, which tokens are words.

    Returns:
        `nltk.Tree` whose leaves are all tokens.

    Raises:
        ValueError: if the number of words differs from the tree's.

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import with_punctuation
    >>> tree = Tree.fromstring("(X (X the cat) slept)")
    >>> print(with_punctuation(tree, ["the", "cat", ",", "slept", "."], [1, 1, 0, 1, 0]))
    (X (X the cat) , slept .)
    """
    from nltk import Tree

    marks: list[list[str]] = [[]]  # before each word, and after the last one
    for token, token_is_word in zip(tokens, is_word, strict=True):
        if token_is_word:
            marks.append([])
        else:
            marks[-1].append(token)
    root = Tree(tree.label(), marks[0])
    marks[0] = []
    count, words = 0, len(marks) - 1
    pending = [(root, iter(tree))]
    while pending:
        target, children = pending[-1]
        child = next(children, None)
        if child is None:
            pending.pop()
            continue
        if target and count <= words:
            target += marks[count]
            marks[count] = []
        if isinstance(child, Tree):
            copy = Tree(child.label(), [])
            target.append(copy)
            pending.append((copy, iter(child)))
        else:
            target.append(child)
            count += 1
    if count != words:
        raise ValueError(f"is_word marks {words} tokens as words, but the tree has {count} words.")
    root += marks[count]
    return root
