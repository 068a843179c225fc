"""Dependency trees of the Wall Street Journal: NLTK's `dependency_treebank`.

The 3,914 sentences of NLTK's `treebank` with tags and heads, punctuation included, by the head
rules of Yamada and Matsumoto. All are projective. Language models read them `normalized`, with a
vocabulary of `text.vocabulary.frequent`, which replaces words that occur only once by `<unk>`.
"""

import io

from keras_onlstm.datasets import conll
from keras_onlstm.datasets.treebank import nltk_file, nltk_reader, normalize
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.utils.validation import check_choice

__all__ = ["PARTS", "load"]

# The files of each part, by number: 3,262, 314 and 338 sentences of 78,539, 7,638 and 7,907 words.
PARTS = {"train": range(1, 151), "validation": range(151, 176), "test": range(176, 200)}


def load(part: str | None = None, normalized: bool = False) -> list[DependencyTree]:
    """Reads the treebank.

    Args:
        part: `"train"`, `"validation"` or `"test"`: the files 1 to 150, 151 to 175, 176 to 199; or
            `None` for all.
        normalized: whether to convert words to lower case, with `N` for every run of digits.

    Returns:
        List of `DependencyTree`, with tags and without relations.

    Raises:
        FileNotFoundError: if NLTK does not have the treebank; the message tells how to get it.
        ValueError: if `part` is unknown, or a file is damaged or missing.

    >>> load("test")[0].words[:3]  # doctest: +SKIP
    ('Backe', 'is', 'a')
    """
    if part is None:
        numbers = range(1, 200)
    else:
        check_choice("part", part, PARTS)
        numbers = PARTS[part]
    reader = nltk_reader("dependency_treebank")
    trees: list[DependencyTree] = []
    for number in numbers:
        path, content = nltk_file(reader, f"wsj_{number:04}.dp")
        trees += conll.read(io.BytesIO(content), name=path)
    if not normalized:
        return trees
    words = ([normalize(word) for word in tree.words] for tree in trees)
    return [DependencyTree(w, t.heads, t.tags) for w, t in zip(words, trees, strict=True)]
