"""Training a language model on a corpus, for the examples that need one."""

import math
from contextlib import nullcontext
from pathlib import Path

import keras
import numpy as np
from _common import has_begun, info, load_model, running

from keras_onlstm.datasets import penn_treebank
from keras_onlstm.files import replacing
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.starts import STARTS
from keras_onlstm.reading import Choice, Integer, Number, read_text
from keras_onlstm.sentences import check_vocabulary
from keras_onlstm.training import (
    AveragedAdam,
    AveragedSGD,
    NonMonotonicTrigger,
    ResetStates,
    Setting,
    Trainer,
    TruncatedModel,
    Windows,
    evaluate_windows,
)
from keras_onlstm.training.devices import DataParallel

NAMES = {"onlstm": "ON-LSTM", "lstm": "LSTM"}
VOCABULARY = "vocabulary.txt"
IDS = "ids"  # where the ids of large texts are
MAPPED = 100_000_000  # bytes of text from which on ids are kept in files instead of memory
_MODEL = ("embedding_dim", "units", "num_layers", "chunk_size", "tie_weights", "word_dropout",
          "input_dropout", "hidden_dropout", "output_dropout",
          "recurrent_weight_dropout", "start")  # fmt: skip
_RATE = Number(0.0, 1.0)
SETTINGS = {
    "embedding_dim": Setting(Integer(1), "size of word vectors, and of the last layer if tied"),
    "units": Setting(Integer(1), "size of the other layers"),
    "num_layers": Setting(Integer(1, 100), "recurrent layers"),
    "chunk_size": Setting(Integer(1), "units that share a value of the master gates"),
    "tie_weights": Setting(bool, "one matrix for embedding and softmax"),
    "word_dropout": Setting(_RATE, "share of words dropped; more of each for more epochs"),
    "input_dropout": Setting(_RATE, "share of the word vectors' features dropped"),
    "hidden_dropout": Setting(_RATE, "the same between layers"),
    "output_dropout": Setting(_RATE, "the same after the last layer"),
    "recurrent_weight_dropout": Setting(_RATE, "share of the recurrent kernels dropped"),
    "start": Setting(Choice(STARTS), "scaled: at the words' frequencies, with gates that move; "
                                     "published: as in the published code"),
    "activation": Setting(Number(0.0), "strength of the penalty on the last output"),
    "temporal": Setting(Number(0.0), "strength of that on its change from word to word"),
    "epochs": Setting(Integer(1), "epochs"),
    "batch_size": Setting(Integer(1), "sequences read side by side"),
    "window": Setting(Integer(10), "words of back-propagation"),
    "jitter": Setting(bool, "whether the window varies"),
    "optimizer": Setting(Choice(("sgd", "plateau", "adam")), "sgd: averaged when validation stops "
                         "falling (the published recipe); plateau: a fourth of the rate then; "
                         "adam: up, and down along a cosine"),
    "learning_rate": Setting(Number(0.0), "learning rate, of adam the highest"),
    "warmup": Setting(_RATE, "share of all steps in which that of adam rises"),
    "clip": Setting(Number(0.0), "largest norm of the gradient"),
    "decay": Setting(Number(0.0), "decay of the weights"),
}  # fmt: skip
# Where a preset does not say.
VALUES = {"num_layers": 3, "tie_weights": True, "start": "scaled", "warmup": 0.05}


def load_language_model(run):
    """The best model of a run, which reads and scores sentences."""
    model = load_model(run, LanguageModel)
    check_vocabulary(model.vocabulary, run)
    return model


def report_tokens(every=10_000_000):
    """A function of the number of tokens so far that prints it now and then."""
    reported = 0

    def progress(tokens):
        nonlocal reported
        if tokens < reported:  # another file
            reported = 0
        if tokens - reported >= every:
            info(f"  {tokens:,} tokens")
            reported = tokens

    return progress


def read_corpus(directory, run, vocabulary=None, max_words=None, level="word"):
    """`penn_treebank.load`, of large texts through files in the run's directory."""
    size = sum(path.stat().st_size for path in Path(directory).glob("*.txt"))
    cache = Path(run) / IDS if size > MAPPED else None
    if cache:
        cache.mkdir(parents=True, exist_ok=True)
    progress = report_tokens() if cache else None
    return penn_treebank.load(directory, vocabulary, max_words, level, cache, progress)


def windows_of(part, ids, *arguments):
    """`Windows`, whose complaints name the part of the corpus."""
    try:
        return Windows(ids, *arguments)
    except ValueError as error:
        raise ValueError(f"the {part} text: {error}") from error


def evaluation(model, part, ids, batch_size):
    """A function that measures the mean loss over a whole text."""
    windows = windows_of(part, ids, batch_size, 70, False)
    reader = TruncatedModel(model, batch_size)
    reader.compile()
    return lambda: evaluate_windows(reader, windows)


