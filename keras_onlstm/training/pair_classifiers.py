"""Training of a classifier of pairs of sequences: model, loop, accuracy."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.models import PairClassifier
from keras_onlstm.runs.directory import has_begun, running
from keras_onlstm.runs.language_model import NAMES
from keras_onlstm.runs.pair_classifier import PairClassifierConfig
from keras_onlstm.training.pair_batches import PairBatches
from keras_onlstm.training.schedules import PlateauSchedule
from keras_onlstm.training.trainer import Trainer

__all__ = ["accuracy", "formula_batches", "train_pair_classifier"]


def formula_batches(
    pairs: Sequence[logic.Pair], batch_size: int, shuffle: bool = False, seed: int = 0
) -> PairBatches:
    """`PairBatches` of formulas."""
    # Formulas have 1 + 3 k tokens. JAX compiles for every shape, so it gets fewer shapes.
    return PairBatches(
        [logic.encode(pair.left) for pair in pairs],
        [logic.encode(pair.right) for pair in pairs],
        [logic.LABELS.index(pair.label) for pair in pairs],
        batch_size,
        multiple=12 if keras.backend.backend() == "jax" else 3,
        shuffle=shuffle,
        seed=seed,
    )


def accuracy(model: PairClassifier, pairs: Sequence[logic.Pair]) -> float:
    """The share of pairs of formulas that a model classifies right. `pairs` has some."""
    return _accuracy(model, formula_batches(pairs, 512), len(pairs))


def _accuracy(model, batches, count):
    correct = 0
    for inputs, classes in (batches[index] for index in range(len(batches))):
        correct += int((model.predict_on_batch(inputs).argmax(-1) == classes).sum())
    return correct / count


def _compiled(config, batches):
    """The built and compiled model, and its schedules."""
    keras.utils.set_random_seed(config.seed)
    model = PairClassifier(
        vocabulary_size=len(logic.TOKENS) + 1,
        classes=len(logic.LABELS),
        seed=config.seed,
        **config.group("model"),
    )
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
    model((left[:1], right[:1]))  # builds the variables, which a checkpoint needs
    optimizer.build(model.trainable_variables)
    model.evaluate((left[:1], right[:1]), classes[:1], verbose=0)  # builds the metrics
    is_plateau = config.schedule == "plateau"
    return model, [PlateauSchedule(optimizer, 0.5, 2, "max")] if is_plateau else []


def train_pair_classifier(
    output: str | Path,
    config: PairClassifierConfig,
    training: Sequence[logic.Pair],
    validation: Sequence[logic.Pair],
    resume: bool = False,
    steps: int | None = None,
    log_every: int = 0,
) -> bool:
    """Trains a classifier of pairs of formulas in the directory of a run, or resumes it.

    The directory receives what `Trainer` writes, and `config.json`; `best.keras` is the model with
    the best accuracy on the validation pairs.

    Args:
        output: the directory.
        config: `PairClassifierConfig`.
        training: list of `propositional_logic.Pair`.
        validation: list of `propositional_logic.Pair`.
        resume: whether to resume the run.
        steps: number of batches after which to stop, or `None`.
        log_every: number of batches between printed lines.

    Returns:
        Whether training is complete.

    Raises:
        OSError: if the directory is not new, is in use, or cannot be written.
        ValueError: if the checkpoint is damaged or of another run.
    """
    batches = formula_batches(training, config.batch_size, shuffle=True, seed=config.seed)
    checks = formula_batches(validation, 512)
    model, schedules = _compiled(config, batches)
    trainer = Trainer(
        model,
        batches,
        lambda: {"val_accuracy": _accuracy(model, checks, len(validation))},
        output,
        epochs=config.epochs,
        monitor="val_accuracy",
        schedules=schedules,
        record=config.record(),
        log_every=log_every,
        unit="pairs",
    )
    with running(output, config.to_json(), resume):
        if resume and has_begun(output):
            trainer.resume()
        print(
            f"{NAMES[config.recurrent]}, {model.count_params():,} parameters, "
            f"{len(training):,} training and {len(validation):,} validation pairs, "
            f"{batches.padding_share():.1%} padding",
            flush=True,
        )
        trainer.run(steps)
    return trainer.progress.epoch == config.epochs
