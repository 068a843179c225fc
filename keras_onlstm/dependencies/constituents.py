"""Conversion of constituency trees to dependency trees with head rules."""

import re
import reprlib

from keras_onlstm.dependencies.attachment import PUNCTUATION
from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils import NltkTree

__all__ = ["HEAD_RULES", "TRACE", "from_constituents"]

TRACE = "-NONE-"  # the tag of empty elements
_PASSED_OVER = PUNCTUATION | {"-LRB-", "-RRB-"}

# For each label, the side where the search begins, and groups of labels by priority. The head is
# the first part that matches a group, or else the first that is not punctuation. For other labels
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

    `constituents.HEAD_RULES` find the head of each constituent, on which its other parts depend.
    Traces are removed, punctuation is kept.

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
    for number in reversed(range(len(nodes))):  # parts of a constituent have higher numbers
        label, parts, place = nodes[number]
        parts = [part for part in parts if tops[part]]
        if parts:
            head = parts[_head(label, [nodes[part][0] for part in parts])]
            place = tops[head]
            for part in parts:
                if part != head:
                    heads[tops[part]] = place
        tops[number] = place
    if not words:
        raise ValueError(f"{reprlib.repr(tree.label())}: there is no word in it.")
    return DependencyTree([word for word, _ in words], heads[1:], [tag for _, tag in words])


def _nodes(tree):
    """(word, tag) of all words, and (label, parts, position) of all nodes except traces."""
    from nltk import Tree

    words: list[tuple[str, str]] = []
    nodes: list[tuple[str, list[int], int]] = []
    top: list[int] = []
    pending = [(tree, top)]
    while pending:
        node, parts = pending.pop()
        if not isinstance(node, Tree) or not len(node):
            raise ValueError(f"{reprlib.repr(node)} stands in it without a tag or a word.")
        label, place = node.label(), 0
        if isinstance(node[0], str):
            if len(node) > 1:
                raise ValueError(f"{label} stands above more than a word.")
            if label == TRACE:
                continue
            words.append((node[0], label))
            place = len(words)
        parts.append(len(nodes))
        mine: list[int] = []
        nodes.append((re.split("[-=]", label)[0] or label, mine, place))
        if not place:
            pending += [(child, mine) for child in reversed(list(node))]
    return words, nodes


def _head(label, labels):
    """Index of the head among the labels of the parts of a constituent."""
    side, groups = HEAD_RULES.get(label, ("right", ""))
    places = list(range(len(labels)))
    if side == "right":
        places.reverse()
    for group in groups.split():
        for place in places:
            if labels[place] in group.split("|"):
                return place
    return next((place for place in places if labels[place] not in _PASSED_OVER), places[0])
