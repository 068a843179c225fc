"""Former names of arguments and methods work, with a DeprecationWarning."""

import numpy as np
import pytest

from keras_onlstm import Parser
from keras_onlstm.loading import load_model
from keras_onlstm.models import PRPN, Ensemble, LanguageModel
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit

WORDS = ["<eos>", "<unk>", "the", "cat"]


def language_model(**kwargs):
    return LanguageModel(4, 8, 16, 2, 4, vocabulary=WORDS, seed=0, **kwargs)


@pytest.mark.parametrize("make", [language_model, lambda **kwargs: PRPN(4, 8, 6, **kwargs)])
def test_start_is_initialization(make, tmp_path):
    with pytest.warns(DeprecationWarning, match=r"start= is deprecated\. Use initialization="):
        model = make(start="published")
    config = model.get_config()
    assert config["initialization"] == "published" and "start" not in config
    stored = {name: value for name, value in config.items() if name != "initialization"}
    again = type(model).from_config({**stored, "start": "published"})  # as earlier files have it
    assert again.get_config()["initialization"] == "published"


def test_start_at_frequencies_is_initialize_output_bias():
    former, model = language_model(), language_model()
    with pytest.warns(DeprecationWarning, match="Use initialize_output_bias"):
        former.start_at_frequencies([1, 2, 3, 4])
    model.initialize_output_bias([1, 2, 3, 4])
    assert np.array_equal(former.output_bias, model.output_bias)


def test_members_is_layers_per_model():
    model = Ensemble([language_model()])
    with pytest.warns(DeprecationWarning, match="Use layers_per_model"):
        assert model.members == model.layers_per_model == (2,)


def test_about_is_metadata(tmp_path):
    path, model = tmp_path / "model.npz", language_model()
    model.build()
    with pytest.warns(DeprecationWarning, match=r"about= is deprecated\. Use metadata="):
        save_eight_bit(model, path, about={"seed": 0})
    model, metadata = load_eight_bit(path)
    assert metadata == {"seed": 0}
    with pytest.warns(DeprecationWarning, match="Use metadata="):
        parser = Parser(model, about=metadata)
    with pytest.warns(DeprecationWarning, match="Use metadata"):
        assert parser.about == parser.metadata == {"seed": 0}
    with pytest.raises(TypeError, match="abuot"):
        Parser(model, abuot=metadata)
    with pytest.raises(TypeError, match="abuot"):
        save_eight_bit(model, path, abuot=metadata)


def test_parser_methods():
    parser = Parser(load_model(keras=False)[0])
    with pytest.warns(DeprecationWarning, match="Use parse_detailed"):
        (parsed,) = parser.read(["prices fell"])
    assert parsed.tree == parser.parse("prices fell")
    with pytest.warns(DeprecationWarning, match="Use parse_batch"):
        assert list(parser.read_rows(["a b"])) == list(parser.parse_batch(["a b"]))
    with pytest.warns(DeprecationWarning, match="Use distances_many"):
        (distances,) = parser.measure(["prices fell"])
    assert np.array_equal(distances, parser.distances("prices fell"))
