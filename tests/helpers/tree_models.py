"""Small TreeLSTM models and trees, and models and trees of the reference file."""

import numpy as np

from helpers.checks import as_array
from keras_onlstm import convert
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.models import TreeLSTM


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


def small_model(**kwargs):
    """A model with weights as large as those of a trained model, so that bugs are visible."""
    arguments = {"embedding_dim": 3, "units": 5, "vocabulary": vocabulary(9), "seed": 1}
    model = TreeLSTM(9, **{**arguments, **kwargs})
    model.build()
    for variable in model.trainable_variables:
        variable.assign(7.0 * as_array(variable))
    return model


def small_trees(count=8, seed=0):
    draw = np.random.default_rng(seed)
    names = vocabulary(9)
    trees = []
    for number in range(count):
        words = [names[place] for place in draw.integers(2, 9, draw.integers(1, 14))]
        trees.append(random_tree(words, seed=number))
    return [*trees, chain(["w2", "w3", "w4"]), DependencyTree(["w2", "w9", "w3"], [2, 0, 2])]
