"""Training of TreeLSTM: batches, losses, noise, halving, and resumed runs."""

import json
import math
from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import SINGLE, as_array, assert_close, gradients
from helpers.corpora import corpora_in
from helpers.tree_models import converted, small_model, small_trees, trees_of, weights_of
from keras_onlstm.datasets import conll, dependency_treebank
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.models import TreeLSTM
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig
from keras_onlstm.text.vocabulary import frequent, read_vectors
from keras_onlstm.training import HalvingWithRollback, TreeBatches, TreeLearner
from keras_onlstm.training.corpora import TreeCorpus, read_trees, reshape_tree
from keras_onlstm.training.tree_models import make_tree_model, train_tree_model
from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive

TOLERANCE = 1e-9
WORDS = ["<unk>", "<root>", *"abcdefg"]


@pytest.mark.parametrize("learn", ["ln_z", "z", None])
@pytest.mark.parametrize("prefix", ["tree.", "ldtree."])
def test_noise_contrastive_losses_match_the_reference(tree_reference, prefix, learn, float64):
    model = converted(tree_reference, prefix)
    noise, start = tree_reference[f"{prefix}nce.noise"], float(tree_reference[f"{prefix}nce.ln_z"])
    counts = tree_reference[f"{prefix}nce.counts"]
    estimation = NoiseContrastive(counts, noise.shape[1], ln_z=start, learn=learn, dtype=float64)
    expected = tree_reference[f"{prefix}nce.noise_distribution"]
    assert_close(estimation.distribution, expected, 1e-15, "distribution")
    scheduled = model.schedule_batch(
        [model.schedule_tree(tree) for tree in trees_of(tree_reference)]
    )
    grids = {name: ops.convert_to_tensor(x) for name, x in scheduled.grids.items()}
    count = scheduled.words

    def losses():
        hidden = model.features(grids)[:count]
        kernel = ops.convert_to_tensor(model.softmax_kernel)
        return estimation(hidden, kernel, scheduled.targets[:count], noise.astype("int32"))

    assert_close(losses(), tree_reference[f"{prefix}nce.loss"], TOLERANCE, "losses")
    variables = [v for v in model.trainable_variables if v is not model.softmax_bias]
    found = gradients(lambda: ops.sum(losses()), [], [*variables, estimation.constant])
    of_constant = found.pop()
    if learn is not None:
        name = {"ln_z": "nce.ln_z.grad", "z": "nce.z.grad"}[learn]
        assert_close(of_constant, tree_reference[prefix + name], TOLERANCE, name)
    assert (learn is not None) == estimation.constant.trainable
    for variable, gradient in zip(variables, found, strict=True):
        variable.assign(gradient)
    from keras_onlstm.convert import tree_lstm_to_arrays

    arrays = tree_lstm_to_arrays(model)
    for name in weights_of(tree_reference, prefix):
        if not name.endswith(".hh.bias") and name != "output_bias":
            expected = tree_reference[f"{prefix}nce.{name}.grad"]
            assert_close(arrays[name], expected, TOLERANCE, name)


def test_noise_follows_its_distribution():
    counts = np.array([900, 1, 40, 40, 7, 300, 1, 1])
    estimation = NoiseContrastive(counts, k=4, power=0.75)
    weighed = counts**0.75
    assert_close(estimation.distribution, weighed / weighed.sum(), 1e-15, "distribution")
    # What the table draws, exactly.
    shares, aliases = estimation._table
    exact = shares / len(counts)
    np.add.at(exact, aliases, (1.0 - shares) / len(counts))
    assert_close(exact, estimation.distribution, 1e-15, "alias table")
    drawn = estimation.draw(50_000, np.random.default_rng(0))
    assert drawn.shape == (50_000, 4) and drawn.dtype == np.int32
    frequencies = np.bincount(drawn.ravel(), minlength=8) / drawn.size
    # Five standard deviations of a share.
    bounds = 5.0 * np.sqrt(exact * (1.0 - exact) / drawn.size)
    assert (np.abs(frequencies - exact) < bounds).all()


