"""The training of a language model on a corpus: the model, the loop, its evaluation.

A script chooses values for the `SETTINGS` of `language_model_settings` and a corpus;
`train_language_model` does the rest in the directory of a run, and goes on with it wherever it was
stopped.
"""

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path

import keras
import numpy as np

from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.text.corpus import Corpus
from keras_onlstm.text.vocabulary import EOS
from keras_onlstm.training.adam import FusedAdam, PenalizedAdam
from keras_onlstm.training.architectures import architecture, take_weights
from keras_onlstm.training.averaging import AveragedSGD, NonMonotonicTrigger
from keras_onlstm.training.corpora import (
    IDS,
    VOCABULARY,
    check_same_vocabulary,
    word_counts,
    write_vocabulary,
)
from keras_onlstm.training.devices import DataParallel
from keras_onlstm.training.hosts import ALONE, Hosts
from keras_onlstm.training.runs import Configuration, has_begun, running
from keras_onlstm.training.sentences import SentenceBatches
from keras_onlstm.training.trainer import Trainer
from keras_onlstm.training.trees import TreeBatches
from keras_onlstm.training.truncated import ResetStates, TruncatedModel, evaluate_windows
from keras_onlstm.training.windows import Windows

__all__ = ["evaluation", "learning_rate", "make_model", "train_language_model"]


def _batches_of(part, kind, ids, *arguments, devices=1, hosts=ALONE):
    """Batches of a kind, whose complaints name the part of the corpus."""
    try:
        return kind(ids, *arguments, multiple=devices, host=(hosts.index, hosts.count))
    except ValueError as error:
        raise ValueError(f"the {part} text: {error}") from error


def evaluation(
    model: keras.Model,
    part: str,
    ids: np.ndarray,
    batch_size: int,
    sentences: bool = False,
    devices: int = 1,
    hosts: Hosts = ALONE,
) -> Callable[[], float]:
    """A function that measures the mean loss over a whole text, read in one pass.

    Args:
        model: `LanguageModel`, or another that `TruncatedModel` takes.
        part: name of the text, for messages: `"validation"`, `"test"`.
        ids: integers (tokens,), the text.
        batch_size: in how many pieces it is read, side by side.
        sentences: whether each sentence is read on its own instead, so many side by side.
        devices: how many share a batch, those of all hosts together.
        hosts: `Hosts` that read it together.

    Returns:
        Function without arguments that returns the mean of the negative log-probabilities, in nats:
        the perplexity's logarithm.

    Raises:
        ValueError: if the text is too short.

    Example:

    >>> import math
    >>> import numpy as np
    >>> from keras_onlstm.models import LanguageModel
    >>> from keras_onlstm.training.language_models import evaluation
    >>> model = LanguageModel(4, embedding_dim=8, units=16, chunk_size=4)
    >>> measure = evaluation(model, "test", np.arange(200) % 4, batch_size=2)
    >>> 3 < math.exp(measure()) < 5  # it has not learnt anything yet
    True
    """
    of_many = {"devices": devices, "hosts": hosts}
    if sentences:
        eos = model.encode([EOS])[0]
        batches = _batches_of(part, SentenceBatches, ids, eos, batch_size, **of_many)
    else:
        batches = _batches_of(part, Windows, ids, batch_size, 70, False, **of_many)
    reader = TruncatedModel(model, batches.rows, carry=not sentences)
    reader.compile()
    return lambda: evaluate_windows(reader, batches)


