"""Dependency trees: top-down generation, scores, n-grams, drawings. Without Keras."""

from keras_onlstm.dependencies.attachment import Attachment, Counts, attachment
from keras_onlstm.dependencies.constituents import from_constituents
from keras_onlstm.dependencies.drawings import draw, page, save_picture
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
    "draw",
    "from_constituents",
    "page",
    "random_tree",
    "save_picture",
    "word_contexts",
]
