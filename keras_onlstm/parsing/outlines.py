"""Trees as plain text, one word a line."""

import re

from keras_onlstm.parsing.trees import safe
from keras_onlstm.utils.types import NltkTree

__all__ = ["conll", "outline"]


def outline(tree: NltkTree) -> str:
    """A tree as lines of text, from the left to its words, which stand one below the other.

    However wide a character is on the screen, nothing moves: a word ends its line.

    Args:
        tree: `nltk.Tree`. Its labels are not written. White space in its words is written as `_`,
            and `_` stands for a word without characters.

    Returns:
        String of a line for each word, or for a constituent without children.

    Example:

    >>> from keras_onlstm.parsing import build_tree, outline
    >>> print(outline(build_tree([0.9, 0.1, 0.8, 0.3, 0.2], "the cat saw a dog".split(), "binary")))
    ─┬─┬─ the
     │ └─ cat
     └─┬─ saw
       └─┬─ a
         └─ dog
    """
    from nltk import Tree

    # What stands before a node in its line, and before its other lines; the last is on top.
    lines, pending = [], [(tree, "", "")]
    while pending:
        node, before, below = pending.pop()
        if not isinstance(node, Tree):
            word = re.sub(r"\s", "_", str(node)) or "_"
            lines.append(f"{before}─ {word}")
            continue
        if not node:
            lines.append(f"{before}─")
            continue
        last = len(node) - 1
        children = []
        for place, child in enumerate(node):
            if not place:
                first = f"{before}─┬" if last else f"{before}──"
            else:
                first = f"{below} {'├' if place < last else '└'}"
            children.append((child, first, f"{below} {'│' if place < last else ' '}"))
        pending += reversed(children)
    return "\n".join(lines)


def conll(tree: NltkTree) -> str:
    """A tree as lines of three columns, as CoNLL's shared tasks of 2005 and 2012 have their trees.

    The columns, with tabs between them, are the number of the word from 0 on, the word, and its
    part of the tree in brackets, where `*` stands for the word.

    Args:
        tree: `nltk.Tree`. White space in its words is written as `_`, and `_` stands for a word
            without characters. In its labels `*` is written as `_`, other characters as `brackets`
            writes them.

    Returns:
        String of a line for each word. The words put in the places of the `*` are the tree again.

    Raises:
        ValueError: if a constituent has no words.

    Example:

    >>> from keras_onlstm.parsing import build_tree, conll
    >>> tree = build_tree([0.9, 0.1, 0.8, 0.3, 0.2], "the cat saw a dog".split(), "binary")
    >>> print(conll(tree).expandtabs(6))
    0     the   (X(X*
    1     cat   *)
    2     saw   (X*
    3     a     (X*
    4     dog   *)))
    """
    from nltk import Tree

    words: list[str] = []
    before: list[str] = []  # what stands before each word in the tree, and after it
    after: list[str] = []
    opened = ""
    pending = [tree]
    while pending:
        node = pending.pop()
        if node is None:
            after[-1] += ")"
        elif isinstance(node, Tree):
            if not node:
                raise ValueError("A constituent without words has no place in CoNLL's columns.")
            opened += "(" + safe(node.label()).replace("*", "_")
            pending += [None, *reversed(list(node))]
        else:
            words.append(re.sub(r"\s", "_", str(node)) or "_")
            before.append(opened)
            after.append("")
            opened = ""
    return "\n".join(
        f"{number}\t{word}\t{start}*{end}"
        for number, (word, start, end) in enumerate(zip(words, before, after, strict=True))
    )
