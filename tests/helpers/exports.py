"""Models for the tests of exported files, and the outputs of Keras for sentences."""

import keras
import numpy as np

from helpers.checks import as_array
from keras_onlstm.models import PRPN, LanguageModel, PairClassifier

TIMES = (1, 2, 17, 200)
LAYERS, VOCABULARY_SIZE = 2, 100
WORDS = ["<eos>", "<unk>", *(f"word{number}" for number in range(VOCABULARY_SIZE - 2))]


def with_weights(model, scale=0.4, seed=3):
    """Sets weights large enough to open and close gates, all of them different."""
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0.05, scale, w.shape) for w in model.get_weights()])
    return model


def language_model(**options):
    model = LanguageModel(VOCABULARY_SIZE, 12, 24, LAYERS, 4, seed=0, **options)
    model.build()
    return with_weights(model)


def classifier():
    model = PairClassifier(9, 7, embedding_dim=12, units=20, chunk_size=4, seed=0)
    model(pair(1, 2, 2))
    return with_weights(model)


def prpn(**options):
    """A model with open, closed and partly open gates."""
    model = PRPN(VOCABULARY_SIZE, 12, 10, LAYERS, slots=4, lookback=2, seed=0, **options)
    model.build()
    rng = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0.05, 0.4, variable.shape))
    for variable in model.non_trainable_variables:
        if "moving" in variable.name:
            variable.assign(rng.uniform(0.2, 1.5, variable.shape))
    return model


def sentences(batch, time, seed=0):
    """Ids (batch, time) and lengths (batch). The first length is `time`."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, time + 1, batch)
    lengths[0] = time
    return rng.integers(0, VOCABULARY_SIZE, (batch, time)), lengths


def pair(batch, left, right, seed=0):
    """Ids of two sentences, (batch, left) and (batch, right), padded with 0."""
    rng = np.random.default_rng(seed)
    found = []
    for time in (left, right):
        lengths = rng.integers(1, time + 1, batch)
        lengths[0] = time
        found.append(rng.integers(1, 9, (batch, time)) * (np.arange(time) < lengths[:, None]))
    return tuple(found)


def endpoints(path):
    """The endpoints of a SavedModel as functions of arrays by name."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))

    def function(signature):
        def run(**given):
            specs = signature.structured_input_signature[1]
            tensors = {name: tf.constant(given[name], spec.dtype) for name, spec in specs.items()}
            return {name: array.numpy() for name, array in signature(**tensors).items()}

        run.loaded = loaded  # a signature alone does not keep its variables
        return run

    return {name: function(signature) for name, signature in loaded.signatures.items()}


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def plain(model, **options):
    """A model as a compiled function of any sizes, because eager loops are slow."""
    import tensorflow as tf

    return tf.function(lambda *ids: model(ids if len(ids) > 1 else ids[0], **options))


def read(model, ids):
    """The outputs of Keras for whole sentences, in float64 after the logits."""
    found = plain(model, details=True)(ids)
    return {
        "log_probabilities": log_softmax(as_array(found.logits)),  # (B, T, V)
        **{f"{name}_distances": as_array(found.distances[name]) for name in model.gates},
    }


def part(read, time, lengths):
    """The part of the outputs for the first sentences and tokens; 0 beyond the lengths."""
    valid = np.arange(time) < np.asarray(lengths)[:, None]  # (B, T)
    batch = len(valid)
    found = {}
    for name, array in read.items():
        if name == "log_probabilities":
            found[name] = array[:batch, :time] * valid[:, :, None]
        else:
            found[name] = array[:batch, :, :time] * valid[:, None]
    return found


def classified(model, left, right):
    return np.exp(log_softmax(as_array(plain(model)(left, right))))


def step_by_step(run, model, ids):
    """The outputs of a graph `step` for sentences, one token after the other, like `read`."""
    first = map(keras.tree.flatten, (model.state_names, model.initial_states(len(ids))))
    states = {name: as_array(state).astype("float32") for name, state in zip(*first, strict=True)}
    rows = []
    for token in ids.T:
        found = run(ids=token, **states)
        states = {name: found[f"next_{name}"] for name in states}
        rows.append(found)
    axes = {"log_probabilities": 1, **{f"{name}_distances": 2 for name in model.gates}}
    return {name: np.stack([row[name] for row in rows], axis) for name, axis in axes.items()}