@pytest.mark.parametrize(
    "arguments, message",
    [({"counts": [1, 0, 2]}, "word 1 has"), ({"counts": [1, 2], "learn": "lnz"}, "learn must be")],
)
def test_invalid_noise_arguments_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        NoiseContrastive(**arguments)


def batches_of(model, trees, size=3, **kwargs):
    return TreeBatches(model, [model.schedule_tree(tree) for tree in trees], size, **kwargs)


def words_of(batches):
    return [
        targets[weights > 0].tolist()
        for _, targets, weights in map(batches.__getitem__, range(len(batches)))
    ]


def test_every_tree_is_in_one_batch():
    model, trees = small_model(), small_trees(20)
    batches = batches_of(model, trees, shuffle=True)
    every = sorted(word for tree in trees for word in model.schedule_tree(tree).words)
    orders = []
    for epoch in (0, 1, 2, 1):
        batches.set_epoch(epoch)
        assert sorted(word for words in words_of(batches) for word in words) == every
        assert all(2 <= len(members) <= 3 for members in batches._batches)
        orders.append([list(members) for members in batches._batches])
    assert orders[1] == orders[3] != orders[2]
    assert orders[0] != orders[1]
    calm = batches_of(model, trees)
    before = words_of(calm)
    calm.set_epoch(1)
    assert words_of(calm) == before


def test_batches_have_few_shapes_and_similar_sizes(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        trees = dependency_treebank.load("train", normalized=True)
    words = frequent(tree.words for tree in trees)
    model = TreeLSTM(len(words), 2, 2, vocabulary=words)
    batches = batches_of(model, trees, 64, shuffle=True)
    shapes, counts = set(), []
    for epoch in range(2):
        batches.set_epoch(epoch)
        for index in range(len(batches)):
            inputs, targets, weights = batches[index]
            shapes.add((inputs["source"].shape, len(targets)))
            counts.append(weights.sum())
    assert len(shapes) < 8
    assert max(counts) < 1.2 * min(counts)
    cells = sum(np.prod(batches[index][0]["source"].shape) for index in range(len(batches)))
    assert sum(map(len, trees)) / cells > 0.6  # how full the grids are


def test_noise_is_reproducible():
    model, trees = small_model(), small_trees()
    estimation = NoiseContrastive(np.arange(1, 10), k=3)
    batches = batches_of(model, trees, noise=estimation)
    inputs, targets, _ = batches[1]
    assert inputs["noise"].shape == (len(targets), 3)
    assert_close(batches[1][0]["noise"], inputs["noise"], 0, "again")
    batches.set_epoch(1)
    assert (batches[1][0]["noise"] != inputs["noise"]).any()


def test_empty_layouts_are_rejected():
    with pytest.raises(ValueError, match="schedules is empty"):
        TreeBatches(small_model(), [], 2)


def test_loss_per_word_and_per_sentence():
    model, trees = small_model(), small_trees()
    batches = batches_of(model, trees, len(trees))
    inputs, targets, weights = batches[0]
    rows = [model.schedule_tree(tree).words for tree in trees]
    expected = -sum(float(scores.sum()) for scores in model.score(trees))
    words = sum(map(len, rows))
    for sentences, training, divisor in ((None, True, words), (4, True, 4), (4, False, words)):
        learner = TreeLearner(model, sentences=sentences)
        hidden = learner(inputs)
        loss = learner.compute_loss(inputs, targets, hidden, weights, training=training)
        assert_close(loss, expected / divisor, SINGLE, f"{sentences}, {training}")


def test_noise_applies_only_in_training():
    model, trees = small_model(output_bias=False), small_trees()
    estimation = NoiseContrastive(np.arange(1, 10), k=3)
    learner = TreeLearner(model, noise=estimation)
    inputs, targets, weights = batches_of(model, trees, len(trees), noise=estimation)[0]
    hidden = learner(inputs)
    losses = estimation(hidden, model.softmax_kernel.value, targets, inputs["noise"])
    expected = as_array(losses)[weights > 0].mean()
    loss = learner.compute_loss(inputs, targets, hidden, weights)
    assert_close(loss, expected, SINGLE, "training")
    expected = -np.concatenate(model.score(trees)).mean()
    loss = learner.compute_loss(inputs, targets, hidden, weights, training=False)
    assert_close(loss, expected, SINGLE, "evaluation")
    assert estimation.constant.path in [v.path for v in learner.trainable_variables]


@pytest.mark.parametrize("noise", [0, 8])
def test_learns_words_that_follow_from_their_paths(noise):
    """The words follow from their paths: the loss nears 0, where frequencies stay at 1.6."""
    trees = []
    for seed in range(40):
        shape = random_tree(["a"] * (1 + seed % 9), seed)
        letters = {0: "a", 1: "b", 2: "c", 3: "d"}
        words = [letters[int(path[-1][1])] for path in shape.paths()]
        trees.append(DependencyTree(words, shape.heads))
    model = TreeLSTM(9, 8, 16, vocabulary=WORDS, seed=0, output_bias=not noise)
    estimation = (
        NoiseContrastive([1, 40, 60, 60, 60, 60, 1, 1, 1], noise, ln_z=2.0) if noise else None
    )
    learner = TreeLearner(model, estimation)
    learner.compile(keras.optimizers.Adam(0.05))
    batches = batches_of(model, trees, 40, noise=estimation)
    for epoch in range(40):
        batches.set_epoch(epoch)
        learner.train_on_batch(*batches[0])
    assert np.concatenate(model.score(trees)).mean() > (-0.35 if noise else -0.15)


class Held(keras.Model):
    """A model of one weight, and a rate."""

    def __init__(self):
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="zeros", name="weight")
        self.built = True
        self.compile(keras.optimizers.SGD(1.0), "mse")
        self.stop_training = False


