"""Writing files so that a reader never sees half of one."""

import json
import os
from contextlib import contextmanager
from pathlib import Path

__all__ = ["read_json", "replacing", "write_json"]


@contextmanager
def replacing(path):
    """Yields a temporary path beside `path` and moves it there at the end, if nothing was raised.

    Args:
        path: where the file shall be. What stands there stays until the new file is complete.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.files import replacing
    >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
    >>> with replacing(path) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> path.read_text()
    'whole'
    """
    path = Path(path)
    # The ending stays at the end: Keras and Matplotlib choose the format by it.
    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path, content):
    """Writes `content` as indented JSON, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_json(path, remedy):
    """The JSON object in a file.

    Args:
        path: the file.
        remedy: what the user can do if it cannot be read, as a sentence.

    Returns:
        Dictionary.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds anything but a JSON object.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file. {remedy}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}). {remedy}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: holds no JSON object. {remedy}")
    return content
