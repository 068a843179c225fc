"""The training of a TreeLSTM on dependency trees: the model, the loop, its evaluation."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.models import BidirectionalLSTM, TreeLSTM
from keras_onlstm.text.vectors import read_vectors
from keras_onlstm.training.adam import FusedAdam
from keras_onlstm.training.corpora import VOCABULARY, check_same_vocabulary, write_vocabulary
from keras_onlstm.training.halving import HalvingWithRollback
from keras_onlstm.training.language_models import learning_rate
from keras_onlstm.training.noise_contrastive import NoiseContrastive
from keras_onlstm.training.runs import Configuration, has_begun, running
from keras_onlstm.training.trainer import Trainer
from keras_onlstm.training.tree_corpora import SEQUENTIAL, TreeCorpus
from keras_onlstm.training.trees import TreeBatches, TreeLearner, evaluate_trees

__all__ = ["make_tree_model", "train_tree_model", "tree_evaluation"]


def _counts(model, layouts):
    """How often each word is a target, and `<root>` once a sentence; none is 0."""
    ids = np.concatenate(list(map(model.targets, layouts)))
    counts = np.bincount(ids, minlength=len(model.vocabulary))
    counts[model.root] = len(layouts)
    return np.maximum(counts, 1)


def make_tree_model(
    configuration: Configuration, vocabulary: Sequence[str], trees: Sequence[DependencyTree]
) -> tuple[TreeLSTM, TreeLearner, TreeBatches]:
    """The model of a run, what trains it, and its batches.

    Args:
        configuration: whose `arguments` have `seed`, `trees`, `left_dependents` and `vectors`, and
            whose `values` are of `TREE_SETTINGS`.
        vocabulary: list of words.
        trees: list of `DependencyTree` to train on.

    Returns:
        `TreeLSTM` or `BidirectionalLSTM`, compiled `TreeLearner`, and `TreeBatches`.

    Raises:
        ValueError: if a sequential model is to read left dependents.
    """
    arguments, values = configuration.arguments, configuration.values
    keras.utils.set_random_seed(arguments["seed"])
    sizes = len(vocabulary), values["embedding_dim"], values["units"], values["num_layers"]
    options = {
        "dropout": values["output_dropout"],
        "input_dropout": values["input_dropout"],
        "vocabulary": vocabulary,
        "seed": arguments["seed"],
        "output_bias": not values["noise"],
    }
    shape = arguments["trees"]
    if arguments["left_dependents"] and shape in SEQUENTIAL:
        raise ValueError("--left-dependents: a sequential model has none to read.")
    if shape == "bidirectional":
        model: TreeLSTM = BidirectionalLSTM(*sizes, **options)
    else:
        model = TreeLSTM(
            *sizes,
            left_dependents=arguments["left_dependents"],
            left_layers=values["left_layers"],
            sequential=shape in ("chain", "sentence"),
            **options,
        )
    model.build()
    if arguments["vectors"] is not None:
        _put_vectors(model, arguments["vectors"])
    layouts = [model.lay_out(tree) for tree in trees]
    noise = None
    if values["noise"]:
        learn = None if values["learn"] == "nothing" else values["learn"]
        counts = _counts(model, layouts)
        noise = NoiseContrastive(counts, values["noise"], ln_z=values["ln_z"], learn=learn)
    batches = TreeBatches(
        model, layouts, values["batch_size"], shuffle=True, seed=arguments["seed"], noise=noise
    )
    is_sgd = values["optimizer"] == "sgd"
    learner = TreeLearner(model, noise, values["batch_size"] if is_sgd else None)
    kind = keras.optimizers.SGD if is_sgd else FusedAdam
    optimizer = kind(values["learning_rate"], global_clipnorm=values["clipnorm"])
    learner.compile(optimizer)
    optimizer.build(learner.trainable_variables)
    return model, learner, batches


def _put_vectors(model, path):
    """Puts the word vectors of a file in the place of those drawn, where it has them."""
    size = model.embeddings.shape[1]
    found = read_vectors(path, {word.lower() for word in model.vocabulary}, size)
    table = keras.ops.convert_to_numpy(model.embeddings).copy()
    for place, word in enumerate(model.vocabulary):
        if word.lower() in found:
            table[place] = found[word.lower()]
    model.embeddings.assign(table)


def tree_evaluation(
    model: TreeLSTM, trees: Sequence[DependencyTree], batch_size: int = 64
) -> Callable[[], float]:
    """A function that measures the mean loss over the words of trees, by the full softmax.

    Args:
        model: `TreeLSTM` with a vocabulary.
        trees: list of `DependencyTree`, projective.
        batch_size: positive integer, trees in a batch.

    Returns:
        Function without arguments that returns the mean of the negative log-probabilities, in nats.

    Example:

    >>> import math
    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import TreeLSTM
    >>> from keras_onlstm.training.tree_models import tree_evaluation
    >>> model = TreeLSTM(3, embedding_dim=4, units=8, vocabulary=["<unk>", "<root>", "a"])
    >>> measure = tree_evaluation(model, [chain(["a", "b", "a"])])
    >>> 2 < math.exp(measure()) < 4  # it has not learnt anything yet
    True
    """
    batches = TreeBatches(model, [model.lay_out(tree) for tree in trees], batch_size)
    learner = TreeLearner(model)
    learner.compile()
    return lambda: evaluate_trees(learner, batches)


def train_tree_model(
    output: str | Path,
    configuration: Configuration,
    corpus: TreeCorpus,
    resume: bool = False,
    steps: int | None = None,
) -> bool:
    """Trains a TreeLSTM in the directory of a run, or goes on with it.

    The directory receives what `Trainer` writes, `config.json` and `vocabulary.txt`; `best.keras`
    is the model of the best perplexity on the validation trees.

    Args:
        output: the directory.
        configuration: as in `make_tree_model`, whose `arguments` have `data` too.
        corpus: `TreeCorpus`.
        resume: whether to go on with the run.
        steps: after how many batches to stop, or `None`.

    Returns:
        Whether training is complete.

    Raises:
        BlockingIOError: if another process is at work in the directory.
        FileExistsError: if a run, or anything else, is there before a new one.
        OSError: if a file cannot be written.
        ValueError: if the trees are others than those the run began with, or its checkpoint is
            damaged or of another run.
    """
    arguments, values = configuration.arguments, configuration.values
    model, learner, batches = make_tree_model(configuration, corpus.vocabulary, corpus.train)
    measure = tree_evaluation(model, corpus.validation, values["batch_size"])

    def validate() -> dict[str, float]:
        entropy = measure()
        return {"val_entropy": entropy, "val_perplexity": math.exp(min(entropy, 700.0))}

    trainer = Trainer(
        learner,
        batches,
        validate,
        output,
        epochs=values["epochs"],
        monitor="val_perplexity",
        mode="min",
        callbacks=[HalvingWithRollback()] if values["schedule"] == "plateau" else [],
        learning_rate=learning_rate(values, batches),
        saved=model,
        record={**configuration.record, "left_dependents": arguments["left_dependents"]},
        unit="words",
    )
    with running(output, configuration, resume):
        if resume and has_begun(output, prepared=[VOCABULARY]):
            check_same_vocabulary(output, corpus.vocabulary, arguments["data"])
            trainer.resume()
        else:
            write_vocabulary(output, corpus.vocabulary)
        words = sum(map(len, corpus.train))
        print(
            f"{model.title}, {model.count_params():,} parameters, {len(corpus.train):,} trees, "
            f"{words:,} words, {len(corpus.vocabulary):,} of them different",
            flush=True,
        )
        trainer.run(steps)
    return trainer.progress.epoch == values["epochs"] or learner.stop_training
