"""Training of a classifier of pairs of sequences: batches, model, loop, accuracy."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.models import PairClassifier
from keras_onlstm.runs.language_model import NAMES
from keras_onlstm.runs.pair_classifier import PairClassifierConfig
from keras_onlstm.training.batches import EpochBatches
from keras_onlstm.training.optimizers import PlateauSchedule
from keras_onlstm.training.trainer import Trainer, train_run
from keras_onlstm.utils.validation import check_integer


class PairBatches(EpochBatches):
    """Pairs of id sequences with their classes, in batches of similar lengths.

    Pairs are sorted by the lengths of both sides, rounded up to `1 + k * multiple`, and cut into
    batches, each padded to its longest sequences. The order depends only on `seed` and epoch.

    Args:
        left: list of lists of integer ids, none of them 0.
        right: list of the same length.
        classes: list of integers, of the same length.
        batch_size: positive integer, in pairs.
        multiple: positive integer. 1 pads least; larger ones give fewer shapes to compile for.
        shuffle: whether pairs of equal lengths, and batches, are shuffled in every epoch.
        seed: integer, 0 or above.
        **kwargs: arguments of `keras.utils.PyDataset`.

    Example:

    >>> from keras_onlstm.training import PairBatches
    >>> (left, right), classes = PairBatches([[1], [1, 2]], [[4], [5]], [0, 1], batch_size=2)[0]
    >>> left.tolist(), right.tolist(), classes.tolist()
    ([[1, 0], [1, 2]], [[4], [5]], [0, 1])
    """

    lengths_vary = True

    def __init__(
        self,
        left: Sequence[Sequence[int]],
        right: Sequence[Sequence[int]],
        classes: Sequence[int],
        batch_size: int,
        multiple: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size, shuffle, seed, **kwargs)
        if not len(left) == len(right) == len(classes) > 0:
            raise ValueError(
                "left, right and classes must be lists of the same length, at least 1, not of "
                f"{len(left)}, {len(right)} and {len(classes)}."
            )
        for index, pair in enumerate(zip(left, right, strict=True)):
            if any(0 in sequence for sequence in pair):
                raise ValueError(f"pair {index} contains the id 0, which is reserved for padding.")
        self.left, self.right, self.classes = left, right, np.asarray(classes, dtype="int32")
        self.multiple = check_integer("multiple", multiple)
        lengths = np.array([[len(a), len(b)] for a, b in zip(left, right, strict=True)])
        self._widths = 1 + -(-(np.maximum(lengths, 1) - 1) // multiple) * multiple  # (pairs, 2)
        self.set_epoch(0)

    def _order(self, generator):
        order = self._permutation(generator, len(self.classes))
        left, right = self._widths[order].T
        # The right lengths alternately rise and fall, so that a batch with pairs of two left
        # lengths needs little padding.
        snake = np.where((left // self.multiple) % 2 == 0, right, -right)
        return self._split(generator, order[np.lexsort((snake, left))])

    def __getitem__(self, index: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        pairs = self._batches[index]
        left_width, right_width = self._widths[pairs].max(axis=0)
        left = _padded([self.left[pair] for pair in pairs], left_width)
        right = _padded([self.right[pair] for pair in pairs], right_width)
        return (left, right), self.classes[pairs]

    def padding_share(self) -> float:
        """The share of all token positions of an epoch that is padding."""
        positions = sum(len(rows) * self._widths[rows].max(axis=0).sum() for rows in self._batches)
        tokens = sum(map(len, self.left)) + sum(map(len, self.right))
        return 1 - tokens / positions


def _padded(sequences, width):
    ids = np.zeros((len(sequences), width), dtype="int32")
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return ids


def _formula_batches(pairs, batch_size, shuffle=False, seed=0):
    left, right = (
        [logic.encode(getattr(pair, side)) for pair in pairs] for side in ("left", "right")
    )
    classes = [logic.LABELS.index(pair.label) for pair in pairs]
    # Formulas have 1 + 3 k tokens. JAX compiles for every shape, so it gets fewer shapes.
    multiple = 12 if keras.backend.backend() == "jax" else 3
    return PairBatches(left, right, classes, batch_size, multiple, shuffle, seed)


def accuracy(model: PairClassifier, pairs: Sequence[logic.Pair]) -> float:
    """The share of pairs of formulas that a model classifies right. `pairs` must not be empty."""
    return _accuracy(model, _formula_batches(pairs, 512))


def _accuracy(model, batches):
    correct = 0
    for inputs, classes in (batches[index] for index in range(len(batches))):
        correct += int((model.predict_on_batch(inputs).argmax(-1) == classes).sum())
    return correct / len(batches.classes)


def _compiled_model(config, batches):
    """The built and compiled model, and its schedules."""
    keras.utils.set_random_seed(config.seed)
    sizes = len(logic.TOKENS) + 1, len(logic.LABELS)
    model = PairClassifier(*sizes, seed=config.seed, **config.group("model"))
    rate: Any = config.learning_rate
    if config.schedule == "cosine":
        steps = len(batches) * config.epochs
        rate = keras.optimizers.schedules.CosineDecay(
            rate / 10, steps, warmup_target=rate, warmup_steps=math.ceil(steps / 20)
        )
    optimizer = keras.optimizers.Adam(rate, epsilon=1e-9, global_clipnorm=1.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    (left, right), classes = batches[0]
    pair = left[:1], right[:1]
    model(pair)  # builds the variables, which a checkpoint needs
    optimizer.build(model.trainable_variables)
    model.evaluate(pair, classes[:1], verbose=0)  # builds the metrics
    plateau = PlateauSchedule(optimizer, 0.5, 2, "max")
    return model, [plateau] if config.schedule == "plateau" else []


def train_pair_classifier(
    output: str | Path,
    config: PairClassifierConfig,
    training: Sequence[logic.Pair],
    validation: Sequence[logic.Pair],
    resume: bool = False,
    steps: int | None = None,
    log_every: int = 0,
) -> bool:
    """Trains a classifier of pairs of formulas, or resumes a run. Returns whether it is complete.

    The directory receives the files of `Trainer`, and `config.json`; `best.keras` has the best
    accuracy on the validation pairs.
    """
    batches = _formula_batches(training, config.batch_size, shuffle=True, seed=config.seed)
    validation_batches = _formula_batches(validation, 512)
    model, schedules = _compiled_model(config, batches)
    trainer = Trainer(
        model, batches, lambda: {"val_accuracy": _accuracy(model, validation_batches)}, output,
        config.epochs, "val_accuracy", schedules=schedules, record=config.record(),
        log_every=log_every, unit="pairs",
    )  # fmt: skip
    description = (
        f"{NAMES[config.recurrent]}, {model.count_params():,} parameters, {len(training):,} "
        f"training and {len(validation):,} validation pairs, {batches.padding_share():.1%} padding"
    )
    return train_run(trainer, config, resume, steps, description)
