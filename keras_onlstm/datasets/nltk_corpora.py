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
    """A context in which NLTK looks for a corpus.

    Args:
        name: of the corpus.
        remedy: how to get it.

    Raises:
        FileNotFoundError: if NLTK does not find it.
        ValueError: if its archive is damaged.
    """
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
    """A file of a corpus, which may be in an archive.

    Args:
        reader: NLTK's reader of the corpus.
        name: of the file, as the reader knows it.

    Returns:
        Tuple of the path of the file, for messages, and its bytes.

    Raises:
        ValueError: if the file is missing or damaged; the message names it.
    """
    path = f"{reader.root}/{name}"
    try:
        with reader.root.join(name).open() as file:
            return path, file.read()
    except Exception as error:  # whatever NLTK and archives raise
        raise ValueError(f"{path}: cannot be read ({reason(error)}). {RESTORE}") from error
