"""TreeLSTM: reference results, fast loop against reference implementation, batches, files."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from helpers import tree_oracle as oracle
from helpers.checks import EXACT, SINGLE, as_array, assert_close, assert_differ, gradients
from helpers.corpora import corpora_in
from helpers.tree_models import (
    converted,
    small_model,
    small_trees,
    trees_of,
    vocabulary,
    weights_of,
)
from keras_onlstm import convert
from keras_onlstm.datasets import dependency_treebank
from keras_onlstm.dependencies import DependencyTree, chain
from keras_onlstm.models import BidirectionalLSTM, TreeLSTM
from keras_onlstm.text.vocabulary import frequent
from keras_onlstm.training import TreeBatches, TreeLearner
from keras_onlstm.tree_lstm.schedule import RowCapacity
from keras_onlstm.tree_lstm.step import reference

TOLERANCE = 1e-9
IMPLEMENTATIONS = ("reference", "fast")


def log_softmax(logits, targets):
    logits = logits - ops.max(logits, -1, keepdims=True)
    found = ops.take_along_axis(logits, ops.expand_dims(targets, -1), axis=-1)[:, 0]
    return found - ops.log(ops.sum(ops.exp(logits), -1))


def log_probabilities(model, trees, way, capacity=None):
    """A function of the model's variables that returns log-probabilities (words,)."""
    schedules = [model.schedule_tree(tree) for tree in trees]
    if way == "fast":
        scheduled = model.schedule_batch(schedules, capacity)
        grids = {name: ops.convert_to_tensor(x) for name, x in scheduled.grids.items()}
        return lambda: model.log_probabilities(grids, scheduled.targets)[: scheduled.words]
    root = model.vocabulary.index("<root>")

    def one_by_one():
        weights = model.recurrent_weights()
        rows = [
            reference(weights, tree, schedule.words.tolist(), root)
            for tree, schedule in zip(trees, schedules, strict=True)
        ]
        targets = np.concatenate([schedule.words for schedule in schedules])
        return log_softmax(model.logits(ops.concatenate(rows, 0)), targets)

    return one_by_one


@pytest.mark.parametrize("prefix", ["tree.", "ldtree."])
@pytest.mark.parametrize("way", IMPLEMENTATIONS)
def test_values_and_gradients_match_reference(tree_reference, prefix, way, float64):
    model, trees = converted(tree_reference, prefix), trees_of(tree_reference)
    found = log_probabilities(model, trees, way)
    assert_close(found(), tree_reference[f"{prefix}log_probability"], TOLERANCE, "log P")
    variables = model.trainable_variables
    derived = gradients(lambda: -ops.sum(found()), [], variables, compiled=way == "fast")
    for variable, gradient in zip(variables, derived, strict=True):
        variable.assign(gradient)
    arrays = convert.tree_lstm_to_arrays(model)
    for name in weights_of(tree_reference, prefix):
        if not name.endswith(".hh.bias"):  # the sum of the two is one variable
            expected = tree_reference[f"{prefix}{name}.grad"]
            assert_close(arrays[name], expected, TOLERANCE, name)


@pytest.mark.parametrize("prefix", ["tree.", "ldtree."])
def test_scores_and_states_match_reference(tree_reference, prefix, float64):
    model, trees = converted(tree_reference, prefix), trees_of(tree_reference)
    scores = model.score(trees)
    assert [len(row) for row in scores] == tree_reference["lengths"].tolist()
    assert_close(
        np.concatenate(scores), tree_reference[f"{prefix}log_probability"], TOLERANCE, "words"
    )
    expected = tree_reference[f"{prefix}tree_log_probability"]
    assert_close(model.log_probability(trees), expected, TOLERANCE, "trees")
    hidden = np.concatenate(model.states(trees))
    assert_close(hidden, tree_reference[f"{prefix}hidden"], TOLERANCE, "hidden")


def oracle_scores(model, trees):
    arrays = convert.tree_lstm_to_arrays(model)
    return [
        oracle.log_probabilities(arrays, tree.heads, model.schedule_tree(tree).words.tolist(), 1)
        for tree in trees
    ]


