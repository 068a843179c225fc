"""Training steps of recurrent language models with the recipe of AWD-LSTM."""

import keras
import numpy as np
from configurations import MODEL

# The published recipe, used for all models.
DROPOUTS = {
    "word_dropout": 0.1,
    "input_dropout": 0.5,
    "hidden_dropout": 0.3,
    "output_dropout": 0.45,
    "recurrent_weight_dropout": 0.45,
}
PENALTIES = (2.0, 1.0)  # activation and temporal regularization
LEARNING_RATE, CLIPNORM, WEIGHT_DECAY = 30.0, 0.25, 1.2e-6


def ids(configuration, seed=0):
    """Inputs and targets, each (B, T)."""
    rng = np.random.default_rng(seed)
    shape = (2, configuration.batch, configuration.time)
    return rng.integers(0, configuration.vocabulary, shape).astype("int32")


def build(name, configuration, dtype):
    """Builds a `TruncatedModel` and its optimizer."""
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
    return reader, AveragedSGD(LEARNING_RATE, global_clipnorm=CLIPNORM, weight_decay=WEIGHT_DECAY)


def training_step(reader, optimizer, configuration):
    """Returns a function that runs one training step and waits for it."""
    # XLA compiles only on JAX, the default in training too.
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
