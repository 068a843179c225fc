"""TreeGenerator: probabilities, sampling, and training of the classifiers."""

import itertools
import math
from collections import Counter

import keras
import numpy as np
import pytest

from helpers.checks import SINGLE, assert_close
from helpers.dependency_trees import projective_trees
from keras_onlstm.dependencies import DependencyTree, random_tree
from keras_onlstm.dependencies.tree_builder import ADDITIONS, additions
from keras_onlstm.loading import load_model
from keras_onlstm.models import TreeGenerator, TreeLSTM
from keras_onlstm.models.tree_generator import Accuracy

WORDS = ["<unk>", "<root>", "a", "b", "c"]
KINDS = {"TreeLSTM": {}, "LdTreeLSTM": {"left_dependents": True, "left_layers": 2, "num_layers": 2}}


def randomized(layer, seed, scale=0.7):
    """A layer whose weights are far from 0, so that its outputs depend on its inputs."""
    draw = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        variable.assign(draw.normal(0.0, scale, variable.shape))
    return layer


def model_of(words=WORDS, dtype="float32", **kwargs):
    given = {"embedding_dim": 3, "units": 4, "vocabulary": words, "dtype": dtype, "seed": 0}
    model = TreeLSTM(len(words), **(given | kwargs))
    model.build()
    return randomized(model, 1)


def generator_of(model, yes=None, seed=6):
    """A generator with random classifiers, or with the same probability of yes everywhere."""
    generator = TreeGenerator(model, units=6, seed=seed)
    generator.build()
    randomized(generator.classifiers, seed)
    last = generator.classifiers.trainable_variables[-1]  # (4, 1, 2), biases
    if yes is not None:
        for variable in generator.classifiers.trainable_variables:
            variable.assign(np.zeros(variable.shape))
        logits = np.zeros(last.shape)
        logits[:, 0, 1] = np.log(np.array(yes) / (1 - np.array(yes)))
        last.assign(logits)
    else:
        shifted = np.array(keras.ops.convert_to_numpy(last))
        shifted[:, 0, 0] += 0.7  # no, more often than not
        last.assign(shifted)
    return generator


def random_trees(count, words=WORDS):
    draw = np.random.default_rng(3)
    names = [word for word in words if word != "<root>"]
    lengths = draw.integers(1, 9, count)
    return [random_tree(list(draw.choice(names, n)), seed) for seed, n in enumerate(lengths)]


