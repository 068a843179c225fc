"""The names of types that many modules need. Nothing is imported for them that takes time."""

import os
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "Activation",
    "DType",
    "Identifier",
    "NltkTree",
    "Sentence",
    "Shape",
    "StrPath",
    "Tensor",
    "Tensors",
]

# A tensor of whatever backend runs, a variable or a symbolic tensor of Keras, or a NumPy array:
# there is no class that all of these have in common.
Tensor = Any
Tensors = tuple[Tensor, ...]
Shape = Sequence[int | None]  # `None` is a size that is not known
DType = Any  # a name, or the class that NumPy or a backend has for it
Activation = Callable[[Tensor], Tensor]
# What Keras looks up: a name, a configuration, the thing itself, or `None` for none.
Identifier = str | dict[str, Any] | Callable[..., Any] | None
NltkTree = Any  # `nltk.Tree`: NLTK declares no types, and takes half a second to import
Sentence = str | Sequence[str]  # text, or words
StrPath = str | os.PathLike[str]
