"""What Keras does not export, imported in this one place.

`keras.layers.RNN` draws dropout masks ahead of its loop, once a sequence, only for cells that are
instances of `DropoutRNNCell` (Keras 3.15). Without it a cell would draw inside the loop: another
mask every step, and on JAX a random state that leaks out of the trace. `tests/test_cell.py` fails
if the class moves or `RNN` stops asking for it.
"""

from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

__all__ = ["DropoutRNNCell"]
