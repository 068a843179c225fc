"""Dependency trees: how they are generated from the top down, and drawn. No Keras."""

from keras_onlstm.dependencies.drawings import draw, page, save_picture
from keras_onlstm.dependencies.tree import DependencyTree, Edge, Step, chain, random_tree

__all__ = ["DependencyTree", "Edge", "Step", "chain", "draw", "page", "random_tree", "save_picture"]
