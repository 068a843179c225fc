"""TreeLSTM: the reference numbers, the fast loop against the readable one, grids, and files."""

import numpy as np
import pytest
from keras import ops

from checks import assert_close, gradients
from keras_onlstm import convert
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.tree_lstm.reference import readable

TOLERANCE = 1e-9
WAYS = ("readable", "fast")


@pytest.fixture(scope="module")
def file(shared_reference):
    with np.load(shared_reference / "tree_lstm.npz") as opened:
        return dict(opened)


def vocabulary(size):
    return ["<unk>", "<root>", *(f"w{number}" for number in range(2, size))]


def trees_of(file):
    words, heads, start, trees = vocabulary(int(file["vocabulary_size"])), file["heads"], 0, []
    for length in file["lengths"]:
        end = start + length
        names = [words[number] for number in file["words"][start:end]]
        trees.append(DependencyTree(names, heads[start:end].tolist()))
        start = end
    return trees


def weights_of(file, prefix):
    names = ("log_probability", "hidden", "tree_log_probability")
    return {
        name.removeprefix(prefix): array
        for name, array in file.items()
        if name.startswith(prefix)
        and not name.startswith(f"{prefix}nce.")
        and not name.endswith(".grad")
        and name.removeprefix(prefix) not in names
    }


def converted(file, prefix):
    words = vocabulary(int(file["vocabulary_size"]))
    arrays = weights_of(file, prefix)
    return convert.tree_lstm_from_arrays(arrays, vocabulary=words, dtype="float64")


def log_softmax(logits, targets):
    logits = logits - ops.max(logits, -1, keepdims=True)
    found = ops.take_along_axis(logits, ops.expand_dims(targets, -1), axis=-1)[:, 0]
    return found - ops.log(ops.sum(ops.exp(logits), -1))


def log_probabilities(model, trees, way, rooms=None):
    """Function without arguments, of the model's variables: (words,)."""
    layouts = [model.lay_out(tree) for tree in trees]
    if way == "fast":
        planned = model.plan(layouts, rooms)
        grids = {name: ops.convert_to_tensor(x) for name, x in planned.grids.items()}
        return lambda: model.log_probabilities(grids, planned.targets)[: planned.words]
    root = model.vocabulary.index("<root>")

    def one_by_one():
        weights = model.weights_of_words()
        rows = [
            readable(weights, tree, layout.words.tolist(), root)
            for tree, layout in zip(trees, layouts, strict=True)
        ]
        targets = np.concatenate([layout.words for layout in layouts])
        return log_softmax(model.logits(ops.concatenate(rows, 0)), targets)

    return one_by_one


@pytest.mark.parametrize("prefix", ["tree.", "ldtree."])
@pytest.mark.parametrize("way", WAYS)
def test_the_reference_numbers(file, prefix, way, float64):
    model, trees = converted(file, prefix), trees_of(file)
    found = log_probabilities(model, trees, way)
    assert_close(found(), file[f"{prefix}log_probability"], TOLERANCE, "log P")
    variables = model.trainable_variables
    derived = gradients(lambda: -ops.sum(found()), [], variables)
    for variable, gradient in zip(variables, derived, strict=True):
        variable.assign(gradient)
    arrays = convert.tree_lstm_to_arrays(model)
    for name in weights_of(file, prefix):
        if not name.endswith(".hh.bias"):  # the sum of the two is one variable
            expected = file[f"{prefix}{name}.grad"]
            assert_close(arrays[name], expected, TOLERANCE, name)


@pytest.mark.parametrize("prefix", ["tree.", "ldtree."])
def test_what_a_model_says_of_the_reference_trees(file, prefix, float64):
    model, trees = converted(file, prefix), trees_of(file)
    scores = model.score(trees)
    assert [len(row) for row in scores] == file["lengths"].tolist()
    assert_close(np.concatenate(scores), file[f"{prefix}log_probability"], TOLERANCE, "words")
    expected = file[f"{prefix}tree_log_probability"]
    assert_close(model.log_probability(trees), expected, TOLERANCE, "trees")
    hidden = np.concatenate(model.states(trees))
    assert_close(hidden, file[f"{prefix}hidden"], TOLERANCE, "hidden")
