"""Corpora that NLTK finds: the error for a missing one, and the content of their files."""

from typing import Any

from keras_onlstm.utils.reading import reason

__all__ = ["RESTORE", "file_content", "not_found"]

RESTORE = "Restore it from its source."


def not_found(name: str, remedy: str) -> FileNotFoundError:
    """The error to raise where NLTK lacks a corpus.

    Args:
        name: of the corpus.
        remedy: how to get it.

    Returns:
        `FileNotFoundError`.
    """
    return FileNotFoundError(
        f"NLTK finds no {name} corpus: {remedy}. The environment variable NLTK_DATA names the "
        "directory nltk_data."
    )


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
