"""What is common to corpora that NLTK reads: where they are looked for."""

__all__ = ["not_found"]


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
