"""Data sets and file formats, one module for each. They check every line without Keras."""

from keras_onlstm.datasets import (
    brown,
    conll,
    dependency_treebank,
    propositional_logic,
    sentence_completion,
    syntactic_evaluation,
    syntactic_grammar,
    treebank,
)

__all__ = [
    "brown", "conll", "dependency_treebank", "propositional_logic", "sentence_completion",
    "syntactic_evaluation", "syntactic_grammar", "treebank",
]  # fmt: skip
