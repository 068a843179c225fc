"""Word vectors in text files, such as those of GloVe. No Keras."""

import reprlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from keras_onlstm.utils.reading import lines
from keras_onlstm.utils.types import StrPath

__all__ = ["read_vectors"]


def read_vectors(path: StrPath, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """Reads the vectors of some words: lines of a word and its numbers, apart by blanks.

    Source of such files: Pennington, Socher and Manning 2014, https://nlp.stanford.edu/projects/glove.

    Args:
        path: of the file.
        words: set of those to read.
        size: integer, how many numbers a vector has.

    Returns:
        Dictionary from those of the words that the file has to arrays (size,) float32; the first
        line of a word counts.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line has another number of numbers, or something else than finite ones; or
            if none of the words is there.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.text.vectors import read_vectors
    >>> path = pathlib.Path(tempfile.mkdtemp(), "vectors.txt")
    >>> _ = path.write_text("the 0.5 1\\ncat 2 0.25\\n")
    >>> read_vectors(path, {"cat", "dog"}, 2)
    {'cat': array([2.  , 0.25], dtype=float32)}
    """
    found: dict[str, np.ndarray] = {}
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file of word vectors.")
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            cells = line.rstrip(" ").split(" ")
            if len(cells) - 1 != size:
                if number == 1 and len(cells) == 2:
                    continue  # word2vec's: how many vectors, and of what size
                raise ValueError(
                    f"{path}, line {number}: has {len(cells) - 1} numbers, and a word vector of "
                    f"the model {size}. Give a file of that size, or --set embedding_dim."
                )
            if cells[0] in words and cells[0] not in found:
                found[cells[0]] = _numbers(path, number, cells[1:])
    if not found:
        raise ValueError(f"{path}: has none of the {len(words):,} words of the vocabulary.")
    return found


def _numbers(path, number, cells):
    for cell in cells:
        try:
            finite = np.isfinite(np.float32(cell))
        except ValueError:
            finite = False
        if not finite:
            raise ValueError(f"{path}, line {number}: {reprlib.repr(cell)} is no finite number.")
    return np.array(cells, "float32")
