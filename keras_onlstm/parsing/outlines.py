"""Trees as plain text, with a line for each word."""

import re

from keras_onlstm.parsing.trees import safe
from keras_onlstm.utils.types import NltkTree

__all__ = ["conll", "outline"]


def outline(tree: NltkTree) -> str:
    """Draws a tree with box-drawing characters, with the root at the left and a word in each line.

    Words come last in their lines, so that wide characters do not shift the drawing.

    Args:
        tree: `nltk.Tree`. Its labels are not written. White space in its words is written as `_`,
            and an empty word as `_`.

    Returns:
        String with a line for each word and each constituent without children.

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

    # Stack of (node, prefix of its first line, prefix of its other lines).
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
    """Writes a tree in the column format of the CoNLL shared tasks of 2005 and 2012.

    The three columns, separated by tabs, are the 0-based number of the word, the word, and its part
    of the bracketed tree, where `*` marks the word.

    Args:
        tree: `nltk.Tree`. White space in its words is written as `_`, and an empty word as `_`. In
            its labels `*` is written as `_`, and other characters as by `brackets`.

    Returns:
        String with a line for each word. Replacing each `*` by its word gives the bracketed tree.

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
    before: list[str] = []  # the brackets before and after each word
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
