"""Files that were written before models had a choice of starts load, and give what they gave."""

from pathlib import Path

import numpy as np
import pytest

from checks import assert_close
from keras_onlstm.stored import load_model

DATA = Path(__file__).parent / "data"
SENTENCES = ["the cat saw a dog", "a bird saw the dog"]


@pytest.mark.parametrize("kind", ["keras", "npz"])
def test_models_of_before(kind):
    model, _ = load_model(DATA / f"before_starts.{kind}")
    with np.load(DATA / "before_starts_expected.npz") as file:
        for number, sentence in enumerate(SENTENCES):
            distances, scores = model.distances([sentence])[0], model.score([sentence])[0]
            assert_close(distances, file[f"{kind}.{number}.distances"], 1e-6, "distances")
            assert_close(scores, file[f"{kind}.{number}.scores"], 1e-5, "scores")