@pytest.mark.parametrize("way", IMPLEMENTATIONS)
@pytest.mark.parametrize("layers, left", [(1, 0), (2, 0), (1, 1), (2, 1), (3, 2)])
def test_log_probabilities_match_oracle(layers, left, way, float64):
    model = small_model(
        num_layers=layers, left_dependents=left > 0, left_layers=left or 1, dtype=float64
    )
    trees = small_trees(seed=layers)
    expected = np.concatenate(oracle_scores(model, trees))
    assert_close(log_probabilities(model, trees, way)(), expected, EXACT, "log P")


@pytest.mark.parametrize("layers, left", [(1, 0), (2, 2)])
def test_gradients_match_reference_implementation(layers, left, float64):
    model = small_model(
        num_layers=layers, left_dependents=left > 0, left_layers=left or 1, dtype=float64
    )
    trees, variables = small_trees(4), model.trainable_variables
    weights = np.random.default_rng(3).normal(size=sum(map(len, trees)))
    weights = ops.convert_to_tensor(weights)
    results = {way: log_probabilities(model, trees, way) for way in IMPLEMENTATIONS}
    found = [
        gradients(lambda of=of: ops.sum(of() * weights), [], variables, compiled=way == "fast")
        for way, of in results.items()
    ]
    for variable, one, other in zip(variables, *found, strict=True):
        assert np.abs(one).max() > 1e-4, f"{variable.path}: nothing to compare"
        assert_close(one, other, EXACT, variable.path)


@pytest.mark.parametrize(
    "capacity",
    [
        RowCapacity(1, 1, 1, 1, 1),
        RowCapacity(2, 3, 1, 5, 2),
        RowCapacity(),
        RowCapacity(9, 0, 2, 1, 0),
    ],
)
def test_capacity_does_not_change_results(capacity, float64):
    model = small_model(left_dependents=True, dtype=float64)
    trees = small_trees(12, seed=5)
    found = log_probabilities(model, trees, "fast", capacity)()
    assert_close(found, np.concatenate(oracle_scores(model, trees)), EXACT, "log P")


def test_chain_matches_keras_lstm(float64):
    """Keras's LSTM with the weights of GEN-R; its gates are in another order."""
    model = small_model(sequential=True, dtype=float64)
    expected = of_keras_lstm(model, model.generators[0], float64)(SENTENCES)
    for states, rows in zip(model.states(map(chain, SENTENCES)), expected, strict=True):
        assert_close(states, rows, keras_lstm_tolerance(), "hidden states")


def balanced(count):
    """A tree whose levels double in width."""
    heads = [0] * count

    def hang(first, end, head):
        if first < end:
            middle = (first + end) // 2
            heads[middle] = head
            hang(first, middle, middle + 1)
            hang(middle + 1, end, middle + 1)

    hang(0, count, 0)
    return DependencyTree((vocabulary(9)[2:] * count)[:count], heads)


@pytest.mark.backend("tensorflow")  # the others compile for each
def test_grids_of_several_widths():
    """The second and the third are traced for any number of rows."""
    trees = [balanced(5), chain(["w2"] * 5), balanced(80), balanced(30)]
    scored, model = (small_model(left_dependents=True, num_layers=2) for _ in range(2))
    for tree, expected in zip(trees, oracle_scores(scored, trees), strict=True):
        assert_close(scored.score([tree])[0], expected, SINGLE, f"log P of {len(tree)} words")
    schedules = list(map(model.schedule_tree, trees))
    widths = {
        model.schedule_batch([schedule], RowCapacity(2, 2, 2, 2, 2)).grids["source"].shape
        for schedule in schedules
    }
    assert len({width for _, width in widths}) == 3
    found = []
    for eager in (False, True):
        model = small_model(left_dependents=True, num_layers=2)
        learner = TreeLearner(model)
        learner.compile(keras.optimizers.SGD(0.5), run_eagerly=eager)
        for schedule in schedules:
            (batch,) = TreeBatches(model, [schedule], 1, capacity=RowCapacity(2, 2, 2, 2, 2))
            learner.train_on_batch(*batch)
        found.append([as_array(variable) for variable in model.trainable_variables])
    for one, other in zip(*found, strict=True):
        assert_close(one, other, SINGLE, "weights")


SENTENCES = [["w2", "w3", "w2", "w8", "w5"], ["w4", "w4", "w7", "w6", "w3"]]


