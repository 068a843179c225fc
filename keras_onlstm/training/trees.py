"""The training of a TreeLSTM: trees in batches of one size, and the loss of their words."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.training.noise_contrastive import NoiseContrastive
from keras_onlstm.tree_lstm.plan import Layout, Rooms
from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.cross_entropy import token_losses
from keras_onlstm.utils.keras_private import VaryingBatches
from keras_onlstm.utils.types import Identifier, Tensor

__all__ = ["TreeBatches", "TreeLearner", "evaluate_trees"]


class TreeBatches(VaryingBatches):
    """Trees in batches, each laid into a grid.

    Sorted by length the trees are cut into as many stretches as a batch has trees; a batch takes
    one of each. So all batches have about as many words, and share a few shapes. The order depends
    on `seed` and `epoch` alone.

    Args:
        model: `TreeLSTM`, which lays them out.
        layouts: list of `Layout`, `model.lay_out` of every tree.
        batch_size: positive integer, trees in a batch; some have one less.
        shuffle: whether trees of a stretch go to other batches from epoch to epoch.
        seed: integer, 0 or above.
        rooms: `Rooms` of the grid. Default: in proportion to what the trees need.
        noise: `NoiseContrastive`, which draws noise for every word, or `None`.
        **kwargs: of `keras.utils.PyDataset`.

    Raises:
        ValueError: if there is no tree, or an argument is too small.

    Indexing gives what `TreeLearner` trains on: grids, targets and their weights.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training import TreeBatches
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"])
    >>> batches = TreeBatches(model, [model.lay_out(chain(["a"] * n)) for n in (1, 2, 3, 4)], 2)
    >>> [int(weights.sum()) for _, _, weights in batches]
    [4, 6]
    """

    def __init__(
        self,
        model: TreeLSTM,
        layouts: Sequence[Layout],
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        rooms: Rooms | None = None,
        noise: NoiseContrastive | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not len(layouts):
            raise ValueError("there is no tree.")
        self.model, self.layouts, self.noise = model, list(layouts), noise
        self.batch_size = integer("batch_size", batch_size)
        self.shuffle, self.seed = shuffle, integer("seed", seed, 0)
        self.rooms = Rooms.fitting(self.layouts, batch_size) if rooms is None else rooms
        self._lengths = np.array([len(layout.words) for layout in self.layouts])
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Puts trees and batches in the order of an epoch, from 0 on."""
        self._epoch = epoch
        count = len(self.layouts)
        batches = -(-count // self.batch_size)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        order = generator.permutation(count) if self.shuffle else np.arange(count)
        order = order[np.argsort(self._lengths[order], kind="stable")]
        self._batches: list[list[int]] = [[] for _ in range(batches)]
        for start in range(0, count, batches):
            stretch = order[start : start + batches].tolist()
            places = generator.permutation(batches) if self.shuffle else range(batches)
            for place, tree in zip(places, stretch, strict=False):
                self._batches[place].append(tree)

    def on_epoch_end(self) -> None:
        """Goes on to the next epoch, as `keras.Model.fit` expects it."""
        self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._batches)

    def share(self, index: int) -> float:
        """What the learning rate of a batch is multiplied with, as that of `Windows`: 1."""
        return 1.0

    def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        planned = self.model.plan([self.layouts[i] for i in self._batches[index]], self.rooms)
        inputs = planned.grids
        if self.noise is not None:
            generator = np.random.Generator(np.random.PCG64([self.seed, self._epoch, index]))
            inputs = {**inputs, "noise": self.noise.draw(len(planned.targets), generator)}
        return inputs, planned.targets, planned.weights


class TreeLearner(keras.Model):
    """A `TreeLSTM` with the loss of its words.

    Takes what `TreeBatches` yields. The loss is the mean over words, in nats. With `sentences` it
    is their sum over the words of a batch, divided by that number, in training; and with
    noise-contrastive estimation that of `noise`. Evaluation is always by the full softmax, and by
    word.

    Args:
        model: `TreeLSTM`.
        noise: `NoiseContrastive`, or `None`: by the softmax.
        sentences: positive integer, or `None`.
        **kwargs: of `keras.Model`.

    Call arguments:
        grids: dictionary of integer arrays, as of `TreeLSTM`; `noise` among them where there is.
        training: whether to drop.

    Returns:
        Hidden states (N, U) of the planned words.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training import TreeBatches, TreeLearner, evaluate_trees
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"], seed=0)
    >>> learner = TreeLearner(model)
    >>> learner.compile("sgd")
    >>> batches = TreeBatches(model, [model.lay_out(chain(["a", "a"]))], batch_size=1)
    >>> for inputs, targets, weights in batches:
    ...     _ = learner.train_on_batch(inputs, targets, weights)
    >>> 1.0 < evaluate_trees(learner, batches) < 1.3  # the logarithm of three words is 1.1
    True
    """

    def __init__(
        self,
        model: TreeLSTM,
        noise: NoiseContrastive | None = None,
        sentences: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"dtype": model.dtype_policy, **kwargs})
        self.model, self.noise, self.sentences = model, noise, sentences
        if not model.built:
            model.build()
        self.built = True

    def call(self, grids: dict[str, Tensor], training: bool = False) -> Tensor:
        return self.model.features(grids, training=training)

    def compute_loss(
        self,
        x: Any = None,
        y: Tensor = None,
        y_pred: Any = None,
        sample_weight: Tensor = None,
        training: bool = True,
    ) -> Tensor:
        if training and self.noise is not None:
            kernel = ops.convert_to_tensor(self.model.softmax_kernel, dtype=y_pred.dtype)
            losses = self.noise(y_pred, kernel, y, x["noise"])
        else:
            losses = token_losses(y, self.model.logits(y_pred))
        weights = ops.cast(sample_weight, losses.dtype)
        by_word = not training or self.sentences is None
        return ops.sum(losses * weights) / (ops.sum(weights) if by_word else self.sentences)

    def compile(self, optimizer: Identifier = "sgd", **kwargs: Any) -> None:
        """As `keras.Model.compile`, with the loss of a language model.

        Args:
            optimizer: of `keras.Model.compile`.
            **kwargs: of `keras.Model.compile`, without `loss`.
        """
        super().compile(optimizer, loss=None, **kwargs)


def evaluate_trees(learner: TreeLearner, batches: TreeBatches) -> float:
    """The mean loss over the words of trees.

    Args:
        learner: compiled `TreeLearner`.
        batches: `TreeBatches`.

    Returns:
        Mean of the negative log-probabilities of the words, in nats: the perplexity's logarithm.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training import TreeBatches, TreeLearner, evaluate_trees
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"], seed=0)
    >>> learner = TreeLearner(model)
    >>> learner.compile()
    >>> batches = TreeBatches(model, [model.lay_out(chain(["a", "a"]))], batch_size=1)
    >>> 1.0 < evaluate_trees(learner, batches) < 1.3  # about as many as there are words
    True
    """
    total = words = 0.0
    for inputs, targets, weights in (batches[index] for index in range(len(batches))):
        count = float(weights.sum())
        loss = learner.test_on_batch(inputs, targets, weights, return_dict=True)["loss"]
        total, words = total + float(loss) * count, words + count
    return total / words
