"""Peaks of a character model's distances at word boundaries. Does not import Keras."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Peaks(NamedTuple):
    """Share of distances that are larger than both neighbours: before blanks, and before others."""

    before_blanks: float
    before_others: float


def peaks(
    texts: Sequence[Sequence[str]], distances: Sequence[npt.ArrayLike], blank: str = "_"
) -> Peaks:
    """How often the distances of a character model peak before blanks, and elsewhere.

    Shen et al. 2018 find a peak between the last letter of a word and the blank after it,
    https://openreview.net/forum?id=rkgOLb-0W. A text has an array (characters,) of the distances
    before its characters, of which the first and the last, which lack a neighbour, do not count.

    >>> peaks(["it_is_a"], [[0.1, 0.2, 0.9, 0.3, 0.4, 0.8, 0.2]])
    Peaks(before_blanks=1.0, before_others=0.0)
    """
    is_peak: dict[bool, list[bool]] = {True: [], False: []}  # before blanks, before others
    for number, (text, values) in enumerate(zip(texts, distances, strict=True), 1):
        row = np.asarray(values)
        if row.shape != (len(text),):
            raise ValueError(
                f"text {number} has {len(text)} characters, but its distances have the shape "
                f"{row.shape}. Give one distance per character."
            )
        above = (row[1:-1] > row[:-2]) & (row[1:-1] > row[2:])
        for character, is_above in zip(text[1:-1], above, strict=True):
            is_peak[character == blank].append(bool(is_above))
    if not all(is_peak.values()):
        raise ValueError(
            f"texts must contain {blank!r} and other characters, apart from the first and the last "
            "character of each text."
        )
    return Peaks(float(np.mean(is_peak[True])), float(np.mean(is_peak[False])))
