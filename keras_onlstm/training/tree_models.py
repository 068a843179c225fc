"""Training of a TreeLSTM on dependency trees: model, loop, evaluation."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.models import BidirectionalLSTM, TreeLSTM
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig
from keras_onlstm.text.vocabulary import read_vectors
from keras_onlstm.training.batches import TreeBatches
from keras_onlstm.training.bptt import mean_loss, token_losses
from keras_onlstm.training.corpora import TreeCorpus
from keras_onlstm.training.optimizers import Stateful, WarmupSchedule, multiply_learning_rate
from keras_onlstm.training.trainer import Trainer, train_run
from keras_onlstm.tree_lstm.noise_contrastive import NoiseContrastive
from keras_onlstm.utils import Identifier, Tensor
from keras_onlstm.utils.validation import renamed_attribute


class TreeLearner(keras.Model):
    """A `TreeLSTM` with a loss, trained on `TreeBatches`.

    The loss is the mean cross-entropy over words, in nats. In training, `noise` replaces the
    cross-entropy, and `sentences` the mean: the sum over the words is divided by `sentences`.

    Args:
        model: `TreeLSTM`.
        noise: `NoiseContrastive`, or `None`.
        sentences: positive integer, or `None`.
        **kwargs: arguments of `keras.Model`.

    Call arguments:
        grids: dictionary of integer arrays, as for `TreeLSTM`, plus `noise` if it is used.
        training: whether to apply dropout.

    Returns:
        Hidden states (N, U) of the scheduled words.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training import TreeBatches, TreeLearner, evaluate_trees
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"], seed=0)
    >>> learner = TreeLearner(model)
    >>> learner.compile("sgd")
    >>> batches = TreeBatches(model, [model.schedule_tree(chain(["a", "a"]))], batch_size=1)
    >>> _ = learner.train_on_batch(*batches[0])
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
        is_word_mean = not training or self.sentences is None
        return ops.sum(losses * weights) / (ops.sum(weights) if is_word_mean else self.sentences)

    def compile(self, optimizer: Identifier = "sgd", **kwargs: Any) -> None:
        """`keras.Model.compile` with the loss of `compute_loss`."""
        super().compile(optimizer, loss=None, **kwargs)


def evaluate_trees(learner: TreeLearner, batches: TreeBatches) -> float:
    """The mean loss over all words, in nats, which is the logarithm of the perplexity."""
    loaded = (batches[index] for index in range(len(batches)))
    return mean_loss(learner, ((batch, float(batch[2].sum())) for batch in loaded))


class HalvingWithRollback(Stateful):
    """Halves the learning rate once the validation entropy stops falling, then stops.

    After the first epoch that does not lower the entropy by a factor of `factor`, and after every
    later epoch, the rate is halved. The second such epoch is the last. After an epoch that is worse
    than the best, the model gets the weights of the best.

    Source: https://github.com/XingxingZhang/td-treelstm, the published code.

    Args:
        model: compiled `keras.Model`.
        factor: ratio of the entropies of two epochs that counts as better.

    Example:

    >>> import keras
    >>> from keras_onlstm.training import HalvingWithRollback
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> schedule = HalvingWithRollback(model)
    >>> for entropy in (5.0, 4.0, 4.5):
    ...     schedule.step(entropy)
    >>> round(float(model.optimizer.learning_rate), 4), schedule.failed_epochs
    (0.005, 1)
    """

    monitor = "val_entropy"
    stored = ("last", "best", "best_weights")
    rises = renamed_attribute("rises", "failed_epochs")

    def __init__(self, model: keras.Model, factor: float = 1.0001) -> None:
        self.model, self.factor = model, factor
        self.failed_epochs = 0  # epochs that did not lower the entropy
        self.last: float | None = None
        self.best: float | None = None
        self.best_weights: list[np.ndarray] = []

    def get_state(self) -> dict[str, Any]:
        return {"rises": self.failed_epochs, **super().get_state()}  # `rises` in checkpoints

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state({name: state[name] for name in self.stored})
        self.failed_epochs = state["rises"]

    def step(self, score: float) -> None:
        if self.last is not None and not score * self.factor <= self.last:
            self.failed_epochs += 1
        self.last = score
        if self.best is None or score < self.best:
            self.best = score
            self.best_weights = [np.array(weight) for weight in self.model.get_weights()]
        elif score > self.best:
            self.model.set_weights(self.best_weights)
        if self.failed_epochs:
            multiply_learning_rate(self.model.optimizer, 0.5)
        if self.failed_epochs == 2:
            self.model.stop_training = True


