"""Dependency trees from constituency trees, by rules that find the head of a constituent."""

import re
import reprlib

from keras_onlstm.dependencies.attachment import PUNCTUATION
from keras_onlstm.dependencies.tree import DependencyTree
from keras_onlstm.utils.types import NltkTree

__all__ = ["HEAD_RULES", "TRACE", "from_constituents"]

TRACE = "-NONE-"  # the tag of what was not said
_PASSED_OVER = PUNCTUATION | {"-LRB-", "-RRB-"}

# Of each label, where the search begins, and what for: the groups one after the other, of a group
# whichever is met first. In the end, and for other labels from the right, it is the first that is
# no punctuation. Source: the head rules of Yamada and Matsumoto 2003, "Statistical Dependency
# Analysis with Support Vector Machines", https://aclanthology.org/W03-3023, in which auxiliaries
# and modals are heads; every word of NLTK's dependency treebank has the head that they give it.
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
    """The dependency tree of a constituency tree.

    A constituent's head is found by `constituents.HEAD_RULES`, the other parts of it depend on
    that. Traces go, punctuation stays.

    Args:
        tree: `nltk.Tree` whose leaves are under their part-of-speech tags, as the Penn Treebank has
            them. What follows `-` or `=` in a label is not looked at.

    Returns:
        `DependencyTree`, projective, with tags and without relations.

    Raises:
        ValueError: if it is no such tree, or has no word but traces.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.dependencies import from_constituents
    >>> tree = "(S (NP (DT the) (NN cat)) (VP (MD will) (VP (VB sleep))) (. .))"
    >>> from_constituents(Tree.fromstring(tree)).heads
    (2, 3, 0, 3, 3)
    """
    words, nodes = _nodes(tree)
    heads = [0] * (len(words) + 1)
    tops = [0] * len(nodes)  # the place of the head of every constituent; 0: all traces
    for number in reversed(range(len(nodes))):  # the parts of a constituent have higher numbers
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
    """(word, tag) of the words, and of every node, traces left out, label, parts and place."""
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
    """The place of the head among the labels of the parts of a constituent."""
    side, groups = HEAD_RULES.get(label, ("right", ""))
    places = list(range(len(labels)))
    if side == "right":
        places.reverse()
    for group in groups.split():
        for place in places:
            if labels[place] in group.split("|"):
                return place
    return next((place for place in places if labels[place] not in _PASSED_OVER), places[0])
