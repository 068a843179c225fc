"""Training of a language model on a corpus: model, optimizer, loop, evaluation."""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_onlstm.distribution.devices import DataParallel
from keras_onlstm.distribution.processes import SINGLE_PROCESS, Processes
from keras_onlstm.models import PRPN, LanguageModel
from keras_onlstm.models.initializers import copy_weights
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.runs.language_model import TextConfig
from keras_onlstm.text.corpus import Corpus
from keras_onlstm.text.large_corpus import word_counts
from keras_onlstm.text.vocabulary import EOS
from keras_onlstm.training.batches import SentenceBatches, Windows
from keras_onlstm.training.bptt import ResetStates, TruncatedModel, evaluate_windows
from keras_onlstm.training.corpora import IDS
from keras_onlstm.training.optimizers import (
    AveragedSGD,
    NonMonotonicTrigger,
    PenalizedAdam,
    PlateauSchedule,
    WarmupSchedule,
)
from keras_onlstm.training.trainer import Trainer, train_run


def make_model(config: TextConfig, vocabulary: Sequence[str]) -> SentenceReader:
    """The untrained `LanguageModel` or `PRPN` of a run."""
    keras.utils.set_random_seed(config.seed)
    kind: Any = PRPN if config.model == "prpn" else LanguageModel
    dtype = "mixed_bfloat16" if config.compute_dtype == "bfloat16" else "float32"
    options = {"vocabulary": vocabulary, "seed": config.seed, "dtype": dtype}
    return kind(len(vocabulary), **options, **config.group("model"))


def _optimizer(config):
    options = {"learning_rate": config.learning_rate, "global_clipnorm": config.clipnorm}
    decay = config.weight_decay
    if config.optimizer in ("sgd", "asgd"):
        kind = AveragedSGD if config.optimizer == "asgd" else keras.optimizers.SGD
        return kind(weight_decay=decay or None, **options)
    options |= {"beta_1": config.beta_1, "epsilon": config.epsilon}
    if config.optimizer == "adam_l2":
        return PenalizedAdam(penalty=decay, **options)
    return keras.optimizers.Adam(weight_decay=decay or None, **options)  # with decay it is AdamW


def _schedules(config, optimizer):
    warmup = config.warmup if config.schedule == "cosine" else None
    rate: Any = WarmupSchedule(config.learning_rate, warmup)
    if config.schedule == "plateau":
        rate = PlateauSchedule(optimizer, config.plateau_factor, config.plateau_patience)
    return [NonMonotonicTrigger(optimizer), rate] if config.optimizer == "asgd" else [rate]


def _make_batches(part, kind, ids, *arguments, devices=1, processes=SINGLE_PROCESS):
    """Creates batches; errors name the part of the corpus."""
    try:
        return kind(ids, *arguments, multiple=devices, process=(processes.index, processes.count))
    except ValueError as error:
        raise ValueError(f"the {part} text: {error}") from error


def evaluation(
    model: keras.Model,
    part: str,
    ids: np.ndarray,
    batch_size: int,
    sentences: bool = False,
    devices: int = 1,
    processes: Processes = SINGLE_PROCESS,
) -> Callable[[], float]:
    """A function that computes the mean loss over a text (tokens,), in nats: log-perplexity.

    The text is cut into `batch_size` pieces, or each sentence is read on its own. Errors name the
    `part`; all `processes` have `devices` together, which share a batch.
    """
    kind: Any
    arguments: Any
    if sentences:
        kind, arguments = SentenceBatches, (model.encode([EOS])[0], batch_size)
    else:  # each row needs two tokens
        kind, arguments = Windows, (min(batch_size, max(1, len(ids) // 2)), 70, False)
    batches = _make_batches(part, kind, ids, *arguments, devices=devices, processes=processes)
    truncated = TruncatedModel(model, batches.rows, carry=not sentences)
    truncated.compile()
    return lambda: evaluate_windows(truncated, batches)


def _in_float32(model):
    """The model or a copy that computes in float32, and a function that updates the copy."""
    if model.dtype_policy.compute_dtype == model.dtype_policy.variable_dtype:
        return model, lambda: None
    copy = type(model).from_config(model.get_config() | {"dtype": model.variable_dtype})
    copy.build()
    return copy, lambda: copy.set_weights(model.get_weights())


def train_language_model(
    output: str | Path,
    config: Any,
    corpus: Corpus,
    resume: bool = False,
    steps: int | None = None,
    log_every: int = 0,
    processes: Processes = SINGLE_PROCESS,
    initial: SentenceReader | None = None,
) -> bool:
    """Trains a language model, or resumes a run. Returns whether training is complete.

    The directory receives the files of `Trainer`, `config.json` and `vocabulary.txt`; `best.keras`
    has the best validation perplexity. A new run starts with the weights of `initial`, if given.
    """
    sentences, all_devices = config.sentences, config.devices * processes.count
    shared: dict[str, Any] = {"devices": all_devices, "processes": processes}
    kind: Any
    arguments: Any
    if sentences:
        kind, arguments = SentenceBatches, (corpus.vocabulary.index(EOS), config.batch_size, True)
    else:
        kind, arguments = Windows, (config.batch_size, config.bptt, config.variable_bptt)
    batches = _make_batches("training", kind, corpus.train, *arguments, config.seed, **shared)
    devices = DataParallel(config.devices) if all_devices > 1 else None
    with devices.scope() if devices else nullcontext():
        model = make_model(config, corpus.vocabulary)
        if initial is not None:
            copy_weights(model, initial)
        elif config.initialization != "published":
            model.initialize_output_bias(word_counts(corpus.train, len(corpus.vocabulary)))
        penalties = config.activation_regularization, config.temporal_regularization
        truncated = TruncatedModel(model, batches.rows, *penalties, carry=not sentences)
        optimizer = _optimizer(config)
        truncated.compile(devices.prepare(optimizer) if devices else optimizer)
        optimizer.build(truncated.trainable_variables)
        float32_model, update = _in_float32(model)
    with devices.computing() if devices else nullcontext():
        rows = config.batch_size if sentences else 10
        loss = evaluation(float32_model, "validation", corpus.valid, rows, sentences, **shared)

        def validate():
            update()
            return {"val_perplexity": math.exp(min(loss(), 700.0))}

        trainer = Trainer(
            truncated, batches, validate, output, config.epochs, "val_perplexity", "min",
            callbacks=[ResetStates()], schedules=_schedules(config, optimizer),
            distribute=devices.distribute if devices else None, best_model=float32_model,
            record=config.record(), verbose=processes.is_first, log_every=log_every, unit="tokens",
            processes=processes,
        )  # fmt: skip
        description = (
            f"{model.title}, {model.count_params():,} parameters, {len(corpus.train):,} tokens, "
            f"{len(corpus.vocabulary):,} words"
        )
        return train_run(trainer, config, resume, steps, description, corpus.vocabulary, [IDS])
