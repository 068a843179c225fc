"""Corpora, one module for each, which reads the published files and checks every line.

Nothing here imports Keras: a data set is plain Python and NumPy.

Example:
    >>> from keras_onlstm.datasets import propositional_logic
    >>> propositional_logic.relation("a", "( a ( or b ) )")
    '<'
"""

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
    "brown",
    "conll",
    "dependency_treebank",
    "propositional_logic",
    "sentence_completion",
    "syntactic_evaluation",
    "syntactic_grammar",
    "treebank",
]
