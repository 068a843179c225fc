"""NLTK corpora: the error for a missing corpus, and the contents of files."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zipfile import BadZipFile

from keras_onlstm.utils.files import describe

__all__ = ["RESTORE", "file_content", "found"]

RESTORE = "Restore it from its source."


@contextmanager
def found(name: str, remedy: str) -> Iterator[None]:
    """Context for finding a corpus with NLTK: its errors name the remedy."""
    try:
        yield
    except LookupError as error:
        raise FileNotFoundError(
            f"NLTK finds no {name} corpus: {remedy}. The environment variable NLTK_DATA names the "
            "directory nltk_data."
        ) from error
    except BadZipFile as error:
        message = f"corpora/{name}.zip of nltk_data: {describe(error)}. {RESTORE}"
        raise ValueError(message) from error


def file_content(reader: Any, name: str) -> tuple[str, bytes]:
    """Path of a corpus file, maybe in an archive, for messages, and its bytes."""
    path = f"{reader.root}/{name}"
    try:
        with reader.root.join(name).open() as file:
            return path, file.read()
    except Exception as error:  # NLTK and archives raise many types
        raise ValueError(f"{path}: cannot be read ({describe(error)}). {RESTORE}") from error