def make_model(
    configuration: Configuration,
    corpus: Corpus,
    rows: int,
    devices: DataParallel | None = None,
    initial: SentenceReader | None = None,
) -> tuple[SentenceReader, TruncatedModel]:
    """The language model of a run, and what trains it.

    Args:
        configuration: whose `arguments` have `recurrent` and `seed`, and whose `values` are of
            `SETTINGS`; or `model` `"prpn"` and values of `PRPN_SETTINGS`. With `sentences` among
            the arguments each sentence is read on its own.
        corpus: whose vocabulary the model gets, and of whose training text the frequencies.
        rows: how many sequences are read side by side.
        devices: that share a batch, or `None`.
        initial: a model whose weights this one starts with, or `None`: as `start` of the values
            says.

    Returns:
        `LanguageModel` or `PRPN`, and compiled `TruncatedModel`.

    Raises:
        ValueError: if the model to start from is of another kind, or of other sizes.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.text.corpus import Corpus
    >>> from keras_onlstm.training.language_model_settings import VALUES
    >>> from keras_onlstm.training.language_models import make_model
    >>> from keras_onlstm.training.runs import Configuration
    >>> values = VALUES | {
    ...     "embedding_dim": 8,
    ...     "units": 16,
    ...     "chunk_size": 4,
    ...     "word_dropout": 0.0,
    ...     "input_dropout": 0.0,
    ...     "hidden_dropout": 0.0,
    ...     "output_dropout": 0.0,
    ...     "recurrent_weight_dropout": 0.0,
    ...     "learning_rate": 1e-3,
    ...     "clipnorm": 0.25,
    ... }
    >>> ids = np.array([2, 0, 2, 0])
    >>> corpus = Corpus(["<eos>", "<unk>", "a"], ids, ids, ids)
    >>> configuration = Configuration({"recurrent": "onlstm", "seed": 0}, values)
    >>> model, reader = make_model(configuration, corpus, rows=2)
    >>> model.vocabulary, reader.batch_size
    (['<eos>', '<unk>', 'a'], 2)
    """
    arguments, values = configuration.arguments, configuration.values
    vocabulary = corpus.vocabulary
    keras.utils.set_random_seed(arguments["seed"])
    model = architecture(arguments).make(vocabulary, arguments, values)
    if initial is not None:
        take_weights(model, initial)
    elif values["start"] != "published":
        model.start_at_frequencies(word_counts(corpus.train, len(vocabulary)))
    carry = not arguments.get("sentences")
    penalties = values["activation_regularization"], values["temporal_regularization"]
    reader = TruncatedModel(model, rows, *penalties, carry)
    optimizer = _optimizer(values)
    reader.compile(devices.prepare(optimizer) if devices else optimizer)
    optimizer.build(reader.trainable_variables)
    return model, reader


def _in_float32(model):
    """The model, or one that computes in 32 bits, and a function that gives it the weights."""
    if model.dtype_policy.compute_dtype == model.dtype_policy.variable_dtype:
        return model, lambda: None
    other = type(model).from_config(model.get_config() | {"dtype": model.variable_dtype})
    other.build()
    return other, lambda: other.set_weights(model.get_weights())


def _optimizer(values):
    name, decay = values["optimizer"], values["weight_decay"]
    options = {"learning_rate": values["learning_rate"], "global_clipnorm": values["clipnorm"]}
    if name in ("sgd", "asgd"):
        kind = AveragedSGD if name == "asgd" else keras.optimizers.SGD
        return kind(weight_decay=decay or None, **options)
    options |= {"beta_1": values["beta_1"], "epsilon": values["epsilon"]}
    if name == "adam_l2":
        return PenalizedAdam(penalty=decay, **options)
    if name == "adam" and decay:
        raise ValueError(f"weight_decay={decay} needs optimizer=adamw, adam_l2, sgd or asgd.")
    return FusedAdam(weight_decay=decay or None, **options)


def learning_rate(
    values: Mapping, windows: Windows | SentenceBatches | TreeBatches
) -> Callable[[int, int], float] | None:
    """The rate of every batch: that of the values, times the length of its window.

    Args:
        values: dictionary of what is in `SETTINGS`.
        windows: `Windows`, `SentenceBatches` or `TreeBatches` of the training text.

    Returns:
        Function of epoch and batch, both from 0, as `Trainer` takes it; `None` for the schedule
        `plateau`, which changes the rate of the optimizer after epochs.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training import Windows
    >>> from keras_onlstm.training.language_models import learning_rate
    >>> windows = Windows(np.arange(101), 1, window=10, jitter=False)
    >>> values = {"schedule": "cosine", "learning_rate": 0.1, "warmup": 0.5}
    >>> rate = learning_rate(values | {"epochs": 1}, windows)
    >>> [round(rate(0, batch), 3) for batch in range(10)]
    [0.0, 0.02, 0.04, 0.06, 0.065, 0.05, 0.035, 0.021, 0.01, 0.002]
    """
    if values["schedule"] == "plateau":
        return None

    def rate(epoch, batch):
        scale = windows.share(batch)
        if values["schedule"] == "cosine":
            done = (epoch + batch / len(windows)) / values["epochs"]
            scale *= min(done / (values["warmup"] or 1e-9), 0.5 + 0.5 * math.cos(math.pi * done))
        return values["learning_rate"] * scale

    return rate


