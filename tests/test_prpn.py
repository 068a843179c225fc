"""PRPN against the authors' numbers, and against the oracle on random sizes, in float64."""

import keras
import numpy as np
import pytest
from keras import ops

import prpn_oracle as oracle
from checks import EXACT, as_array, assert_close, gradients, tensor
from keras_onlstm import convert
from keras_onlstm.convert.prpn import _places
from keras_onlstm.models import PRPN

TOLERANCE = 1e-9
FILES = ("prpn_hard", "prpn_soft_residual")


@pytest.fixture(scope="module", params=FILES)
def reference(request, shared_reference):
    with np.load(shared_reference / f"{request.param}.npz") as file:
        return dict(file)


def weights_of(reference):
    return {name[2:]: array for name, array in reference.items() if name[:2] in ("w.", "b.")}


def converted(reference, **kwargs):
    return convert.prpn_from_arrays(
        weights_of(reference),
        int(reference["slots"]),
        float(reference["resolution"]),
        bool(reference["hard"]),
        dtype="float64",
        **kwargs,
    )


def compiled(function):
    """JAX takes minutes for what it does not compile."""
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)


def read(model, ids, splits=()):
    """Logits and distances of a text that is read in several windows."""
    call = compiled(lambda ids, states: model(ids, states=states, details=True))
    states, logits, distances = model.initial_states(len(ids)), [], []
    for window in np.split(ids, splits, axis=1):
        results = call(ops.convert_to_tensor(window, "int32"), states)
        states = results.states
        logits.append(results.logits)
        distances.append(results.distances["syntactic"][:, 0])
    return ops.concatenate(logits, 1), ops.concatenate(distances, 1)


def log_softmax(logits):
    logits = as_array(logits)
    top = logits.max(-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))


@pytest.mark.parametrize("way", ["whole", "as published", "word by word"])
def test_the_authors_numbers(reference, float64, way):
    ids, split = reference["tokens"], int(reference["split"])
    splits = {"whole": (), "as published": (split,), "word by word": range(1, ids.shape[1])}[way]
    logits, distances = read(converted(reference), ids, splits)
    assert_close(log_softmax(logits), reference["log_probabilities"], TOLERANCE, "log P")
    assert_close(distances, reference["distances"], TOLERANCE, "distances")


def test_the_authors_gradients(reference, float64):
    model = converted(reference)
    ids, split = reference["tokens"], int(reference["split"])
    places = [place for place in _places(model) if f"g.{place.name}" in reference]
    targets = reference["targets"][..., None].astype("int32")

    def loss():
        logits, _ = read(model, ids, (split,))
        chosen = ops.take_along_axis(logits, ops.convert_to_tensor(targets), axis=-1)
        top = ops.max(logits, -1, keepdims=True)
        total = ops.log(ops.sum(ops.exp(logits - top), -1, keepdims=True)) + top
        return ops.sum(total - chosen) / targets.size

    assert_close(loss(), reference["loss"], TOLERANCE, "loss")
    found = gradients(loss, [], [place.variable for place in places])
    assert {place.name for place in places} == {n[2:] for n in reference if n[:2] == "g."}
    for place, gradient in zip(places, found, strict=True):
        expected = place.turned(reference[f"g.{place.name}"])
        assert_close(gradient, expected, TOLERANCE, place.name)


def drawn(settings, size, units, words, tied, seed):
    """Weights under the authors' names, no two of them the same."""
    rng = np.random.default_rng(seed)
    model = PRPN(
        words,
        size,
        units,
        settings.layers,
        settings.slots,
        settings.lookback,
        settings.resolution,
        settings.hard,
        settings.residual_blocks,
        tied,
        parsing_network=settings.parsing_network,
        reading_attention=settings.reading_attention,
        predict_attention=settings.predict_attention,
        dtype="float64",
    )
    model.build()
    weights = {}
    for place in _places(model):
        array = rng.normal(0.0, 0.6, place.variable.shape)
        if place.name.endswith(("running_var", "gamma")):
            array = 1.0 + np.abs(array)
        place.variable.assign(array)
        weights[place.name] = place.turned_back(array)
    return model, weights


