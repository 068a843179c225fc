"""Peaks of a character model's distances at word boundaries. Does not import Keras."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Peaks", "peaks"]


class Peaks(NamedTuple):
    """Share of distances that are larger than both of their neighbours.

    Attributes:
        blanks: share among the distances before blanks.
        letters: share among the distances before other characters.
    """

    blanks: float
    letters: float


def peaks(
    texts: Sequence[Sequence[str]], distances: Sequence[npt.ArrayLike], blank: str = "_"
) -> Peaks:
    """How often the distances of a character model peak before blanks, and elsewhere.

    Shen et al. 2018 find a peak between the last letter of a word and the blank after it,
    https://openreview.net/forum?id=rkgOLb-0W.

    Args:
        texts: lists of characters.
        distances: for each text an array (characters,), the distance before each character.
        blank: the character between words.

    Returns:
        `Peaks`, without the first and the last character of a text, which lack a neighbour.

    Raises:
        ValueError: if lengths differ, or no inner character is a blank, or all are.

    Example:

    >>> from keras_onlstm.evaluation.boundaries import peaks
    >>> peaks(["it_is_a"], [[0.1, 0.2, 0.9, 0.3, 0.4, 0.8, 0.2]])
    Peaks(blanks=1.0, letters=0.0)
    """
    highest: dict[bool, list[bool]] = {True: [], False: []}
    for number, (text, numbers) in enumerate(zip(texts, distances, strict=True), 1):
        row = np.asarray(numbers)
        if row.shape != (len(text),):
            raise ValueError(
                f"text {number}: {len(text)} characters, and distances of the shape {row.shape}."
            )
        above = (row[1:-1] > row[:-2]) & (row[1:-1] > row[2:])
        for character, is_above in zip(text[1:-1], above, strict=True):
            highest[character == blank].append(bool(is_above))
    if not highest[True] or not highest[False]:
        raise ValueError("there is no blank within the texts, or nothing else.")
    return Peaks(*(float(np.mean(highest[of_blanks])) for of_blanks in (True, False)))