def softmax_logs(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def arrays(variables):
    return [keras.ops.convert_to_numpy(variable).astype("float64") for variable in variables]


def margins_by_hand(generator, features):
    """Margins (N, 4), computed one network at a time."""
    kernels = arrays(generator.classifiers.trainable_variables)
    found = []
    for number in range(4):
        x = features
        for place in range(3):
            x = x @ kernels[2 * place][number] + kernels[2 * place + 1][number]
            x = np.maximum(x, 0.0) if place < 2 else x
        found.append(x[:, 1] - x[:, 0])
    return np.stack(found, -1)


def log_probability_by_hand(generator, tree):
    model = generator.model
    kernel, bias = arrays([model.softmax_kernel, model.softmax_bias])
    ids = [WORDS.index(word) for word in tree.words]
    hidden = model.states([tree])[0].astype("float64")
    logits = hidden @ kernel.T + bias
    logits[:, WORDS.index("<root>")] = -np.inf
    total = softmax_logs(logits)[range(len(tree)), ids].sum()
    margins = margins_by_hand(generator, np.concatenate([hidden, kernel[ids]], -1))
    for place, head in enumerate(tree.heads, 1):
        left, right = tree.dependents()[place]
        siblings = tree.dependents()[head]
        decisions = {0: bool(left), 1: bool(right)}
        if head and place < head:
            decisions[2] = place != siblings[0][0]  # the farthest is not followed by another
        elif head:
            decisions[3] = place != siblings[1][-1]
        for edge, made in decisions.items():
            total -= math.log1p(math.exp((1 - 2 * made) * margins[place - 1, edge]))
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_log_probability_matches_numpy(kind, float64):
    generator = generator_of(model_of(dtype=float64, **KINDS[kind]))
    trees = random_trees(30)
    expected = [log_probability_by_hand(generator, tree) for tree in trees]
    assert_close(generator.log_probability(trees), expected, 1e-9, "log P(S, T)")


def sizes_by_series(yes, most):
    """The probabilities of trees of 1, 2, ... words, where every decision is yes with `yes`.

    Coefficients of A = z ((1 - l) + l L) ((1 - r) + r R), L = A ((1 - m) + m L), R accordingly.
    """
    left, right, next_left, next_right = yes
    size = most + 1

    def times(x, y):
        return np.convolve(x, y)[:size]

    def either(share, x):
        return share * x + (1 - share) * np.eye(1, size)[0]

    whole, of_left, of_right = np.zeros((3, size))
    for _ in range(size):  # each makes one more coefficient final
        inside = times(either(left, of_left), either(right, of_right))
        whole = np.concatenate([[0.0], inside[:-1]])
        for _ in range(size):
            of_left = times(whole, either(next_left, of_left))
            of_right = times(whole, either(next_right, of_right))
    return whole[1:]


def test_probabilities_of_all_trees_add_up_to_1(float64):
    words = ["<unk>", "<root>", "a"]
    yes = (0.3, 0.2, 0.2, 0.1)
    generator = generator_of(model_of(words, float64, left_dependents=True), yes)
    expected = sizes_by_series(yes, 4)
    for count in range(1, 5):
        trees = [
            DependencyTree(sentence, heads)
            for heads in projective_trees(count)
            for sentence in itertools.product(["<unk>", "a"], repeat=count)
        ]
        found = np.exp(generator.log_probability(trees)).sum()
        assert found == pytest.approx(expected[count - 1], abs=1e-9), count
    sums = np.cumsum(sizes_by_series(yes, 60))
    assert (np.diff(sums) > 0).all() and 1 - 1e-4 < sums[-1] < 1


def test_sample_frequencies_match_probabilities():
    words = ["<unk>", "<root>", "a"]
    generator = generator_of(model_of(words, left_dependents=True))
    trees = [
        DependencyTree(sentence, heads)
        for count in range(1, 4)
        for heads in projective_trees(count)
        for sentence in itertools.product(["<unk>", "a"], repeat=count)
    ]
    expected = dict(zip(trees, np.exp(generator.log_probability(trees)), strict=True))
    n = 3000
    samples = generator.sample(n, seed=5, max_words=3, additions="drawn")
    found = Counter(sample.tree for sample in samples if not sample.is_cut)
    assert set(found) <= set(trees)
    mass = sum(expected.values())
    assert 0.2 < mass < 0.95

    def near(count, share):
        return abs(count - n * share) < 4 * math.sqrt(n * share * (1 - share)) + 1

    assert near(sum(found.values()), mass)
    assert all(near(found[tree], expected[tree]) for tree in trees)


def check_samples(generator, samples, tolerance):
    trees = [sample.tree for sample in samples]
    assert all(tree.is_projective for tree in trees)
    scores = np.concatenate(generator.model.score(trees))
    assert_close(np.concatenate([s.scores for s in samples]), scores, tolerance, "scores")
    joint = generator.log_probability(trees)
    assert_close([s.log_probability for s in samples], joint, 10 * tolerance, "log P(S, T)")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["likelier", "drawn"])
def test_sample_scores_match_log_probability(kind, way, float64):
    for dtype, tolerance in (("float32", SINGLE), (float64, 1e-9)):
        generator = generator_of(model_of(dtype=dtype, **KINDS[kind]))
        samples = generator.sample(12, seed=1, max_words=12, additions=way)
        check_samples(generator, samples, tolerance)
        assert max(len(sample.tree) for sample in samples) > 4
        if way == "drawn":
            made = np.concatenate([additions(sample.tree).labels for sample in samples])
            assert made.any(0).all()
            steps = [step for sample in samples for step in sample.tree.steps()]
            assert any(len(step.left) > 1 for step in steps)  # which are read in their order


