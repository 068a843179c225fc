"""The Keras layers to time and their inputs, which are the same on every backend."""

import keras
import numpy as np
from configurations import CELL, KERAS_LSTM, REFERENCE

import keras_onlstm


def arrays(configuration, seed=0):
    """Random inputs (B, T, D) and weights of the loss (B, T, U)."""
    rng = np.random.default_rng(seed)
    rows = (configuration.batch, configuration.time)
    return [
        rng.normal(size=(*rows, size)).astype("float32")
        for size in (configuration.input_dim, configuration.units[-1])
    ]


def stack(name, configuration, dtype):
    """Builds a model with layers of an implementation."""
    chunk = {"chunk_size": configuration.chunk_size}
    options = {"return_sequences": True, "dtype": dtype}
    layers = []
    for units in configuration.units:
        if name == KERAS_LSTM:
            # On JAX, cuDNN's LSTM supports only float32.
            lacks_cudnn = keras.backend.backend() == "jax" and dtype != "float32"
            use_cudnn = False if lacks_cudnn else "auto"
            layers.append(keras.layers.LSTM(units, **options, use_cudnn=use_cudnn))
        elif name == CELL:
            cell = keras_onlstm.ONLSTMCell(units, **chunk, dtype=dtype)
            layers.append(keras.layers.RNN(cell, **options))
        else:
            fused = name != REFERENCE
            layers.append(keras_onlstm.ONLSTM(units, **chunk, **options, fused=fused))
    model = keras.Sequential(layers)
    model.build((configuration.batch, configuration.time, configuration.input_dim))
    return model


def product_arrays(configuration, seed=0):
    """Random factors of the matrix products: a dictionary of float32 arrays for every layer."""
    rng = np.random.default_rng(seed)
    rows = configuration.batch * configuration.time

    def draw(*shape):
        return rng.normal(size=shape).astype("float32") * 0.01

    return [
        {
            "inputs": draw(rows, d),  # (B T, D)
            "h_tm1": draw(rows, u),  # (B T, U)
            "dz": draw(rows, k),  # (B T, K)
            "kernel": draw(d, k),
            "recurrent_kernel": draw(u, k),
            "kernel_t": draw(k, u),
            "h": draw(u, configuration.batch),
            "z": draw(k, configuration.batch),
        }
        for d, u, k in configuration.layers
    ]
