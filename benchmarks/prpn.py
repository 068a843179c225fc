"""Training steps of PRPN: dropouts, softmax, clipping, Adam."""

import keras
from configurations import KERAS_LSTM, READABLE_LOOP, WORD_BY_WORD, variant
from keras import ops

from keras_onlstm.models import PRPN
from keras_onlstm.models.prpn import PRPNOutput
from keras_onlstm.recurrence.engine import scan
from keras_onlstm.training import PenalizedAdam, TruncatedModel

# The published recipe.
DROPOUTS = {"output_dropout": 0.7, "inner_dropout": 0.5, "recurrent_dropout": 0.5}
RATE, CLIP, PENALTY = 3e-3, 1.0, 1e-6


class KerasReading(keras.layers.Layer):
    """Keras's LSTM layers instead of the reading network, without a memory."""

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

    def call(self, x, gates, states=None, training=False, counts=None):
        for layer in self.layers:
            x = layer(x, training=training)
        return x, states


class WordByWord(PRPN):
    """All three networks in one loop over time, as in the published equations."""

    def hidden(self, ids, states=None, mask=None, training=False):
        outline = states

        def step(carry, row):
            states = keras.tree.pack_sequence_as(outline, list(carry))
            ids = ops.expand_dims(row[0], 1)
            result = super(WordByWord, self).hidden(ids, states, training=training)
            outputs = result.output[:, 0], result.raw_output[:, 0]
            return tuple(keras.tree.flatten(result.states)), outputs, ()

        config, dtype = self.get_config(), self.compute_dtype
        specs = [((ids.shape[0], config[name]), dtype) for name in ("embedding_dim", "units")]
        start = tuple(keras.tree.flatten(states))
        carry, rows, _ = scan(step, start, (ops.transpose(ids),), specs)
        output, raw = (ops.transpose(row, (1, 0, 2)) for row in rows)
        last = keras.tree.pack_sequence_as(outline, list(carry))
        return PRPNOutput(None, last, raw, output, {})


def reader_of(name, configuration, dtype):
    """A `TruncatedModel`, and its optimizer."""
    _, options = variant(name)
    kind = WordByWord if WORD_BY_WORD in options else PRPN
    units = configuration.units
    model = kind(
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
    if READABLE_LOOP in options or kind is WordByWord:
        for layer in model.reading_network.layers:
            layer.fused = False
    reader = TruncatedModel(model, configuration.batch)
    optimizer = PenalizedAdam(RATE, penalty=PENALTY, beta_1=0.0, epsilon=1e-9, global_clipnorm=CLIP)
    return reader, optimizer
