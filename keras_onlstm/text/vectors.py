"""Reads word vectors from text files, such as those of GloVe. Does not import Keras."""

import math
import reprlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from keras_onlstm.utils.types import StrPath

__all__ = ["read_vectors"]

_ENOUGH = 1000  # lines to read before all vectors are considered too long


def read_vectors(path: StrPath, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """Reads the vectors of some words: lines of a word and its numbers, separated by blanks.

    The last `size` cells of a line are its numbers, so a word may contain blanks. Blank lines,
    words that are not UTF-8 text, and word2vec's first line, the number and the size of the
    vectors, are skipped.

    Source of such files: Pennington, Socher and Manning 2014, https://nlp.stanford.edu/projects/glove.

    Args:
        path: path of the file.
        words: set of words to read.
        size: integer, length of a vector.

    Returns:
        Dictionary from the words found to arrays (size,) float32; the first line of a word
        counts.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if a line is too short, or all lines are too long for vectors of that size; if
            the vector of one of `words` is not finite numbers; or if none of them is found.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.text.vectors import read_vectors
    >>> path = pathlib.Path(tempfile.mkdtemp(), "vectors.txt")
    >>> _ = path.write_text("the 0.5 1\\ncat 2 0.25\\n")
    >>> read_vectors(path, {"cat", "dog"}, 2)
    {'cat': array([2.  , 0.25], dtype=float32)}
    """
    found: dict[str, np.ndarray] = {}
    fewest, where = math.inf, 0  # the smallest count of numbers in a line, and the first such line
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file of word vectors.")
    # Bytes that are not UTF-8 become lone surrogates, which no word has.
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip(" \r\n").split(" ")
            if cells == [""] or (number == 1 and size > 1 and _is_header(cells)):
                continue
            if len(cells) - 1 < fewest:
                fewest, where = len(cells) - 1, number
            if fewest < size or (fewest > size and number == _ENOUGH and not found):
                break
            word = " ".join(cells[:-size])
            if word in words and word not in found:
                found[word] = _numbers(path, number, cells[-size:])
    if where and (fewest < size or (fewest > size and not found)):
        raise ValueError(
            f"{path}, line {where}: has {fewest} numbers, and a word vector of the model {size}. "
            "Give a file of that size, or --set embedding_dim."
        )
    if not found:
        raise ValueError(f"{path}: has none of the {len(words):,} words of the vocabulary.")
    return found


def _is_header(cells):
    return len(cells) == 2 and cells[0].isdecimal() and cells[1].isdecimal()


def _numbers(path, number, cells):
    for cell in cells:
        try:
            finite = abs(float(cell)) < float(np.finfo("float32").max)
        except ValueError:
            finite = False
        if not finite:
            raise ValueError(f"{path}, line {number}: {reprlib.repr(cell)} is no finite number.")
    return np.array(cells, "float32")
