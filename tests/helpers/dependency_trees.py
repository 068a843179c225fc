"""All dependency trees of some words, by definition."""

import itertools


def named(count):
    return [f"w{place}" for place in range(1, count + 1)]


def is_tree(heads):
    """Whether one word is under ROOT, and every word below it: by walking up."""

    def arrives(place):
        for _ in heads:
            place = heads[place - 1] if place else 0
        return not place

    return heads.count(0) == 1 and all(arrives(place) for place in range(1, len(heads) + 1))


def is_below(heads, place, head):
    """Whether a word is a head, or depends on it in the end."""
    while place and place != head:
        place = heads[place - 1]
    return place == head


def strangers(heads, place):
    """The words between a word and its head that do not depend on that head."""
    head = heads[place - 1]
    between = range(min(place, head) + 1, max(place, head))
    return [one for one in between if not is_below(heads, one, head)]


def is_projective(heads):
    return not any(strangers(heads, place) for place in range(1, len(heads) + 1))


def projective_trees(count):
    for heads in itertools.product(range(count + 1), repeat=count):
        if is_tree(heads) and is_projective(heads):
            yield heads
