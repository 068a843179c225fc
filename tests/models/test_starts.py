"""Where weights start: the scale of the gates, the frequencies of words, and what is learned so."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import NO_DROPOUT, as_array, assert_close
from keras_onlstm import text
from keras_onlstm.models import LanguageModel
from keras_onlstm.training import TruncatedModel, Windows


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
@pytest.mark.parametrize(("embedding_dim", "units", "chunk_size"), [(30, 60, 5), (200, 400, 10)])
def test_gates_move_in_every_layer(recurrent, embedding_dim, units, chunk_size):
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


def test_the_published_start():
    model = LanguageModel(50, 8, 16, 3, 4, start="published", seed=1)
    model.build()
    for fan_in, layer in zip((8, 16, 16), model.recurrent_layers, strict=True):
        largest = np.abs(as_array(layer.cell.kernel)).max()
        assert 0.95 * fan_in**-0.5 < largest <= fan_in**-0.5
    assert 0.095 < np.abs(as_array(model.embeddings)).max() <= 0.1


@pytest.mark.parametrize("tie_weights", [True, False])
def test_a_softmax_that_knows_frequencies(tie_weights):
    """It predicts them where nothing else speaks."""
    counts = np.array([7, 0, 3, 10, 1])
    model = LanguageModel(5, 4, 8, 1, 4, tie_weights=tie_weights, seed=1)
    model.start_at_frequencies(counts)
    predicted = as_array(ops.softmax(model.logits(ops.zeros((1, 4 if tie_weights else 8)))))
    assert_close(predicted[0], (counts + 1) / np.sum(counts + 1), 1e-6, "predictions")


def test_what_is_refused():
    model = LanguageModel(5, 4, 8, 1, 4)
    with pytest.raises(ValueError, match="4 counts for a vocabulary of 5"):
        model.start_at_frequencies([1, 2, 3, 4])
    for counts in ([-1, 0, 0, 0, 0], [np.nan] * 5, [[1] * 5], 3):
        with pytest.raises(ValueError, match="counts are numbers from 0 on"):
            model.start_at_frequencies(counts)
    with pytest.raises(ValueError, match="start is 'scaled' or 'published', not 'random'"):
        LanguageModel(5, 4, 8, 1, 4, start="random")


@pytest.fixture(scope="module")
def corpus(shared_data):
    return text.corpus.load(shared_data / "ptb", max_words=1000)


def make_model(corpus, start):
    size = len(corpus.vocabulary)
    model = LanguageModel(size, 50, 50, 3, 10, start=start, seed=0, **NO_DROPOUT)
    if start == "published":
        model.build()
    else:
        model.start_at_frequencies(np.bincount(corpus.train, minlength=size))
    return model


@pytest.mark.backend("tensorflow")
def test_it_learns_more_than_frequencies_from_the_start(corpus):
    """And with the published start it does not within 200 steps."""
    shares = np.bincount(corpus.train) / len(corpus.train)
    windows = Windows(corpus.train, 30, 10, False)
    scaled, published = (make_model(corpus, start) for start in ("scaled", "published"))
    reader = TruncatedModel(scaled, 30)
    reader.compile(keras.optimizers.Adam(2.5e-3, global_clipnorm=0.25))
    reader.optimizer.build(reader.trainable_variables)
    at_the_start = [as_array(variable) for variable in reader.optimizer.variables]

    def below():
        """How far below the loss of word frequencies that of steps 150 to 200 is, in nats."""
        found = []
        for step in range(200):
            loss = reader.train_on_batch(*windows[step], return_dict=True)["loss"]
            found.append(-np.mean(np.log(shares[windows[step][1]])) - float(loss))
        return np.mean(found[150:])

    assert below() > 0.25
    # The same training of the other weights: compiling it anew would take as long.
    scaled.set_weights(published.get_weights())
    for variable, value in zip(reader.optimizer.variables, at_the_start, strict=True):
        variable.assign(value)
    reader.reset_states()
    assert below() < 0.0
