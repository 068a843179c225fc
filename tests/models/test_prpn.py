"""PRPN against the authors' numbers, and against the oracle on random sizes, in float64."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import prpn_oracle as oracle
from helpers.checks import EXACT, as_array, assert_close, assert_differ, dtype_of, gradients, tensor
from keras_onlstm import Parser, convert
from keras_onlstm.convert.prpn import _entries
from keras_onlstm.datasets.syntactic_evaluation import MinimalPair
from keras_onlstm.evaluation.minimal_pairs import score_pairs
from keras_onlstm.models import PRPN
from keras_onlstm.models.ensemble import check_eight_bit
from keras_onlstm.parsing import build_tree
from keras_onlstm.prpn.parsing_network import BatchNormalization
from keras_onlstm.prpn.step import WALL, banded, structural_gates
from keras_onlstm.training import TruncatedModel, Windows, evaluate_windows

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
def test_published_outputs_are_reproduced(reference, float64, way):
    ids, split = reference["tokens"], int(reference["split"])
    splits = {"whole": (), "as published": (split,), "word by word": range(1, ids.shape[1])}[way]
    logits, distances = read(converted(reference), ids, splits)
    assert_close(log_softmax(logits), reference["log_probabilities"], TOLERANCE, "log P")
    assert_close(distances, reference["distances"], TOLERANCE, "distances")


def test_published_gradients_are_reproduced(reference, float64):
    model = converted(reference)
    ids, split = reference["tokens"], int(reference["split"])
    entries = [entry for entry in _entries(model) if f"g.{entry.name}" in reference]
    targets = reference["targets"][..., None].astype("int32")

    def loss():
        logits, _ = read(model, ids, (split,))
        chosen = ops.take_along_axis(logits, ops.convert_to_tensor(targets), axis=-1)
        top = ops.max(logits, -1, keepdims=True)
        total = ops.log(ops.sum(ops.exp(logits - top), -1, keepdims=True)) + top
        return ops.sum(total - chosen) / targets.size

    assert_close(loss(), reference["loss"], TOLERANCE, "loss")
    found = gradients(loss, [], [entry.variable for entry in entries])
    assert {entry.name for entry in entries} == {n[2:] for n in reference if n[:2] == "g."}
    for entry, gradient in zip(entries, found, strict=True):
        expected = entry.to_keras(reference[f"g.{entry.name}"])
        assert_close(gradient, expected, TOLERANCE, entry.name)


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
    for entry in _entries(model):
        array = rng.normal(0.0, 0.6, entry.variable.shape)
        if entry.name.endswith(("running_var", "gamma")):
            array = 1.0 + np.abs(array)
        entry.variable.assign(array)
        weights[entry.name] = entry.from_keras(array)
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
def test_random_sizes_match_the_oracle(case, float64):
    settings, rng = CASES[case], np.random.default_rng(case)
    batch, size, units, words = (int(n) for n in rng.integers([1, 2, 1, 5], [4, 6, 5, 9]))
    model, weights = drawn(settings, size, 2 * units, words, bool(case % 2), case)
    ids = rng.integers(0, words, (batch, 8))
    expected = oracle.run(ids, weights, settings)
    logits, distances = read(model, ids, (4,) if case % 2 else range(1, 8))  # one shape each
    assert_close(log_softmax(logits), expected.log_probabilities, EXACT, "log P")
    assert_close(distances, expected.distances, EXACT, "distances")


@pytest.mark.parametrize("tied", [True, False])
def test_weights_survive_conversion_both_ways(tied, float64):
    settings = oracle.Settings(3, 2, 0.1, True, 2, 1)
    model, weights = drawn(settings, 4, 6, 7, tied, 0)
    found = convert.prpn_to_arrays(model)
    assert found.keys() == weights.keys()
    for name, array in weights.items():
        assert_close(found[name], array, 0.0, name)
    again = convert.prpn_from_arrays(weights, slots=3, dtype="float64")
    for entry, other in zip(_entries(model), _entries(again), strict=True):
        assert_close(other.variable, entry.variable, 0.0, entry.name)


@pytest.mark.parametrize("lookback", [0, 3])
def test_padding_at_the_end(lookback, float64):
    """It neither moves the states nor changes what is said of the words before it."""
    settings = oracle.Settings(4, lookback, 0.1, True, 2, 1)
    model, weights = drawn(settings, 4, 6, 7, True, 0)
    ids, lengths = np.random.default_rng(3).integers(0, 7, (3, 6)), (6, 2, 0)
    mask = np.arange(6) < np.array(lengths)[:, None]
    call = compiled(lambda ids, mask: model(ids, mask=mask, details=True))
    results = call(ops.convert_to_tensor(ids, "int32"), ops.convert_to_tensor(mask))
    for row, length in enumerate(lengths):
        state = oracle.initial_state(weights, settings, 1)
        if length:
            expected = oracle.run(ids[row : row + 1, :length], weights, settings)
            found = log_softmax(results.logits)[row : row + 1, :length]
            assert_close(found, expected.log_probabilities, EXACT, "log P")
            state = expected.state
        words, history, reading = results.states
        assert_close(words[row : row + 1], state.words, EXACT, "words")
        assert_close(history[row : row + 1], np.minimum(state.distances, WALL), EXACT, "distances")
        for found, memory in zip(reading, state.memory, strict=True):
            for tensor_of, array in zip(found, memory, strict=True):
                assert_close(tensor_of[row : row + 1], array, EXACT, "memory")


def test_batch_statistics_ignore_padding(float64):
    x, mask = (
        np.random.default_rng(0).normal(3.0, 2.0, (2, 3, 4)),
        np.array([[1, 1, 0], [1, 0, 0]]),
    )
    layer, other = (BatchNormalization(dtype="float64") for _ in range(2))
    found = layer(tensor(x, "float64"), training=True, word_mask=tensor(mask, "bool"))
    expected = other(tensor(x[mask > 0], "float64"), training=True)
    assert_close(as_array(found)[mask > 0], expected, EXACT, "normalized")
    assert_close(layer.moving_mean, other.moving_mean, EXACT, "mean")
    assert_close(layer.moving_variance, other.moving_variance, EXACT, "variance")


def test_evaluation_in_windows_matches_single_pass():
    """Evaluation in windows equals a single pass, also the second time."""
    model = PRPN(9, 6, 8, slots=3, lookback=2, seed=1)
    model.build()
    for variable in model.trainable_variables:
        variable.assign(3.0 * as_array(variable))  # so that states matter
    text = np.random.default_rng(2).integers(0, 9, 64)
    windows = Windows(text, 2, window=12, variable_bptt=False)
    assert windows[len(windows) - 1][2].min() == 0
    pieces = text.reshape(2, -1)
    logits, _ = read(model, pieces[:, :-1])
    chosen = np.take_along_axis(log_softmax(logits), pieces[:, 1:, None], -1)
    reader = TruncatedModel(model, 2)
    reader.compile()
    for time in ("first", "second"):
        assert_close(evaluate_windows(reader, windows), -chosen.mean(), 1e-5, f"{time} time")


def test_seed_fixes_initialization_and_weights_differ():
    shape = {"vocabulary_size": 8, "embedding_dim": 8, "units": 8, "slots": 2, "lookback": 0}
    models = [PRPN(**shape, residual_blocks=2, seed=seed) for seed in (3, 3, 4)]
    for model in models:
        model.build()
        assert all(layer.fused for layer in model.reading_network.layers)
    once, again, other = ([as_array(v) for v in model.trainable_variables] for model in models)
    drawn = [place for place, x in enumerate(once) if np.unique(x).size > 2]
    assert len(drawn) > 20
    for place in drawn:
        np.testing.assert_array_equal(once[place], again[place])
        assert not np.array_equal(once[place], other[place])
    # Whatever bound they are drawn within.
    ratios = [once[place].flat[0] / once[place].flat[1] for place in drawn]
    assert len(set(np.round(ratios, 4))) == len(drawn)
    ids = np.arange(8)[None]
    once, again, other = (as_array(model(ids, training=True)) for model in models)
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16"])
def test_bfloat16_keeps_distances_and_gates_wide(policy):
    """A distance that is rounded to 8 bits moves a gate of resolution 0.1 by 4 percent."""
    options = {"embedding_dim": 12, "units": 10, "slots": 4, "lookback": 2, "seed": 1}
    model, single = PRPN(9, dtype=policy, **options), PRPN(9, **options)
    for one in (model, single):
        one.build()
    for variable, other in zip(model.weights, single.weights, strict=True):
        variable.assign(3.0 * as_array(other) if other.trainable else as_array(other))
        other.assign(as_array(variable))
    ids = np.random.default_rng(0).integers(0, 9, (2, 12))
    first = model(ids[:, :5], details=True)
    later = model(ids[:, 5:], states=first.states, details=True)
    history = first.states[1]
    assert dtype_of(later.logits) == "bfloat16"
    assert dtype_of(later.distances["syntactic"]) == dtype_of(history) == "float32"
    expected = single(ids, details=True).distances["syntactic"]
    parts = [as_array(part.distances["syntactic"]) for part in (first, later)]
    tolerance = {"mixed_bfloat16": 0.02, "bfloat16": 0.15}[policy]
    assert_close(np.concatenate(parts, -1), as_array(expected), tolerance, "distances")
    assert_close(as_array(history)[:, ::-1], parts[0][:, 0, -4:], 0.0, "kept")
    parsed = model.parsing(model._embed(ids[:, 5:]), *first.states[:2])
    gates = structural_gates(parsed.distances, banded(history, parsed.distances), 4, 0.1, True)
    assert_close(parsed.gates, gates, 1e-6, "gates")
    reader = TruncatedModel(model, 2)
    reader.compile()
    reader.test_on_batch(
        {"ids": ids[:, :5], "mask": np.ones((2, 5), bool), "rows": np.arange(2)},
        ids[:, 1:6],
        np.ones((2, 5)),
    )
    kept = reader.states[1]
    assert_close(kept, history, 0.01, "kept from window to window")
    assert_differ(ops.cast(ops.cast(kept, "bfloat16"), "float32"), kept, 1e-5, "rounded")


@pytest.mark.parametrize("settings", [case for case in CASES if case.slots > 1])
def test_attention_weights(settings, float64):
    """Slot k of token t is the token k + 1 before it; nothing stands before the first."""
    words = ["<eos>", "<unk>", *"abcdefghi"]
    model, weights = drawn(settings, 5, 6, len(words), True, 3)
    model.vocabulary = words
    sentence = list("abcaddgxi")
    ids = np.array([[0, *(words.index(w) if w in words else 1 for w in sentence)]])
    expected = oracle.run(ids, weights, settings)
    found = model.attention(sentence)
    assert found.tokens == ["<eos>", *sentence]
    assert_close(found.distances, expected.distances[0], TOLERANCE, "distances")
    wanted = {"gates": expected.gates, "next gates": expected.next_gates}
    for layer in range(expected.reading.shape[2]):
        wanted[f"reading {layer + 1}"] = expected.reading[:, :, layer]
    if settings.predict_attention:
        wanted["predict"] = expected.predict
    assert found.maps.keys() == wanted.keys()
    length = ids.shape[1]
    for name, slots in wanted.items():
        square = np.zeros((length, length))
        for token in range(length):
            for slot in range(min(settings.slots, token)):
                square[token, token - 1 - slot] = slots[0, token, slot]
        assert_close(found.maps[name], square, TOLERANCE, name)


def test_scaled_initialization_has_larger_word_vectors():
    published, scaled = (
        PRPN(50, 8, 6, initialization=name, seed=0) for name in ("published", "scaled")
    )
    published.build()
    scaled.build()
    assert 0.009 < np.abs(as_array(published.embeddings)).max() <= 0.01
    assert np.abs(as_array(scaled.embeddings)).max() > 0.05
    with pytest.raises(ValueError, match="initialization must be 'scaled' or 'published'"):
        PRPN(50, initialization="zero")


@pytest.mark.backend("tensorflow")
def test_sentences_and_files(tmp_path):
    """Scores, trees by name, minimal pairs, and a file that Keras saves."""
    words = ["<eos>", "<unk>", "the", "cat", "sees", "cats", "."]
    model = PRPN(7, 6, 8, slots=3, lookback=2, vocabulary=words, seed=4, predict_attention=False)
    model.build()
    model.initialize_output_bias([5, 1, 3, 2, 1, 1, 5])
    for variable in model.trainable_variables:
        variable.assign(3.0 * as_array(variable))
    model.save(tmp_path / "best.keras")
    parser = Parser.load(tmp_path)
    again = parser.model
    assert again.get_config() == model.get_config() and again.title == "PRPN"
    logits, distances = read(model, np.array([[0, 2, 3, 4, 0]]))
    (scores,) = again.score(["the cat sees"])
    expected = log_softmax(logits)[0, range(4), [2, 3, 4, 0]]
    assert_close(scores, expected, 1e-5, "log P")
    assert (parser.gate, parser.layer, parser.method) == ("syntactic", 1, "greedy")
    found = parser.distances("The cat sees", "syntactic")
    assert_close(found, as_array(distances)[:, 1:4], 1e-6, "distances")
    tree = build_tree(found[0], ["The", "cat", "sees"])
    assert parser.parse("The cat sees") == tree
    pair = MinimalPair("simple", "sing", ("the cat sees", "the cats sees"))
    assert len(score_pairs(again, [pair])["the cat sees"]) == 4
    with pytest.raises(ValueError, match="gate must be 'syntactic', got 'forget'"):
        parser.distances("the cat", "forget")
    with pytest.raises(ValueError, match=r"x\.keras: must be a LanguageModel, got PRPN"):
        check_eight_bit(model, "x.keras")


def test_batch_normalization_updates_moving_averages(float64):
    """PyTorch's rule: by the biased variance; the unbiased one is kept, by a tenth."""
    x = np.random.default_rng(0).normal(3.0, 2.0, (2, 3, 4))
    layer = BatchNormalization(dtype="float64")
    found = layer(tensor(x, "float64"), training=True)
    rows = x.reshape(-1, 4)
    assert_close(found, (x - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5), EXACT, "normalized")
    assert_close(layer.moving_mean, 0.1 * rows.mean(0), EXACT, "mean")
    assert_close(layer.moving_variance, 0.9 + 0.1 * rows.var(0, ddof=1), EXACT, "variance")