def test_likelier_decisions_are_deterministic():
    generator = generator_of(model_of(left_dependents=True))
    samples = generator.sample(12, seed=1, max_words=12)
    whole = [sample.tree for sample in samples if not sample.is_cut]
    assert len(whole) > 2
    assert all(accuracy.open == 1.0 for accuracy in generator.accuracies(whole).values())


def test_max_words_cuts_trees():
    generator = generator_of(model_of(), yes=(0.1, 0.9, 0.1, 0.1))
    for sample in generator.sample(3, max_words=7):
        assert sample.tree.heads == tuple(range(7)) and sample.is_cut
        # What the limit refuses is taken as no.
        expected = log_probability_by_hand(generator, sample.tree)
        assert sample.log_probability == pytest.approx(expected, abs=1e-4)
    generator = generator_of(model_of(), yes=(0.1, 0.1, 0.1, 0.1))
    for sample in generator.sample(3, max_words=1):
        assert len(sample.tree) == 1 and not sample.is_cut


def test_word_frequencies_match_softmax():
    model = model_of()
    generator = generator_of(model, yes=(0.01,) * 4)
    model.softmax_bias.assign([0.0, 3.0, 0.5, -0.5, 0.2])  # <root> would be the most frequent
    n = 2000
    hidden = arrays([*model.states([DependencyTree(["a"], [0])])])[0]
    kernel, bias = arrays([model.softmax_kernel, model.softmax_bias])
    logits = (hidden @ kernel.T + bias)[0]
    for temperature in (1.0, 0.25):
        samples = generator.sample(n, seed=7, temperature=temperature)
        counts = Counter(sample.tree.words for sample in samples)
        logits[1] = -np.inf
        shares = np.exp(softmax_logs(logits / temperature))
        assert counts[("<root>",)] == 0
        for word, share in zip(WORDS, shares, strict=True):
            spread = 4 * math.sqrt(n * share * (1 - share)) + 1
            assert abs(counts[(word,)] - n * share) < spread, (word, temperature)


def test_seed_determines_samples():
    generator = generator_of(model_of())
    first = [sample.tree for sample in generator.sample(6, seed=1)]
    assert [sample.tree for sample in generator.sample(6, seed=1)] == first
    assert [sample.tree for sample in generator.sample(3, seed=1)] == first[:3]
    assert [sample.tree for sample in generator.sample(6, seed=2)] != first


def test_batch_size_does_not_change_samples(monkeypatch):
    generator = generator_of(model_of())
    whole = generator.sample(7, max_words=5)
    monkeypatch.setattr("keras_onlstm.models.tree_sampler._TREES", 3)
    parts = generator.sample(7, max_words=5)
    assert [sample.tree for sample in parts] == [sample.tree for sample in whole]


# The dependents of a word and its siblings follow from the word.
RULES = [
    DependencyTree(["a", "b"], [2, 0]),
    DependencyTree(["a", "c", "b"], [3, 3, 0]),
    DependencyTree(["a", "c", "c", "b"], [4, 4, 4, 0]),
]


def test_classifiers_learn_deterministic_rules():
    model = model_of()
    generator = TreeGenerator.train(
        model, RULES * 20, epochs=30, units=20, dropout=0.0, learning_rate=0.03, batch_size=32
    )
    found = generator.accuracies(RULES)
    # 12 nodes, 3 of which have dependents on the left; of 6 words on the left 3 are followed.
    assert found["ADD-LEFT"] == Accuracy(1.0, 0.75, 1.0, pytest.approx(2 / 3))
    assert found["ADD-NX-LEFT"] == Accuracy(1.0, 0.75, 1.0, 0.5)
    nothing = found["ADD-NX-RIGHT"]
    assert nothing[:2] == (1.0, 1.0) and math.isnan(nothing.open)


