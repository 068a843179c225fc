"""Until keras_onlstm.dependencies.attachment is there."""

from typing import NamedTuple

PUNCTUATION = frozenset(("``", "''", ",", ".", ":"))


class Right(NamedTuple):
    words: int
    heads: int
    relations: int | None


def count_right(tree, gold):
    tags = gold.tags or [""] * len(gold)
    counted = [place for place, tag in enumerate(tags) if tag not in PUNCTUATION]
    right = [place for place in counted if tree.heads[place] == gold.heads[place]]
    if tree.relations is None or gold.relations is None:
        return Right(len(counted), len(right), None)
    labelled = sum(tree.relations[place] == gold.relations[place] for place in right)
    return Right(len(counted), len(right), labelled)
