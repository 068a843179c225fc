"""Conversion of constituency trees to dependency trees with head rules."""

import re
import reprlib

from keras_onlstm.dependencies.attachment import PUNCTUATION
from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils import NltkTree

_NOT_HEADS = PUNCTUATION | {"-LRB-", "-RRB-"}

# For each label, the side where the search begins, and groups of labels by priority. The head is
# the first child that matches a group, or else the first that is not punctuation. For other labels
# the search begins on the right. Source: Yamada and Matsumoto 2003, "Statistical Dependency
# Analysis with Support Vector Machines", https://aclanthology.org/W03-3023. Auxiliaries and modals
# are heads. The rules reproduce every head in NLTK's dependency treebank.
_NOUNS = "POS|NN|NNP|NNPS|NNS NX JJR CD JJ JJS RB QP NP"
HEAD_RULES: dict[str, tuple[str, str]] = {
    "ADJP": ("right", "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    "ADVP": ("left", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CONJP": ("left", "CC RB IN"),
    "FRAG": ("left", ""),
    "INTJ": ("right", ""),
    "LST": ("left", "LS :"),
    "NAC": ("right", "NN|NNS|NNP|NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "NP": ("right", _NOUNS),
    "NX": ("right", _NOUNS),
    "PP": ("left", "IN TO VBG VBN RP FW"),
    "PRN": ("right", ""),
    "PRT": ("left", "RP"),
    "QP": ("right", "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    "RRC": ("left", "VP NP ADVP ADJP PP"),
    "S": ("right", "TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": ("right", "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": ("right", "SQ S SINV SBARQ FRAG"),
    "SINV": ("right", "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": ("right", "VBZ VBD VBP VB MD VP SQ"),
    "UCP": ("left", ""),
    "VP": ("left", "VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    "WHADJP": ("right", "CC WRB JJ ADJP"),
    "WHADVP": ("left", "CC WRB"),
    "WHNP": ("right", "WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": ("left", "IN TO FW"),
}


def from_constituents(tree: NltkTree) -> DependencyTree:
    """Converts a constituency tree to a dependency tree.

    Head rules find the head of each constituent, on which its other children depend. Traces are
    removed, punctuation is kept.

    Args:
        tree: `nltk.Tree` with part-of-speech tags above its leaves, as in the Penn Treebank.
            Anything after `-` or `=` in a label is ignored.

    Returns:
        `DependencyTree`, projective, with tags and without relations.

    Raises:
        ValueError: if the tree has another form, or contains only traces.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.dependencies import from_constituents
    >>> tree = "(S (NP (DT the) (NN cat)) (VP (MD will) (VP (VB sleep))) (. .))"
    >>> from_constituents(Tree.fromstring(tree)).heads
    (2, 3, 0, 3, 3)
    """
    words, nodes = _nodes(tree)
    heads = [0] * (len(words) + 1)
    tops = [0] * len(nodes)  # position of each constituent's head; 0: only traces
    for index in reversed(range(len(nodes))):  # children have higher indices
        label, children, position = nodes[index]
        children = [child for child in children if tops[child]]
        if children:
            head = children[_head(label, [nodes[child][0] for child in children])]
            position = tops[head]
            for child in children:
                if child != head:
                    heads[tops[child]] = position
        tops[index] = position
    if not words:
        raise ValueError(f"tree must contain a word, got only traces under {tree.label()!r}.")
    return DependencyTree([word for word, _ in words], heads[1:], [tag for _, tag in words])


def is_preterminal(node: NltkTree) -> bool:
    """Whether a node is a tag above a word. `ValueError` if it is not a constituent either."""
    from nltk import Tree

    if not isinstance(node, Tree) or not len(node):
        raise ValueError(f"each node must be a tag or have children, got {reprlib.repr(node)}.")
    if not isinstance(node[0], str):
        return False
    if len(node) > 1:
        raise ValueError(f"the tag {node.label()!r} must be above one word, got {len(node)} parts.")
    return True


def _nodes(tree):
    """(word, tag) of all words, and (label, children, position) of all nodes except traces."""
    words: list[tuple[str, str]] = []
    nodes: list[tuple[str, list[int], int]] = []
    top: list[int] = []
    pending = [(tree, top)]
    while pending:
        node, siblings = pending.pop()
        position, children = 0, list[int]()
        if not is_preterminal(node):
            pending += [(child, children) for child in reversed(list(node))]
        elif node.label() == "-NONE-":
            continue
        else:
            words.append((node[0], node.label()))
            position = len(words)
        siblings.append(len(nodes))
        label = re.split("[-=]", node.label())[0] or node.label()
        nodes.append((label, children, position))
    return words, nodes


def _head(label, labels):
    """Index of the head among the labels of the children of a constituent."""
    side, groups = HEAD_RULES.get(label, ("right", ""))
    indices = list(range(len(labels)))
    if side == "right":
        indices.reverse()
    for group in groups.split():
        for index in indices:
            if labels[index] in group.split("|"):
                return index
    return next((index for index in indices if labels[index] not in _NOT_HEADS), indices[0])
