"""All dependency trees of some words, by brute force."""

import itertools


def named(count):
    return [f"w{index}" for index in range(1, count + 1)]


def is_tree(heads):
    """Whether the heads form a tree with one word under ROOT."""

    def arrives(index):
        for _ in heads:
            index = heads[index - 1] if index else 0
        return not index

    return heads.count(0) == 1 and all(arrives(index) for index in range(1, len(heads) + 1))


def is_below(heads, index, head):
    """Whether a word is a head or one of its descendants."""
    while index and index != head:
        index = heads[index - 1]
    return index == head


def crossed_words(heads, index):
    """The words between a word and its head that are not descendants of the head."""
    head = heads[index - 1]
    between = range(min(index, head) + 1, max(index, head))
    return [one for one in between if not is_below(heads, one, head)]


def is_projective(heads):
    return not any(crossed_words(heads, index) for index in range(1, len(heads) + 1))


def projective_trees(count):
    for heads in itertools.product(range(count + 1), repeat=count):
        if is_tree(heads) and is_projective(heads):
            yield heads
