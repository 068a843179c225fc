"""Helpers that several parts share. This module only names types; it imports nothing slow."""

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

# A tensor of the backend, a variable or a symbolic tensor of Keras, or a NumPy array. These have no
# class in common.
Tensor = Any
Tensors = tuple[Tensor, ...]
Shape = Sequence[int | None]  # `None` is an unknown size
DType = Any  # a name, or a dtype object of NumPy or a backend
Activation = Callable[[Tensor], Tensor]
# An argument that Keras looks up: a name, a configuration, an object, or `None`.
Identifier = str | dict[str, Any] | Callable[..., Any] | None
NltkTree = Any  # `nltk.Tree`: NLTK declares no types, and takes half a second to import
Sentence = str | Sequence[str]  # text, or words
StrPath = str | os.PathLike[str]
