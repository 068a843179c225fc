"""What Keras does not export, imported in this one place.

`keras.layers.RNN` draws dropout masks ahead of its loop, once a sequence, only for cells that are
instances of `DropoutRNNCell` (Keras 3.15). Without it a cell would draw inside the loop: another
mask every step, and on JAX a random state that leaks out of the trace. `tests/test_cell.py` fails
if the class moves or `RNN` stops asking for it.

The layers inside a model, inside its layers and so on, Keras lists by a method with an underscore;
`tests/test_graphs.py` fails if it goes.
"""

from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

__all__ = ["DropoutRNNCell", "layers_within"]


def layers_within(model):
    """A model and all layers below it: list."""
    return model._flatten_layers()