def of_keras_lstm(model, generator, dtype):
    """`keras.layers.LSTM` with the weights of one of the LSTMs: words in, states before each."""
    layer = keras.layers.LSTM(5, return_sequences=True, dtype=dtype)
    layer.build((None, None, model.embeddings.shape[-1]))
    (weights,) = generator.variables_by_layer
    layer.set_weights(
        [
            np.concatenate([np.split(as_array(x), 4, -1)[gate] for gate in (0, 1, 3, 2)], -1)
            for x in weights
        ]
    )

    def states(sentences):
        ids = np.array([[1, *(int(word[1:]) for word in words[:-1])] for words in sentences])
        start = [ops.full((len(sentences), 5), 0.01, dtype=dtype)] * 2
        return as_array(layer(as_array(model.embeddings)[ids], initial_state=start))

    return states


def keras_lstm_tolerance():
    """On some backends Keras's LSTM computes tanh of float64 in float32."""
    return EXACT if keras.backend.backend() == "torch" else SINGLE


def bidirectional(**options):
    return BidirectionalLSTM(9, 4, 5, vocabulary=vocabulary(9), seed=1, **options)


def test_bidirectional_lstm_matches_two_keras_lstms(float64):
    """The second one reads the sentence from its end, and both begin with ROOT."""
    model = bidirectional(dtype=float64)
    model.build()
    backward, forward = (of_keras_lstm(model, lstm, float64) for lstm in model.generators)
    last = backward([words[::-1] for words in SENTENCES])[:, ::-1]
    expected = np.concatenate([forward(SENTENCES), last], -1)
    chains = list(map(chain, SENTENCES))
    for states, rows in zip(model.states(chains), expected, strict=True):
        assert_close(states, rows, keras_lstm_tolerance(), "hidden states")
    logits = expected @ as_array(model.softmax_kernel).T + as_array(model.softmax_bias)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for scores, rows, words in zip(model.score(chains), log_p, SENTENCES, strict=True):
        chosen = rows[range(5), [int(word[1:]) for word in words]]
        assert_close(scores, chosen, keras_lstm_tolerance(), "log P")


def test_the_whole_treebank(shared_data, float64):
    """All 3,914 trees, in batches of 64, against the reference implementation."""
    with corpora_in(shared_data / "nltk_data"):
        trees = dependency_treebank.load(normalized=True)
    words = frequent((tree.words for tree in trees), 300)
    options = {"left_dependents": True, "vocabulary": words, "seed": 0, "dtype": float64}
    model = TreeLSTM(len(words), 3, 6, **options)
    found = model.score(trees)
    assert len(found) == len(trees) == 3914
    every = range(0, len(trees), 1 if keras.backend.backend() == "torch" else 8)
    expected = oracle_scores(model, [trees[place] for place in every])
    for place, rows in zip(every, expected, strict=True):
        assert_close(found[place], rows, TOLERANCE, f"tree {place}")


@pytest.mark.backend("tensorflow", "torch")  # JAX takes half a minute
def test_long_trees():
    """Longer than any published sentence."""
    model = small_model(left_dependents=True)
    words = (vocabulary(9)[2:] * 300)[:2000]
    fan = DependencyTree(words, [1000] * 999 + [0] + [1000] * 1000)
    for tree in (chain(words), fan):
        (scores,) = model.score([tree])
        assert_close(scores, oracle_scores(model, [tree])[0], 1e-4, "log P")


# Table 1: V = 65,346, no bias of the softmax. The published code has two biases a layer.
TABLE_1 = [
    ("bidirectional", 300, 50_094_300),
    ({}, 300, 31_575_300),
    ({"left_dependents": True}, 400, 44_663_600),
    ({"sequential": True}, 450, 45_327_150),
]


@pytest.mark.parametrize("arguments, units, expected", TABLE_1)
def test_published_parameter_counts(arguments, units, expected):
    sizes = 65_346, units // 2, units
    if arguments == "bidirectional":
        model = BidirectionalLSTM(*sizes, output_bias=False)
    else:
        model = TreeLSTM(*sizes, output_bias=False, **arguments)
    model.build()
    lstms = len(model.generators) + (model.left is not None)
    assert model.count_params() + lstms * 4 * units == expected


