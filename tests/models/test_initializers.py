"""Initial weights: the scale of the gates, and the frequencies of words."""

import numpy as np
import pytest
from keras import ops

from helpers.checks import NO_DROPOUT, as_array, assert_close
from keras_onlstm.models import LanguageModel


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
@pytest.mark.parametrize(("embedding_dim", "units", "chunk_size"), [(30, 60, 5), (200, 400, 10)])
def test_scaled_preactivations_in_every_layer(recurrent, embedding_dim, units, chunk_size):
    """Pre-activations of inputs have a standard deviation of 0.25 in the first layer, and about
    half of that of the layer below in the others; those of master gates have a fifth of it."""
    sizes = embedding_dim, units, 3, chunk_size
    model = LanguageModel(500, *sizes, recurrent=recurrent, seed=3, **NO_DROPOUT)
    ids = np.random.default_rng(0).integers(0, 500, (16, 30))
    model.build()
    x = ops.take(ops.convert_to_tensor(model.embeddings), ids, axis=0)
    bounds = [(0.22, 0.28), (0.10, 0.18), (0.06, 0.12)]
    for layer, (low, high) in zip(model.recurrent_layers, bounds, strict=True):
        z = as_array(x)[:, 10:] @ as_array(layer.cell.kernel)
        master = 2 * units // chunk_size if recurrent == "onlstm" else 0
        if layer is model.recurrent_layers[-1]:
            master = master * embedding_dim // units  # that layer is as large as the embedding
        assert low < z[..., master:].std() < high
        if master:
            assert 0.2 * low < z[..., :master].std() < 0.2 * high
        x = layer(x)[0]


def test_published_initialization():
    model = LanguageModel(50, 8, 16, 3, 4, initialization="published", seed=1)
    model.build()
    for fan_in, layer in zip((8, 16, 16), model.recurrent_layers, strict=True):
        largest = np.abs(as_array(layer.cell.kernel)).max()
        assert 0.95 * fan_in**-0.5 < largest <= fan_in**-0.5
    assert 0.095 < np.abs(as_array(model.embeddings)).max() <= 0.1


@pytest.mark.parametrize("tie_weights", [True, False])
def test_output_bias_predicts_frequencies(tie_weights):
    counts = np.array([7, 0, 3, 10, 1])
    model = LanguageModel(5, 4, 8, 1, 4, tie_weights=tie_weights, seed=1)
    model.initialize_output_bias(counts)
    predicted = as_array(ops.softmax(model.logits(ops.zeros((1, 4 if tie_weights else 8)))))
    assert_close(predicted[0], (counts + 1) / np.sum(counts + 1), 1e-6, "predictions")


def test_invalid_arguments_raise():
    model = LanguageModel(5, 4, 8, 1, 4)
    with pytest.raises(ValueError, match="counts must have 5 numbers, got 4"):
        model.initialize_output_bias([1, 2, 3, 4])
    for counts in ([-1, 0, 0, 0, 0], [np.nan] * 5, [[1] * 5], 3):
        with pytest.raises(ValueError, match="counts must be a list of numbers"):
            model.initialize_output_bias(counts)
    with pytest.raises(ValueError, match=r"initialization .* 'scaled' or 'published'"):
        LanguageModel(5, 4, 8, 1, 4, initialization="random")
