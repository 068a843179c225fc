"""Peaks of distances at word boundaries, compared with counts by hand."""

import numpy as np
import pytest

from keras_onlstm.evaluation.boundaries import peaks


def test_peaks_by_hand():
    texts = ["ab_cd_e", list("_x_y")]
    distances = [[9, 1, 3, 2, 4, 4, 1], np.array([0.5, 0.9, 0.1, 0.7])]
    # Within the first: b no, _ yes, c no, d and _ are equal: no; of the second: x yes, _ no.
    assert peaks(texts, distances) == (1 / 3, 1 / 4)
    assert peaks(["a b a"], [[1, 2, 1, 2, 1]], blank=" ") == (1.0, 0.0)


def test_uncountable_texts_are_rejected():
    with pytest.raises(
        ValueError, match=r"text 2 has 3 characters, but its distances have the shape \(2,\)"
    ):
        peaks(["a_b", "a_b"], [[1, 2, 3], [1, 2]])
    for text in ("abc", "___", ""):
        with pytest.raises(ValueError, match="texts must contain"):
            peaks([text], [np.zeros(len(text))])
