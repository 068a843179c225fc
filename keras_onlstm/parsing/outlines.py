"""Trees as plain text, one word a line."""

import re

from keras_onlstm.utils.types import NltkTree

__all__ = ["outline"]


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
