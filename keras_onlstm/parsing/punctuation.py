"""Punctuation in trees that were built without it."""

from collections.abc import Sequence

from keras_onlstm.utils.types import NltkTree

__all__ = ["with_punctuation"]


def with_punctuation(tree: NltkTree, tokens: Sequence[str], is_word: Sequence[bool]) -> NltkTree:
    """A tree with the punctuation of its sentence, as high as it can stand.

    That is where treebanks have it: at the beginning and at the end of a sentence directly below
    the top, between two words as a child of the smallest constituent that has both.

    Args:
        tree: `nltk.Tree` over the words.
        tokens: list of the words and the punctuation marks, in their order.
        is_word: list of bools, which of them are words.

    Returns:
        `nltk.Tree` whose leaves are all tokens. Without the punctuation it is the tree given.

    Raises:
        ValueError: if the tree does not have as many words.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import with_punctuation
    >>> tree = Tree.fromstring("(X (X the cat) slept)")
    >>> print(with_punctuation(tree, ["the", "cat", ",", "slept", "."], [1, 1, 0, 1, 0]))
    (X (X the cat) , slept .)
    """
    from nltk import Tree

    marks: list[list[str]] = [[]]  # before each word, and behind the last
    for token, word in zip(tokens, is_word, strict=True):
        if word:
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
            below = Tree(child.label(), [])
            target.append(below)
            pending.append((below, iter(child)))
        else:
            target.append(child)
            count += 1
    if count != words:
        raise ValueError(f"the tree has {count} words, its sentence {words}.")
    root += marks[count]
    return root
