"""Training steps of language models of recurrent layers, with the recipe of AWD-LSTM."""

import keras
import numpy as np
from configurations import MODEL

# The published recipe, for every model here.
DROPOUTS = {
    "word_dropout": 0.1,
    "input_dropout": 0.5,
    "hidden_dropout": 0.3,
    "output_dropout": 0.45,
    "recurrent_weight_dropout": 0.45,
}
PENALTIES = (2.0, 1.0)  # on activations, and on their change
RATE, CLIP, DECAY = 30.0, 0.25, 1.2e-6


def ids(configuration, seed=0):
    """Inputs and targets, each (B, T)."""
    rng = np.random.default_rng(seed)
    shape = (2, configuration.batch, configuration.time)
    return rng.integers(0, configuration.vocabulary, shape).astype("int32")


def reader_of(name, configuration, dtype):
    """A `TruncatedModel`, and its optimizer."""
    from keras_onlstm.models import LanguageModel
    from keras_onlstm.training import AveragedSGD, TruncatedModel

    *sizes, embedding_dim = configuration.units
    model = LanguageModel(
        configuration.vocabulary,
        embedding_dim,
        sizes[0],
        len(configuration.units),
        configuration.chunk_size,
        recurrent="onlstm" if name == MODEL else "lstm",
        seed=0,
        dtype="float32" if dtype == "float32" else f"mixed_{dtype}",
        **DROPOUTS,
    )
    reader = TruncatedModel(model, configuration.batch, *PENALTIES)
    return reader, AveragedSGD(RATE, global_clipnorm=CLIP, weight_decay=DECAY)


def training_step(reader, optimizer, configuration):
    """A function that runs one training step and waits until it is done."""
    # No XLA on TensorFlow, which is the common use; JAX always compiles.
    jit = keras.backend.backend() == "jax"
    reader.compile(optimizer, jit_compile=jit)
    optimizer.build(reader.trainable_variables)
    inputs, targets = ids(configuration)
    weights = np.ones(inputs.shape, "float32")
    batch = {
        "ids": inputs,
        "mask": weights > 0,
        "rows": np.arange(configuration.batch, dtype="int32"),
    }
    return lambda: reader.train_on_batch(batch, targets, weights)
