"""Dependency trees of the Wall Street Journal: NLTK's `dependency_treebank`.

`nltk.download("dependency_treebank")` fetches it: the 3,914 sentences of NLTK's `treebank`, with
tags and heads, punctuation included, by the head rules of Yamada and Matsumoto. All are projective.

Language models read it `normalized`, with `<unk>` for words that occur once in the training part:
`text.vocabulary.frequent` makes this vocabulary.
"""

import io
from itertools import chain

from keras_onlstm.datasets import conll
from keras_onlstm.datasets.nltk_corpora import file_content, found
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree

__all__ = ["PARTS", "load"]

# The files of each part, by number: 3,262, 314 and 338 sentences of 78,539, 7,638 and 7,907 words.
PARTS = {"train": range(1, 151), "validation": range(151, 176), "test": range(176, 200)}


def load(part: str | None = None, normalized: bool = False) -> list[DependencyTree]:
    """Reads the treebank.

    Args:
        part: `"train"`, `"validation"` or `"test"`: the files 1 to 150, 151 to 175, 176 to 199; or
            `None` for all.
        normalized: whether to convert words as for language models of the Penn Treebank: lower
            case, with `N` for every run of digits.

    Returns:
        List of `DependencyTree`, with tags and without relations.

    Raises:
        FileNotFoundError: if NLTK does not find it; the message tells how to get it.
        ValueError: if `part` is unknown, or a file is damaged or missing.

    Example, which needs the treebank:

    >>> from keras_onlstm.datasets import dependency_treebank
    >>> dependency_treebank.load("test")[0].words[:3]  # doctest: +SKIP
    ('Backe', 'is', 'a')
    """
    if part is not None and part not in PARTS:
        raise ValueError(f"part is {', '.join(map(repr, PARTS))} or None, not {part!r}.")
    numbers = chain.from_iterable(PARTS.values()) if part is None else PARTS[part]
    reader = _reader()
    trees = [tree for number in numbers for tree in _trees(reader, f"wsj_{number:04}.dp")]
    if not normalized:
        return trees
    return [
        DependencyTree(list(map(normalize, tree.words)), tree.heads, tree.tags, tree.relations)
        for tree in trees
    ]


def _reader():
    from nltk.corpus import dependency_treebank as reader

    remedy = "python -m nltk.downloader dependency_treebank fetches it"
    with found("dependency_treebank", remedy):
        reader.fileids()
    return reader


def _trees(reader, name):
    path, content = file_content(reader, name)
    return conll.read(io.BytesIO(content), name=path)
