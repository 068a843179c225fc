"""The metadata of exported files: one JSON object.

In ONNX it is the metadata property `KEY`. In TensorFlow Lite it is the only member, `MEMBER`, of a
ZIP archive after the flatbuffer, where TensorFlow Lite expects associated files. There it also
contains the length and checksum of the flatbuffer. They are checked first, because an interpreter
may crash on a damaged one.
"""

import hashlib
import io
import json
import zipfile
from typing import Any

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import check_unpacked, parse_json
from keras_onlstm.utils.validation import Integer, check_kind

__all__ = ["FORMAT", "KEY", "MEMBER", "dumps", "loads", "pack", "unpack"]

FORMAT = 1
KEY = "keras_onlstm"
MEMBER = "keras_onlstm.json"
READERS = ("parser", "language_model")  # graphs that read sentences
TREE_READER = "tree_language_model"  # the one that reads dependency trees
REMEDY = "Export the model again, or restore the file from a copy."
_LAYERS = Integer(1, 10_000)  # over all models; each layer has a row of distances
_OF_READERS = {"num_layers": _LAYERS, "members": ([_LAYERS], None, ...)}
_EPOCH = (1980, 1, 1, 0, 0, 0)  # constant, so that exports are reproducible


def dumps(metadata: dict[str, Any]) -> str:
    """Converts metadata to the text for a file.

    Args:
        metadata: JSON-serializable dictionary with `graph`, the kind of the graph. A parser or a
            language model also needs `vocabulary`, a list of words or `None`, and `num_layers`; a
            parser of several models `members`, the list of their numbers of layers; a tree
            language model `vocabulary` and `left_dependents`. `format` is added here.

    Returns:
        String.

    Raises:
        ValueError: if one of these is missing or of another type.

    Example:

    >>> from keras_onlstm.runtime import metadata
    >>> metadata.dumps({"graph": "parser", "vocabulary": ["<eos>", "<unk>"], "num_layers": 3})
    '{"format": 1, "graph": "parser", "vocabulary": ["<eos>", "<unk>"], "num_layers": 3}'
    """
    complete = {"format": FORMAT} | metadata | {"format": FORMAT}  # in front
    _check(complete)
    return json.dumps(complete, ensure_ascii=False)


def loads(text: str | bytes | None, path: StrPath) -> dict[str, Any]:
    """Reads the text that `dumps` made.

    Args:
        text: string or bytes, or `None` if the file has none.
        path: path of the file, for the messages.

    Returns:
        Dictionary.

    Raises:
        ValueError: if the text is missing, damaged, or of a later format.

    Example:

    >>> from keras_onlstm.runtime import metadata
    >>> metadata.loads('{"format": 1, "graph": "layer"}', "layer.onnx")["graph"]
    'layer'
    """
    if text is None:
        raise ValueError(
            f"{path}: holds no metadata of keras_onlstm: something else wrote it, or it is "
            f"incomplete. {REMEDY}"
        )
    try:
        metadata = parse_json(
            text.encode() if isinstance(text, str) else text, {"format": Integer(1)}
        )
        _check(metadata)
    except ValueError as error:
        raise ValueError(f"{path}: its metadata are damaged ({error}). {REMEDY}") from error
    if metadata["format"] > FORMAT:
        raise ValueError(
            f"{path}: of format {metadata['format']}, and this version knows {FORMAT}. Install a "
            "later one: pip install --upgrade keras-onlstm"
        )
    return metadata


def _check(metadata):
    """Checks the types of the fields. A later format may have other fields."""
    check_kind(metadata, {"format": Integer(1)})
    if metadata["format"] > FORMAT:
        return
    check_kind(metadata, {"graph": str, "vocabulary": ([str], None, ...)})
    if metadata["graph"] in READERS:
        check_kind(metadata, _OF_READERS)
        members = metadata.get("members")
        if members is not None and sum(members) != metadata["num_layers"]:
            raise ValueError(
                f"members have {sum(members)} layers, and num_layers is {metadata['num_layers']}"
            )
    if metadata["graph"] == TREE_READER:
        check_kind(metadata, {"vocabulary": [str], "left_dependents": bool})


def pack(flatbuffer: bytes, metadata: dict[str, Any]) -> bytes:
    """Adds metadata to a `.tflite` file.

    Args:
        flatbuffer: bytes from the TensorFlow Lite converter.
        metadata: the same as for `dumps`.

    Returns:
        Bytes, which TensorFlow Lite can still read.

    Raises:
        ValueError: if metadata are missing or of another type.

    Example:

    >>> from keras_onlstm.runtime import metadata
    >>> packed = metadata.pack(b"the model", {"graph": "layer"})
    >>> metadata.unpack(packed, "layer.tflite")[0]
    b'the model'
    """
    digest = hashlib.sha256(flatbuffer).hexdigest()
    text = dumps({**metadata, "bytes": len(flatbuffer), "sha256": digest})
    file = io.BytesIO(flatbuffer)
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "w") as archive:  # "w" begins at the file's position, its end
        member = zipfile.ZipInfo(MEMBER, _EPOCH)
        archive.writestr(member, text.encode(), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def unpack(content: bytes, path: StrPath) -> tuple[bytes, dict[str, Any]]:
    """Splits a file of `pack` into flatbuffer and metadata.

    Args:
        content: bytes of the file.
        path: path of the file, for the messages.

    Returns:
        The flatbuffer, as bytes, and the metadata, as a dictionary.

    Raises:
        ValueError: if the flatbuffer or the metadata are damaged, or the metadata are missing or of
            a later format.

    Example:

    >>> from keras_onlstm.runtime import metadata
    >>> packed = metadata.pack(b"the model", {"graph": "layer"})
    >>> metadata.unpack(packed[1:], "layer.tflite")
    Traceback (most recent call last):
    ...
    ValueError: layer.tflite: its model is damaged. Export the model again, or restore the file
    from a copy.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_unpacked(archive)
            text = archive.read(MEMBER)
    except Exception:  # the ZIP reader raises many classes
        text = None
    metadata = loads(text, path)
    size = metadata.get("bytes")
    flatbuffer = content[:size] if type(size) is int else b""
    if hashlib.sha256(flatbuffer).hexdigest() != metadata.get("sha256"):
        raise ValueError(f"{path}: its model is damaged. {REMEDY}")
    return flatbuffer, metadata
