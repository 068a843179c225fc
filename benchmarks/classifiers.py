"""Training steps of a text classifier: embedding, a small bidirectional layer, Adam."""

import keras
import numpy as np
from configurations import KERAS_LSTM, variant

import keras_onlstm


def batch(configuration, masks, seed=0):
    """Random ids (B, T) and labels (B, 1). With `masks` the ids are padded with 0."""
    rng = np.random.default_rng(seed)
    size, time = configuration.batch, configuration.time
    ids = rng.integers(1, configuration.vocabulary, (size, time)).astype("int32")
    if masks:
        lengths = rng.integers(time // 4, time + 1, size)
        ids[np.arange(time) >= lengths[:, None]] = 0
    return ids, rng.integers(0, 2, (size, 1)).astype("float32")


def training_step(name, configuration, dtype):
    """Returns a function that runs one training step and waits for it."""
    kind, options = variant(name)
    masks = "no masks" not in options
    (units,) = configuration.units
    policy = "float32" if dtype == "float32" else f"mixed_{dtype}"
    if kind == KERAS_LSTM:
        layer = keras.layers.LSTM(units, dtype=policy)
    else:
        layer = keras_onlstm.ONLSTM(units, configuration.chunk_size, dtype=policy)
    embedding = keras.layers.Embedding(
        configuration.vocabulary, configuration.input_dim, mask_zero=masks
    )
    model = keras.Sequential(
        [
            keras.layers.Input((configuration.time,)),
            embedding,
            keras.layers.Bidirectional(layer),
            keras.layers.Dense(1, activation="sigmoid", dtype="float32"),
        ]
    )
    # JAX is always compiled, TensorFlow only on request. PyTorch runs in eager mode.
    jit = keras.backend.backend() == "jax" or "jit_compile" in options
    model.compile(
        "adam", "binary_crossentropy", jit_compile=jit, run_eagerly="run_eagerly" in options
    )
    ids, labels = batch(configuration, masks)
    return lambda: model.train_on_batch(ids, labels)
