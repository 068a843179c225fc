"""Dependency trees: how they are generated from the top down, scores, n-grams. No Keras."""

from keras_onlstm.dependencies.attachment import Attachment, Counts, attachment
from keras_onlstm.dependencies.ngrams import KneserNey, dependency_contexts, word_contexts
from keras_onlstm.dependencies.tree import DependencyTree, Edge, Step, chain, random_tree

__all__ = [
    "Attachment",
    "Counts",
    "DependencyTree",
    "Edge",
    "KneserNey",
    "Step",
    "attachment",
    "chain",
    "dependency_contexts",
    "random_tree",
    "word_contexts",
]
