"""The version of the distribution, in its one home.

`setup.cfg` reads the assignment from the syntax tree, so nothing else may stand here: reading the
version must not import Keras.
"""

__version__ = "0.1.0"