# Entropies; the rates after each epoch; whose epoch's weights the model has; after which it ends.
HALVINGS = [
    ([5.0, 4.0, 4.5, 3.0, 3.5], [1.0, 1.0, 0.5, 0.25, 0.125], [1, 2, 2, 4, 4], 5),
    # Not better by a ten-thousandth: halved, but not rolled back.
    ([5.0, 4.9999, 4.9998], [1.0, 0.5, 0.25], [1, 2, 3], 3),
    # Better than the epoch before, which was worse than the best: no second rise.
    (
        [5.0, 6.0, 5.5, 5.4, 4.0, 4.1],
        [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125],
        [1, 1, 1, 1, 5, 5],
        6,
    ),
]


@pytest.mark.parametrize("entropies, rates, kept, end", HALVINGS)
def test_halving_with_rollback(entropies, rates, kept, end):
    model = Held()
    halving = HalvingWithRollback(model)
    for epoch, (entropy, rate, weight) in enumerate(zip(entropies, rates, kept, strict=True), 1):
        model.weight.assign(float(epoch))
        halving.step(entropy)
        assert float(ops.convert_to_numpy(model.optimizer.learning_rate)) == rate
        assert float(ops.convert_to_numpy(model.weight)) == weight, f"epoch {epoch}"
        assert model.stop_training == (epoch == end)


def test_halving_stops_at_nan():
    model = Held()
    halving = HalvingWithRollback(model)
    for entropy in (5.0, math.nan, math.nan):
        halving.step(entropy)
    assert model.stop_training


@pytest.mark.parametrize(
    "text, message",
    [
        ("the 1 2 3\ncat 1 2\n", "line 2: the vector has 2 numbers"),
        ("2 4\nNew York 1 2 3 4\ncat 1 2 3 4\nthe 1 2 3 4\n", "line 3: the vector has 4 numbers"),
        ("cat 1 1e99 3\n", "line 1: '1e99' is not a finite"),
        ("zebra 1 2 3\n", "none of the 1 words"),
    ],
)
def test_invalid_word_vectors_are_reported(tmp_path, text, message):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_vectors(path, {"cat"}, 3)


def test_word_vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"3 2\ncat 0.5 -1\r\nx\xc3\xa9 1 2\ncat 7 7\n")
    found = read_vectors(path, {"cat", "xé", "dog"}, 2)
    assert sorted(found) == ["cat", "xé"]
    assert_close(found["cat"], [0.5, -1.0], 0, "the first one counts")
    path.write_bytes(b"cat \xff 1\n")
    with pytest.raises(ValueError, match=r"line 1: '\\udcff' is not a finite number"):
        read_vectors(path, {"cat"}, 2)
    with pytest.raises(FileNotFoundError, match="the file of word vectors does not exist"):
        read_vectors(tmp_path / "none.txt", {"cat"}, 2)