def _callbacks(values):
    callbacks = [ResetStates()]
    if values["optimizer"] == "asgd":
        callbacks.append(NonMonotonicTrigger("val_perplexity"))
    if values["schedule"] == "plateau":
        callbacks.append(
            keras.callbacks.ReduceLROnPlateau(
                "val_perplexity",
                factor=values["plateau_factor"],
                patience=values["plateau_patience"],
                min_delta=0.0,
                mode="min",
            )
        )
    return callbacks


def _training_batches(corpus, values, seed, sentences, **of_many):
    rows = values["batch_size"]
    if sentences:
        shape = corpus.vocabulary.index(EOS), rows, True
        return _batches_of("training", SentenceBatches, corpus.train, *shape, seed, **of_many)
    shape = rows, values["bptt"], values["variable_bptt"]
    return _batches_of("training", Windows, corpus.train, *shape, seed, **of_many)


def train_language_model(
    output: str | Path,
    configuration: Configuration,
    corpus: Corpus,
    resume: bool = False,
    steps: int | None = None,
    hosts: Hosts = ALONE,
    initial: SentenceReader | None = None,
) -> bool:
    """Trains a language model in the directory of a run, or goes on with it.

    The directory receives what `Trainer` writes, `config.json` and `vocabulary.txt`; `best.keras`
    is the model of the best perplexity on the validation text.

    Args:
        output: the directory.
        configuration: as in `make_model`, whose `arguments` have `devices`, `data` and what else
            the script keeps too.
        corpus: `text.corpus.Corpus`.
        resume: whether to go on with the run.
        steps: after how many batches to stop, or `None`.
        hosts: `Hosts` that train it together, each on so many devices. The first alone writes.
        initial: as in `make_model`; of no use to a run that goes on.

    Returns:
        Whether training is complete.

    Raises:
        BlockingIOError: if another process is at work in the directory.
        FileExistsError: if a run, or anything else, is there before a new one.
        OSError: if a file cannot be written.
        ValueError: if a text is too short, the corpus is another one than the run began with, its
            checkpoint is damaged or of another run, or the model to start from is not alike.
    """
    arguments, values = configuration.arguments, configuration.values
    each, sentences = arguments["devices"] * hosts.count, bool(arguments.get("sentences"))
    of_many = {"devices": each, "hosts": hosts}
    windows = _training_batches(corpus, values, arguments["seed"], sentences, **of_many)
    devices = DataParallel(arguments["devices"]) if each > 1 else None
    with devices.scope() if devices else nullcontext():
        model, reader = make_model(configuration, corpus, windows.rows, devices, initial)
        saved, update = _in_float32(model)
    with ExitStack() as stack:
        if devices:
            stack.enter_context(devices.computing())
        rows = values["batch_size"] if sentences else 10
        measure = evaluation(saved, "validation", corpus.valid, rows, sentences, **of_many)

        def validate():
            update()
            return {"val_perplexity": math.exp(min(measure(), 700.0))}

        trainer = Trainer(
            reader,
            windows,
            validate,
            output,
            epochs=values["epochs"],
            monitor="val_perplexity",
            mode="min",
            callbacks=_callbacks(values),
            learning_rate=learning_rate(values, windows),
            place=devices.place if devices else None,
            saved=saved,
            record=configuration.record,
            verbose=hosts.is_first,
            unit="tokens",
            hosts=hosts,
        )
        if hosts.is_first:
            stack.enter_context(running(output, configuration, resume, prepared=[IDS]))
        if hosts.count > 1:  # JAX may abort the process
            print(
                f"{output}: if a host ends, the others end too. To resume, start all again with "
                "--resume.",
                file=sys.stderr,
                flush=True,
            )
        begun = [IDS, VOCABULARY]
        if hosts.of_first(lambda: resume and has_begun(output, prepared=begun)):
            check_same_vocabulary(output, corpus.vocabulary, arguments["data"])
            trainer.resume()
        elif hosts.is_first:
            write_vocabulary(output, corpus.vocabulary)
        print(
            f"{model.title}, {model.count_params():,} parameters, "
            f"{len(corpus.train):,} tokens, {len(corpus.vocabulary):,} words",
            flush=True,
        )
        trainer.run(steps)
    return trainer.progress.epoch == values["epochs"]