CASES = [
    oracle.Settings(1, 1, 0.1, True, 1, 0),
    oracle.Settings(3, 10, 0.2, True, 3, 2),
    oracle.Settings(20, 2, 0.1, False, 2, 1),
    oracle.Settings(4, 5, 0.05, False, 1, 0),
    oracle.Settings(5, 3, 0.1, True, 2, 0, parsing_network=False),
    oracle.Settings(5, 3, 0.1, True, 2, 0, reading_attention=False),
    oracle.Settings(5, 3, 0.1, True, 2, 1, predict_attention=False),
    oracle.Settings(5, 3, 0.1, True, 1, 0, False, False, False),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_random_sizes(case, float64):
    settings, rng = CASES[case], np.random.default_rng(case)
    batch, size, units, words = (int(n) for n in rng.integers([1, 2, 1, 5], [4, 6, 5, 9]))
    model, weights = drawn(settings, size, 2 * units, words, bool(case % 2), case)
    ids = rng.integers(0, words, (batch, 8))
    expected = oracle.run(ids, weights, settings)
    logits, distances = read(model, ids, (4,) if case % 2 else range(1, 8))  # one shape each
    assert_close(log_softmax(logits), expected.log_probabilities, EXACT, "log P")
    assert_close(distances, expected.distances, EXACT, "distances")


@pytest.mark.parametrize("tied", [True, False])
def test_weights_there_and_back(tied, float64):
    settings = oracle.Settings(3, 2, 0.1, True, 2, 1)
    model, weights = drawn(settings, 4, 6, 7, tied, 0)
    found = convert.prpn_to_arrays(model)
    assert found.keys() == weights.keys()
    for name, array in weights.items():
        assert_close(found[name], array, 0.0, name)
    again = convert.prpn_from_arrays(weights, slots=3, dtype="float64")
    for place, other in zip(_places(model), _places(again), strict=True):
        assert_close(other.variable, place.variable, 0.0, place.name)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda w: w.pop("decoder.bias"), "decoder.bias is missing"),
        (lambda w: w.update(other=w["decoder.bias"]), "other is not in the state dict"),
        (lambda w: w.update({"decoder.bias": np.zeros(3)}), r"decoder.bias has shape \(3,\)"),
        (lambda w: w.update({"decoder.bias": np.zeros(7, int)}), "decoder.bias is int64"),
        (lambda w: w.pop("encoder.weight"), "encoder.weight is missing"),
    ],
)
def test_weights_of_something_else(change, match, float64):
    weights = drawn(oracle.Settings(3, 2, 0.1, True, 2, 1), 4, 6, 7, True, 0)[1]
    change(weights)
    with pytest.raises(ValueError, match=match):
        convert.prpn_from_arrays(weights, slots=3)


def test_what_is_known_already_is_no_argument():
    with pytest.raises(ValueError, match="units follows from the arrays"):
        convert.prpn_from_arrays({}, slots=3, units=4)


def test_batches_are_normalized_by_themselves_and_remembered(float64):
    """PyTorch's rule: by the biased variance; the unbiased one is kept, by a tenth."""
    from keras_onlstm.prpn.normalization import BatchNormalization

    x = np.random.default_rng(0).normal(3.0, 2.0, (2, 3, 4))
    layer = BatchNormalization(dtype="float64")
    found = layer(tensor(x, "float64"), training=True)
    rows = x.reshape(-1, 4)
    assert_close(found, (x - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5), EXACT, "normalized")
    assert_close(layer.moving_mean, 0.1 * rows.mean(0), EXACT, "mean")
    assert_close(layer.moving_variance, 0.9 + 0.1 * rows.var(0, ddof=1), EXACT, "variance")