SPACED = b"New York 7 8 9"
NOT_TEXT = b"caf\xe9 0.1 nan x"
CAT, THE = b"cat 1 2 3", b"the 4 5 6"


@pytest.mark.parametrize(
    "rows",
    [
        [SPACED, SPACED, b". . . 1 2 3", b"at name@domain.com 1 2 3", CAT, THE],
        [NOT_TEXT, CAT, b"\xff \xfe \xe9 1 2 3", THE],
        [b"2 3 ", CAT + b" ", THE + b" ", b""],
        [b" 1 2 3", b"12 1 2 3", b"3.5 7 7 7 7", CAT, b"\xc2\xa0 1 2 3", THE],
        [b"\xef\xbb\xbf" + CAT, THE],
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_unknown_words_of_word_vectors_are_skipped(tmp_path, rows, end):
    path = tmp_path / "vectors.txt"
    path.write_bytes(end.join(rows) + end)
    found = read_vectors(path, {"cat", "the", "York", "New", "."}, 3)
    assert {word: row.tolist() for word, row in found.items()} == {
        "cat": [1.0, 2.0, 3.0],
        "the": [4.0, 5.0, 6.0],
    }


def test_word_vectors_of_words_with_blanks_and_numbers(tmp_path):
    path = tmp_path / "vectors.txt"
    for before in (b"York 1 2 3\n", b""):
        path.write_bytes(before + SPACED + b"\n")
        assert read_vectors(path, {"New York"}, 3)["New York"].tolist() == [7.0, 8.0, 9.0]
    path.write_text("3 1\ncat 2\n")
    found = read_vectors(path, {"3", "cat"}, 1)
    assert {word: row.tolist() for word, row in found.items()} == {"3": [1.0], "cat": [2.0]}


def test_word_vectors_of_wrong_size_are_reported_early(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("w 1 2 3 4\n" * 5000 + "cat 1 2\n")  # the last line is too short
    with pytest.raises(ValueError, match="line 1: the vector has 4 numbers"):
        read_vectors(path, {"cat"}, 3)
    path.write_text("w x 2 3 4\n" * 5000 + "cat 1 2 3\n")
    assert sorted(read_vectors(path, {"cat", "w x"}, 3)) == ["cat", "w x"]


def configuration(**values):
    sizes = {"embedding_dim": 3, "units": 4, "epochs": 2, "batch_size": 8, "learning_rate": 0.02}
    dropout = {"input_dropout": 0.2, "output_dropout": 0.2, "left_dependents": True}
    return TreeLSTMConfig(**{**sizes, **dropout, **values})


def corpus():
    parts = []
    for first in (0, 100, 200):
        draw = np.random.default_rng(first)
        sentences = [draw.choice(list("abcdefg"), size=draw.integers(1, 8)) for _ in range(30)]
        parts.append([random_tree(words.tolist(), first) for words in sentences])
    return TreeCorpus(WORDS, *parts, skipped={})


def left_by(directory):
    """The bits of a checkpoint, whose names count the models made so far, and the records."""
    with np.load(directory / "checkpoint.npz") as opened:
        arrays = [(name.rpartition("/")[0], opened[name].tobytes()) for name in opened.files]
    rows = json.loads((directory / "metrics.json").read_text())["epochs"]
    for row in rows:
        del row["seconds"]
    return sorted(array for array in arrays if array[0]), rows


PUBLISHED = {"optimizer": "sgd", "schedule": "plateau", "learning_rate": 1.0}
KINDS = [{}, PUBLISHED, {"noise": 3, "left_dependents": False}]


@pytest.mark.parametrize("values", KINDS)
def test_resume_matches_uninterrupted_run(tmp_path, values):
    """Stopped within epochs, at the end of one, and resumed."""
    data, one = corpus(), configuration(**values)
    assert train_tree_model(tmp_path / "whole", one, data)
    assert not train_tree_model(tmp_path / "broken", one, data, steps=3)
    assert not train_tree_model(tmp_path / "broken", one, data, resume=True, steps=1)
    assert train_tree_model(tmp_path / "broken", one, data, resume=True)
    whole, again = left_by(tmp_path / "whole"), left_by(tmp_path / "broken")
    assert len(whole[0]) > 20
    assert whole == again


def test_run_keeps_vocabulary_and_settings(tmp_path):
    data = corpus()
    assert train_tree_model(tmp_path / "run", configuration(), data)
    model = keras.saving.load_model(tmp_path / "run" / "best.keras")
    assert model.vocabulary == WORDS
    rows = json.loads((tmp_path / "run" / "metrics.json").read_text())["epochs"]
    best = min(row["val_perplexity"] for row in rows)
    found = math.exp(-np.concatenate(model.score(data.validation)).mean())
    assert abs(found / best - 1) < 1e-5
    other = data._replace(vocabulary=[*WORDS[:-1], "h"])
    with pytest.raises(ValueError, match="is not the vocabulary"):
        train_tree_model(tmp_path / "run", configuration(), other, resume=True)
    with pytest.raises(ValueError, match="left_dependents"):
        train_tree_model(tmp_path / "run", configuration(left_dependents=False), data, resume=True)


def test_model_starts_with_word_vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("b 1 2 3\nz 4 5 6\n")
    model, _, _ = make_tree_model(configuration(vectors=str(path)), WORDS, corpus().train)
    drawn, _, _ = make_tree_model(configuration(), WORDS, corpus().train)
    table, before = as_array(model.embeddings), as_array(drawn.embeddings)
    assert_close(table[3], [1.0, 2.0, 3.0], 0.0, "b")
    rest = [place for place in range(9) if place != 3]
    assert_close(table[rest], before[rest], 0.0, "others")


def test_trees_are_read_from_files(tmp_path):
    tree = DependencyTree(["The", "12", "cats", "sat"], [3, 3, 4, 0])
    crossing = DependencyTree(["a", "b", "c", "d"], [3, 4, 0, 3])
    paths = [tmp_path / f"{part}.conll" for part in ("train", "validation", "test")]
    for path in paths:
        conll.write([tree, crossing, tree], path)
    config = TreeLSTMConfig(data=paths, least_count=2, longest=4)
    found = read_trees(config)
    assert found.vocabulary == ["<unk>", "<root>", "N", "cats", "sat", "the"]
    assert [t.words for t in found.test] == [("the", "N", "cats", "sat")] * 2
    assert found.skipped == {"train": 1, "validation": 1, "test": 1}
    chains = read_trees(replace(config, trees="chain"))
    assert chains.train[0] == chain(("the", "N", "cats", "sat"))
    shape = read_trees(replace(config, trees="random")).train
    assert [t.heads for t in shape] == [reshape_tree(tree, "random", n).heads for n in range(2)]
    kept = read_trees(replace(config, normalize=False, longest=3), vocabulary=["x"])
    assert (kept.train, kept.vocabulary) == ([], ["x"])
    assert kept.validation[0].words == ("The", "12", "cats", "sat")


@pytest.mark.parametrize("trees", ["dependencies", "chain", "sentence"])
def test_debug_preset_uses_random_trees_without_data(trees):
    """Whose words tell the depth and the side of their node."""
    found = read_trees(TreeLSTMConfig.from_preset("debug", trees=trees))
    assert [len(part) for part in found[1:4]] == [120, 30, 30]
    plain = read_trees(TreeLSTMConfig.from_preset("debug")).train
    assert [tree.words for tree in found.train] == [
        reshape_tree(tree, trees, number).words for number, tree in enumerate(plain)
    ]
    assert {word for tree in plain for word in tree.words} <= {
        f"{side}-{depth}" for side in ("left", "right") for depth in "abcd"
    }


def test_files_without_trees_are_rejected(tmp_path):
    path = tmp_path / "trees.conll"
    conll.write([DependencyTree(["a", "b", "c", "d"], [3, 4, 0, 3])], path)
    with pytest.raises(ValueError, match="no projective tree"):
        read_trees(TreeLSTMConfig(data=[path] * 3))
    with pytest.raises(FileNotFoundError, match=r"none\.conll"):
        read_trees(TreeLSTMConfig(data=[tmp_path / "none.conll"] * 3))
