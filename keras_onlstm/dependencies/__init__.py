"""Dependency trees: how they are generated from the top down. No Keras."""

from keras_onlstm.dependencies.tree import DependencyTree, Edge, Step, chain, random_tree

__all__ = ["DependencyTree", "Edge", "Step", "chain", "random_tree"]