def check_devices(values, devices):
    """Refuses more devices than a batch has sequences."""
    if devices > values["batch_size"]:
        raise ValueError(
            f"--devices {devices}: the batch has but {values['batch_size']} sequences to share."
        )


def word_counts(ids, words, block=10_000_000):
    """How often each of so many words occurs in a text, which may be larger than memory."""
    parts = [ids[start : start + block] for start in range(0, len(ids), block)]
    return sum(np.bincount(part, minlength=words) for part in parts)


def make_model(arguments, values, corpus, rows, devices=None):
    vocabulary = corpus.vocabulary
    keras.utils.set_random_seed(arguments["seed"])
    model = LanguageModel(
        len(vocabulary),
        recurrent=arguments["recurrent"],
        vocabulary=vocabulary,
        seed=arguments["seed"],
        **{name: values[name] for name in _MODEL},
    )
    if values["start"] != "published":
        model.start_at_frequencies(word_counts(corpus.train, len(vocabulary)))
    reader = TruncatedModel(model, rows, values["activation"], values["temporal"])
    kinds = {"sgd": AveragedSGD, "plateau": AveragedSGD, "adam": AveragedAdam}
    optimizer = kinds[values["optimizer"]](
        values["learning_rate"],
        global_clipnorm=values["clip"],
        weight_decay=values["decay"] or None,
    )
    reader.compile(devices.prepare(optimizer) if devices else optimizer)
    optimizer.build(reader.trainable_variables)
    return model, reader


def learning_rate(values, windows):
    """The rate of every batch: that of the values, times the length of its window.

    `None` where it falls after epochs instead.
    """
    if values["optimizer"] == "plateau":
        return None

    def rate(epoch, batch):
        scale = windows.length(batch) / values["window"]
        if values["optimizer"] == "adam":
            done = (epoch + batch / len(windows)) / values["epochs"]
            scale *= min(done / (values["warmup"] or 1e-9), 0.5 + 0.5 * math.cos(math.pi * done))
        return values["learning_rate"] * scale

    return rate


def check_same_vocabulary(run, vocabulary, data):
    path = Path(run) / VOCABULARY
    text = read_text(path, "Restore it, or start the run anew.")
    if text != "".join(f"{word}\n" for word in vocabulary):
        raise ValueError(
            f"{path}: is not the vocabulary of {data}: the files changed since the run began. "
            "Restore them, or start a run with another --output."
        )


def train_model(output, arguments, values, corpus, resume, steps):
    """Trains a language model in the directory of a run, or goes on with it.

    Args:
        output: the directory.
        arguments: dictionary of `recurrent`, `seed`, `devices`, `data` and what else the script
            keeps.
        values: dictionary of what is in `SETTINGS`.
        corpus: `penn_treebank.Corpus`.
        resume: whether to go on with the run.
        steps: after how many batches to stop, or `None`.

    Returns:
        Whether training is complete.
    """
    devices = DataParallel(arguments["devices"]) if arguments["devices"] > 1 else None
    shape, each = (values["batch_size"], values["window"], values["jitter"]), arguments["devices"]
    windows = windows_of("training", corpus.train, *shape, arguments["seed"], each)
    with devices.scope() if devices else nullcontext():
        model, reader = make_model(arguments, values, corpus, windows.rows, devices)
    measure = evaluation(model, "validation", corpus.valid, -(-10 // each) * each)
    callbacks = [ResetStates()]
    if values["optimizer"] == "sgd":
        callbacks.append(NonMonotonicTrigger("val_perplexity"))
    if values["optimizer"] == "plateau":
        callbacks.append(
            keras.callbacks.ReduceLROnPlateau(
                "val_perplexity", factor=0.25, patience=1, min_delta=0.0, mode="min"
            )
        )
    trainer = Trainer(
        reader,
        windows,
        lambda: {"val_perplexity": math.exp(min(measure(), 700.0))},
        output,
        epochs=values["epochs"],
        monitor="val_perplexity",
        mode="min",
        callbacks=callbacks,
        learning_rate=learning_rate(values, windows),
        place=devices.place if devices else None,
        saved=model,
        record={**values, **{name: arguments[name] for name in ("recurrent", "seed")}},
        unit="tokens",
    )
    with running(output, arguments, resume, prepared=[IDS], values=values):
        if resume and has_begun(output, prepared=[IDS, VOCABULARY]):
            check_same_vocabulary(output, corpus.vocabulary, arguments["data"])
            trainer.resume()
        else:
            text = "".join(f"{word}\n" for word in corpus.vocabulary)
            with replacing(Path(output) / VOCABULARY) as temporary:
                temporary.write_text(text, encoding="utf-8")
        info(
            f"{NAMES[arguments['recurrent']]}, {model.count_params():,} parameters, "
            f"{len(corpus.train):,} tokens, {len(corpus.vocabulary):,} words"
        )
        trainer.run(steps)
    return trainer.progress.epoch == values["epochs"]