def trained(model, validation=None, **kwargs):
    given = {"epochs": 2, "units": 5, "batch_size": 16, "dropout": 0.3}
    generator = TreeGenerator.train(
        model, random_trees(12), validation=validation, **given | kwargs
    )
    return arrays(generator.classifiers.trainable_variables)


def test_seed_and_every_argument_affect_training():
    model = model_of()
    before = arrays(model.trainable_variables)
    first = trained(model)
    for one, other in zip(trained(model), first, strict=True):
        assert (one == other).all()
    changes = {"seed": 1, "epochs": 3, "batch_size": 17, "dropout": 0.0, "learning_rate": 0.02}
    for name, value in changes.items():
        assert (trained(model, **{name: value})[0] != first[0]).any(), name
    assert trained(model, units=6)[0].shape == (4, 8, 6)
    for one, other in zip(arrays(model.trainable_variables), before, strict=True):
        assert (one == other).all()


def test_first_step_of_adagrad_is_the_learning_rate():
    """The first step of AdaGrad is the learning rate, up or down, wherever there is a gradient."""
    model = model_of()
    start = TreeGenerator(model, units=5, seed=0)
    start.build()
    before = arrays(start.classifiers.trainable_variables)
    after = trained(model, epochs=1, batch_size=200, dropout=0.0)
    moved = np.concatenate([np.abs(a - b).ravel() for a, b in zip(after, before, strict=True)])
    by_rate = np.abs(moved - 0.01) < 1e-5
    assert (by_rate | (moved == 0.0)).mean() > 0.99  # the others have gradients of 1e-10
    assert by_rate.mean() > 0.5


def test_each_classifier_keeps_its_best_epoch():
    model, validation = model_of(), random_trees(30)[12:]
    given = {"learning_rate": 0.05, "dropout": 0.0}
    after = []
    for epochs in range(1, 5):
        generator = TreeGenerator.train(
            model, random_trees(12), epochs=epochs, units=5, batch_size=16, **given
        )
        accuracies = generator.accuracies(validation)
        weights = arrays(generator.classifiers.trainable_variables)
        after.append(([accuracies[name].all for name in ADDITIONS], weights))
    best = np.array([shares for shares, _ in after]).argmax(0)  # the first of equals
    assert (best < 3).any()
    kept = trained(model, validation, epochs=4, **given)
    for number, epoch in enumerate(best):
        for one, other in zip(kept, after[epoch][1], strict=True):
            assert_close(one[number], other[number], 1e-6, ADDITIONS[number])


def test_keras_file_round_trip(tmp_path):
    generator = generator_of(model_of(**KINDS["LdTreeLSTM"]))
    generator.save(tmp_path / "generator.keras")
    again = load_model(tmp_path / "generator.keras")[0]
    assert isinstance(again, TreeGenerator) and again.get_config() == generator.get_config()
    trees = random_trees(5)
    assert_close(again.log_probability(trees), generator.log_probability(trees), 1e-6, "log P")
    assert [s.tree for s in again.sample(3)] == [s.tree for s in generator.sample(3)]


def test_invalid_arguments_raise():
    model = model_of()
    generator = generator_of(model)
    mistakes = [
        (lambda: generator.sample(0), "n must be an integer, 1 or above, not 0."),
        (lambda: generator.sample(1, temperature=0.0), "temperature must be a number above 0"),
        (lambda: generator.sample(1, additions="all"), "additions must be 'likelier' or 'drawn'"),
        (lambda: generator.log_probability([]), "trees must contain at least one tree."),
        (lambda: TreeGenerator.train(model, []), "trees must contain at least one tree."),
        (lambda: TreeGenerator(TreeLSTM(3, 2, 4)), "The model has no vocabulary with <unk>"),
    ]
    for use, message in mistakes:
        with pytest.raises(ValueError) as caught:
            use()
        assert str(caught.value).startswith(message)
