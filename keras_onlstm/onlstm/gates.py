"""The gates of ON-LSTM: their order and offsets, defined only here. Does not import Keras.

Axes, for the whole package: B batch, T time, D input features, U units, C units in a chunk, which
share one value of each master gate, N chunks (U / C), K gate pre-activations (2 N + 4 U).
"""

# The order of the gates in the last axis of every kernel and bias: first the gates with one value
# per chunk, then those with one per unit. It is the order of the authors' implementation, so that
# their weights only need transposing.
MASTER_GATES = ("master_input", "master_forget")
LSTM_GATES = ("output", "candidate", "input", "forget")
GATES = MASTER_GATES + LSTM_GATES


def gate_width(units: int, chunk_size: int) -> int:
    """K, the number of gate pre-activations: `4 * units + 2 * units // chunk_size`."""
    return 4 * units + 2 * (units // chunk_size)


def gate_offsets(units: int, chunk_size: int) -> dict[str, slice]:
    """The slice of each gate in the last axis of a kernel or bias, by name.

    >>> from keras_onlstm.onlstm.gates import gate_offsets
    >>> gate_offsets(units=6, chunk_size=3)["output"]
    slice(4, 10, None)
    """
    offsets, start = {}, 0
    for name in GATES:
        stop = start + (units // chunk_size if name in MASTER_GATES else units)
        offsets[name] = slice(start, stop)
        start = stop
    return offsets


def lstm_offset(units: int, chunk_size: int) -> slice:
    """The slice of all LSTM gates, 4 U, in the last axis of a kernel or bias."""
    offsets = gate_offsets(units, chunk_size)
    return slice(offsets[LSTM_GATES[0]].start, offsets[LSTM_GATES[-1]].stop)