@pytest.mark.parametrize("make", [bidirectional, small_model])
def test_keras_file_round_trip(make, tmp_path):
    if make is bidirectional:
        model, trees = bidirectional(), list(map(chain, SENTENCES))
        model.build()
    else:
        options = {"num_layers": 2, "left_dependents": True, "dropout": 0.3, "input_dropout": 0.2}
        model, trees = small_model(**options), small_trees()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    assert again.vocabulary == model.vocabulary
    for one, other in zip(model.score(trees), again.score(trees), strict=True):
        assert_close(one, other, 1e-6, "log P")
    assert model.score([]) == []


def test_arrays_round_trip():
    for arguments in ({"num_layers": 2, "left_dependents": True}, {"sequential": True}):
        model = small_model(**arguments)
        arrays = convert.tree_lstm_to_arrays(model)
        again = convert.tree_lstm_from_arrays(arrays, vocabulary=vocabulary(9))
        trees = [chain(["w2", "w8", "w3"])]
        assert_close(again.score(trees)[0], model.score(trees)[0], 1e-6, "log P")


@pytest.mark.parametrize("name", ["dropout", "input_dropout"])
def test_dropouts_act_only_in_training(name):
    model = small_model(**{name: 0.5}, units=40)
    grids = model.schedule_batch([model.schedule_tree(tree) for tree in small_trees()]).grids
    calm, again = (model(grids, training=False) for _ in range(2))
    assert_close(calm, again, 0.0, "in evaluation")
    lively, other = (model(grids, training=True) for _ in range(2))
    assert_differ(lively, calm, 1e-3, "in training")
    assert_differ(lively, other, 1e-3, "twice in training")
    hidden = as_array(model.features(grids, training=True))
    assert (np.mean(hidden == 0.0) > 0.3) == (name == "dropout")


def test_seed_determines_initial_weights():
    one, same, other = (TreeLSTM(9, 3, 5, seed=seed) for seed in (4, 4, 5))
    for model in (one, same, other):
        model.build()
    for first, second, third in zip(one.weights, same.weights, other.weights, strict=True):
        assert_close(first, second, 0.0, first.path)
        if len(first.shape):
            assert_differ(first, third, 0.0, first.path)
    values = [as_array(weight).ravel() for weight in one.trainable_variables]
    assert 0.09 < np.abs(np.concatenate(values)).max() <= 0.1
    for first, second in itertools.combinations(values, 2):
        assert not np.isin(first, second).any(), "two weights have equal initial values"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"units": 0}, "units"),
        ({"left_layers": 1.5}, "left_layers"),
        ({"vocabulary": ["<unk>", "<root>"]}, "vocabulary"),
        ({"sequential": True, "left_dependents": True}, "left_dependents"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        small_model(**arguments)


@pytest.mark.parametrize(
    "words, tree, message",
    [
        (None, chain(["w2"]), "vocabulary"),
        (["<unk>", *vocabulary(9)[2:], "x"], chain(["w2"]), "<root>"),
        (["x", *vocabulary(9)[1:]], chain(["w2"]), "<unk>"),
        (vocabulary(9), chain(["w2", "<root>"]), "must not contain <root>"),
        (vocabulary(9), DependencyTree(["w2", "w3", "w4"], [3, 0, 2]), "not projective"),
    ],
)
def test_invalid_trees_raise(words, tree, message):
    with pytest.raises(ValueError, match=message):
        small_model(vocabulary=words).score([tree])
    for chains in (small_model(sequential=True), bidirectional()):
        with pytest.raises(ValueError, match="chain"):
            chains.score([DependencyTree(["w2", "w3"], [2, 0])])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy):
    """Word vectors and LSTMs are float32; the softmax and its inputs have half precision."""
    words = [chain(["w2", "w3", "w4"]), DependencyTree(["w5", "w6", "w2"], [2, 0, 2])]
    mixed, single = (
        small_model(left_dependents=True, input_dropout=0.2, dropout=0.2, dtype=dtype)
        for dtype in (policy, "float32")
    )
    for one, other in zip(mixed.states(words), single.states(words), strict=True):
        assert_close(one, other, SINGLE, "hidden states")
    learner = TreeLearner(mixed)
    learner.compile(keras.optimizers.SGD(0.5))
    (batch,) = TreeBatches(mixed, list(map(mixed.schedule_tree, words)), 2)
    losses = [float(learner.train_on_batch(*batch)) for _ in range(20)]
    assert losses[-1] < losses[0] - 0.2
