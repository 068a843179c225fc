"""The version of the distribution, defined only here.

`setup.cfg` reads the assignment from the syntax tree, so add nothing else here: reading the
version must not import Keras.
"""

__version__ = "0.1.0"
