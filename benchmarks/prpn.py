"""Training steps of PRPN with dropout, softmax, gradient clipping and Adam."""

import keras
from configurations import KERAS_LSTM, REFERENCE_LOOP, WORD_BY_WORD, variant
from keras import ops

from keras_onlstm.models import PRPN
from keras_onlstm.models.prpn import PRPNOutput
from keras_onlstm.recurrence.engine import scan
from keras_onlstm.training import PenalizedAdam, TruncatedModel

# The published recipe.
DROPOUTS = {"output_dropout": 0.7, "inner_dropout": 0.5, "recurrent_dropout": 0.5}
LEARNING_RATE, CLIPNORM, PENALTY = 3e-3, 1.0, 1e-6


class KerasReading(keras.layers.Layer):
    """Replaces the reading network by Keras's LSTM layers, which have no memory of past states."""

    def __init__(self, network, units, **kwargs):
        super().__init__(**kwargs)
        self.start = network.start
        self.layers = [
            keras.layers.LSTM(size, return_sequences=True, dtype=self.dtype_policy)
            for size in units
        ]

    def build(self, x_shape, *_):
        for layer in self.layers:
            layer.build(x_shape)
            x_shape = (*x_shape[:2], layer.units)
        self.built = True

    def call(self, x, gates, states=None, training=False, word_mask=None):
        for layer in self.layers:
            x = layer(x, training=training)
        return x, states


class WordByWord(PRPN):
    """Runs all three networks in one loop over time, as in the published equations."""

    def hidden(self, ids, states=None, mask=None, training=False):
        structure = states

        def step(carry, row):
            states = keras.tree.pack_sequence_as(structure, list(carry))
            ids = ops.expand_dims(row[0], 1)
            result = super(WordByWord, self).hidden(ids, states, training=training)
            outputs = result.output[:, 0], result.raw_output[:, 0]
            return tuple(keras.tree.flatten(result.states)), outputs, ()

        config, dtype = self.get_config(), self.compute_dtype
        specs = [((ids.shape[0], config[name]), dtype) for name in ("embedding_dim", "units")]
        initial = tuple(keras.tree.flatten(states))
        carry, rows, _ = scan(step, initial, (ops.transpose(ids),), specs)
        output, raw = (ops.transpose(row, (1, 0, 2)) for row in rows)  # (B, T, U)
        final = keras.tree.pack_sequence_as(structure, list(carry))
        return PRPNOutput(None, final, raw, output, {})


def build(name, configuration, dtype):
    """Builds a `TruncatedModel` and its optimizer."""
    _, options = variant(name)
    model_class = WordByWord if WORD_BY_WORD in options else PRPN
    units = configuration.units
    model = model_class(
        configuration.vocabulary,
        configuration.input_dim,
        units[0],
        len(units),
        seed=0,
        dtype="float32" if dtype == "float32" else f"mixed_{dtype}",
        **DROPOUTS,
    )
    if KERAS_LSTM in options:
        model.reading_network = KerasReading(model.reading_network, units, dtype=model.dtype_policy)
    if REFERENCE_LOOP in options or model_class is WordByWord:
        for layer in model.reading_network.layers:
            layer.fused = False
    optimizer = PenalizedAdam(
        LEARNING_RATE, penalty=PENALTY, beta_1=0.0, epsilon=1e-9, global_clipnorm=CLIPNORM
    )
    return TruncatedModel(model, configuration.batch), optimizer