def _counts(model, schedules):
    """Frequencies of target words, at least 1; that of `<root>` is the number of trees."""
    ids = np.concatenate([model.targets(schedule) for schedule in schedules])
    counts = np.bincount(ids, minlength=len(model.vocabulary))
    counts[model.root] = len(schedules)
    return np.maximum(counts, 1)


def make_tree_model(
    config: TreeLSTMConfig, vocabulary: Sequence[str], trees: Sequence[DependencyTree]
) -> tuple[TreeLSTM, TreeLearner, TreeBatches]:
    """The model of a run, a compiled `TreeLearner` for it, and the batches of trees."""
    keras.utils.set_random_seed(config.seed)
    kind: Any = BidirectionalLSTM if config.trees == "bidirectional" else TreeLSTM
    options: dict[str, Any] = {}
    if kind is TreeLSTM:
        options = {"left_dependents": config.left_dependents, "left_layers": config.left_layers,
                   "sequential": config.trees in ("chain", "sentence")}  # fmt: skip
    sizes = len(vocabulary), config.embedding_dim, config.units, config.num_layers
    options |= {"dropout": config.output_dropout, "input_dropout": config.input_dropout}
    bias = not config.noise
    model = kind(*sizes, vocabulary=vocabulary, seed=config.seed, output_bias=bias, **options)
    model.build()
    if config.vectors is not None:
        _set_word_vectors(model, config.vectors)
    schedules = [model.schedule_tree(tree) for tree in trees]
    noise = None
    if config.noise:
        learn = None if config.learn == "nothing" else config.learn
        counts = _counts(model, schedules)
        noise = NoiseContrastive(counts, config.noise, ln_z=config.ln_z, learn=learn)
    size = config.batch_size
    batches = TreeBatches(model, schedules, size, shuffle=True, seed=config.seed, noise=noise)
    is_sgd = config.optimizer == "sgd"
    learner = TreeLearner(model, noise, size if is_sgd else None)
    optimizer_kind = keras.optimizers.SGD if is_sgd else keras.optimizers.Adam
    optimizer = optimizer_kind(config.learning_rate, global_clipnorm=config.clipnorm)
    learner.compile(optimizer)
    optimizer.build(learner.trainable_variables)
    return model, learner, batches


def _set_word_vectors(model, path):
    """Replaces initial word vectors by those of a file, where it has them."""
    words = [word.lower() for word in model.vocabulary]
    vectors = read_vectors(path, set(words), model.embeddings.shape[1])
    table = ops.convert_to_numpy(model.embeddings)
    rows = [vectors.get(word, row) for word, row in zip(words, table, strict=True)]
    model.embeddings.assign(np.stack(rows))


def tree_evaluation(
    model: TreeLSTM, trees: Sequence[DependencyTree], batch_size: int = 64
) -> Callable[[], float]:
    """A function that computes the mean loss over words with the full softmax, in nats."""
    batches = TreeBatches(model, [model.schedule_tree(tree) for tree in trees], batch_size)
    learner = TreeLearner(model)
    learner.compile()
    return lambda: evaluate_trees(learner, batches)


def train_tree_model(
    output: str | Path,
    config: TreeLSTMConfig,
    corpus: TreeCorpus,
    resume: bool = False,
    steps: int | None = None,
    log_every: int = 0,
) -> bool:
    """Trains a TreeLSTM in the directory of a run, or resumes it. Returns whether it is complete.

    The directory receives the files of `Trainer`, `config.json` and `vocabulary.txt`; `best.keras`
    has the best perplexity on the validation trees.
    """
    model, learner, batches = make_tree_model(config, corpus.vocabulary, corpus.train)
    loss = tree_evaluation(model, corpus.validation, config.batch_size)
    warmup = config.warmup if config.schedule == "cosine" else None
    schedule: Any = WarmupSchedule(config.learning_rate, warmup)
    if config.schedule == "plateau":
        schedule = HalvingWithRollback(learner)

    def validate():
        entropy = loss()
        return {"val_entropy": entropy, "val_perplexity": math.exp(min(entropy, 700.0))}

    trainer = Trainer(
        learner, batches, validate, output, config.epochs, "val_perplexity", "min",
        schedules=[schedule], best_model=model, record=config.record(), log_every=log_every,
        unit="words",
    )  # fmt: skip
    description = (
        f"{model.title}, {model.count_params():,} parameters, {len(corpus.train):,} trees, "
        f"{sum(map(len, corpus.train)):,} words, {len(corpus.vocabulary):,} of them different"
    )
    return train_run(trainer, config, resume, steps, description, corpus.vocabulary)
