"""Corpora that NLTK finds: the error for a missing one, and the content of their files."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zipfile import BadZipFile

from keras_onlstm.utils.reading import reason

__all__ = ["RESTORE", "file_content", "found"]

RESTORE = "Restore it from its source."


@contextmanager
def found(name: str, remedy: str) -> Iterator[None]:
    """A context in which NLTK looks for a corpus; an error names the remedy."""
    try:
        yield
    except LookupError as error:
        raise FileNotFoundError(
            f"NLTK finds no {name} corpus: {remedy}. The environment variable NLTK_DATA names the "
            "directory nltk_data."
        ) from error
    except BadZipFile as error:
        raise ValueError(f"corpora/{name}.zip of nltk_data: {reason(error)}. {RESTORE}") from error


def file_content(reader: Any, name: str) -> tuple[str, bytes]:
    """The path of a file of a corpus, which may be in an archive, for messages, and its bytes."""
    path = f"{reader.root}/{name}"
    try:
        with reader.root.join(name).open() as file:
            return path, file.read()
    except Exception as error:  # whatever NLTK and archives raise
        raise ValueError(f"{path}: cannot be read ({reason(error)}). {RESTORE}") from error
