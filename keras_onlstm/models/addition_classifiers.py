"""The four classifiers that decide how a dependency tree grows, and their training."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_onlstm.utils import Shape, Tensor
from keras_onlstm.utils.keras_private import predictor
from keras_onlstm.utils.numerics import fold_in

_EDGES = 4
_CLASSES = 2  # no, yes
_EPSILON = 1e-20  # of AdaGrad, inside the root; published: 1e-10 outside. Sums start at 0.


class Nodes(NamedTuple):
    """Nodes of trees, ROOTs and words, with their hidden states and decisions."""

    hidden: np.ndarray  # (N, U) hidden states from which they were predicted
    words: np.ndarray  # (N,) int32 ids
    decisions: np.ndarray  # (N, 4) bool, `labels` of `dependencies.tree_builder.Additions`
    is_open: np.ndarray  # (N, 4) bool, as in `Additions`


class AdditionClassifiers(keras.layers.Layer):
    """Four classifiers in parallel, one per decision, each with two hidden ReLU layers of `units`.

    Called on features (N, size), it returns margins (N, 4), logit of yes minus logit of no, in the
    order of `Edge`.
    """

    def __init__(
        self, size: int, units: int, dropout: float, seed: int | None, **kwargs: Any
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.sizes, self.seed = (size, units, units, _CLASSES), seed
        self.dropouts = [
            keras.layers.Dropout(dropout, seed=fold_in(seed, "dropout", i), dtype=self.dtype_policy)
            for i in range(2)
        ]
        self.networks: list[tuple[keras.Variable, ...]] = []

    def build(self, input_shape: Shape | None = None) -> None:
        for index, (inputs, outputs) in enumerate(itertools.pairwise(self.sizes)):
            bound = inputs**-0.5  # default initialization of the published code
            shapes = {"kernel": (_EDGES, inputs, outputs), "bias": (_EDGES, 1, outputs)}
            variables = []
            for name, shape in shapes.items():
                seed = fold_in(self.seed, name, index)
                initializer = keras.initializers.RandomUniform(-bound, bound, seed=seed)
                variables.append(self.add_weight(shape, initializer, name=f"{name}_{index}"))
            self.networks.append(tuple(variables))
        self.built = True

    def call(self, features: Tensor, training: bool = False) -> Tensor:
        dtype = self.compute_dtype
        x = ops.expand_dims(ops.cast(features, dtype), 0)  # (1, N, size)
        for index, (kernel, bias) in enumerate(self.networks):
            kernel = ops.convert_to_tensor(kernel, dtype=dtype)
            x = x @ kernel + ops.convert_to_tensor(bias, dtype=dtype)  # (4, N, units)
            if index < len(self.dropouts):
                x = self.dropouts[index](ops.relu(x), training=training)
        return ops.transpose(x[..., 1] - x[..., 0])  # (4, N, 2) -> (N, 4)


class _Learner(keras.Model):
    """The classifiers with their loss, the sum of four cross-entropies."""

    def __init__(self, classifiers):
        super().__init__(name="learner", dtype=classifiers.dtype_policy)
        self.classifiers = classifiers
        self.built = True

    def call(self, features, training=False):
        return self.classifiers(features, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        signed = ops.where(y, -y_pred, y_pred)
        weights = ops.cast(sample_weight, signed.dtype)
        return ops.sum(ops.softplus(signed) * ops.expand_dims(weights, -1)) / ops.sum(weights)


def in_batches(function: Callable[..., Any], size: int, *arrays: np.ndarray) -> np.ndarray:
    """Applies a compiled function to the N rows of arrays, in batches of one size."""
    count, results = len(arrays[0]), []
    for start in range(0, count, size):
        rows = np.minimum(np.arange(start, start + size), count - 1)
        results.append(np.asarray(function(*(array[rows] for array in arrays))))
    return np.concatenate(results)[:count]


def _features(table, nodes, rows):
    return np.concatenate([nodes.hidden[rows], table[nodes.words[rows]]], -1)


def fit_classifiers(
    classifiers: AdditionClassifiers,
    table: np.ndarray,
    nodes: Nodes,
    validation: Nodes | None,
    seed: int,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Trains classifiers with AdaGrad; with `validation` each keeps the weights of its best epoch.

    `table`, (V, U), has a row per word. A node's features are its hidden state and this row.
    """
    learner = _Learner(classifiers)
    optimizer = keras.optimizers.Adagrad(
        learning_rate, initial_accumulator_value=0.0, epsilon=_EPSILON
    )
    learner.compile(optimizer, loss=None)
    predict = predictor(learner, axes=1)

    def validate(rows: np.ndarray) -> np.ndarray:
        return predict(_features(table, validation, rows))

    count = len(nodes.words)
    variables = classifiers.trainable_variables  # (4, ...) each
    best_accuracy = np.full(_EDGES, -1.0)
    best_weights = [np.array(ops.convert_to_numpy(v)) for v in variables]
    for epoch in range(epochs):
        order = np.random.Generator(np.random.PCG64([seed, epoch])).permutation(count)
        for start in range(0, count, batch_size):
            rows = order[start : start + batch_size]
            weights = np.zeros(batch_size, "float32")
            weights[: len(rows)] = 1.0
            rows = np.pad(rows, (0, batch_size - len(rows)))  # one shape: compiled once
            learner.train_on_batch(_features(table, nodes, rows), nodes.decisions[rows], weights)
            if progress is not None:
                progress(1)
        if validation is None:
            continue
        margins = in_batches(validate, batch_size, np.arange(len(validation.words)))
        accuracy = ((margins > 0.0) == validation.decisions).mean(0)  # (4,)
        is_better = accuracy > best_accuracy
        best_accuracy[is_better] = accuracy[is_better]
        for array, variable in zip(best_weights, variables, strict=True):
            array[is_better] = ops.convert_to_numpy(variable)[is_better]
    if validation is not None:
        for array, variable in zip(best_weights, variables, strict=True):
            variable.assign(array)
