"""Corpora, one module for each: reading the published files and checking every line of them.

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
