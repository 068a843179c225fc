"""What an exported file says of itself, and where it stands in the file: one JSON object.

In ONNX it is the metadata property `KEY`. In TensorFlow Lite it is the only member, `MEMBER`, of a
ZIP archive behind the flatbuffer, where TensorFlow Lite has its associated files. There it also
has the length and the checksum of the flatbuffer: an interpreter may crash on a damaged one, and
so never gets to see it.
"""

import hashlib
import io
import json
import zipfile
from typing import Any

from keras_onlstm.utils.reading import Integer, check_kind, check_unpacked, parse_json
from keras_onlstm.utils.types import StrPath

__all__ = ["FORMAT", "KEY", "MEMBER", "dumps", "loads", "pack", "unpack"]

FORMAT = 1
KEY = "keras_onlstm"
MEMBER = "keras_onlstm.json"
READERS = ("parser", "language_model")  # graphs that read sentences
TREE_READER = "tree_language_model"  # the one that reads dependency trees
REMEDY = "Export the model again, or restore the file from a copy."
_LAYERS = Integer(1, 10_000)  # of all models together: each is a row of distances
_OF_READERS = {"num_layers": _LAYERS, "members": ([_LAYERS], None, ...)}
_EPOCH = (1980, 1, 1, 0, 0, 0)  # one export gives one file, whatever the time


def dumps(metadata: dict[str, Any]) -> str:
    """The text that stands in a file.

    Args:
        metadata: dictionary of what JSON can hold, with `graph`, the kind of the graph; for a
            parser or a language model also `vocabulary`, list of words or `None`, and
            `num_layers`; for a parser of several models `members`, the list of how many of these
            layers each has; for a tree language model `vocabulary` and `left_dependents`. `format`
            is entered here.

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
    """What `dumps` wrote.

    Args:
        text: string or bytes, or `None` where there is none.
        path: of the file it stands in, for the messages.

    Returns:
        Dictionary.

    Raises:
        ValueError: if it is no such text, or of a later format.

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
    """Refuses metadata whose parts are of other types. A later format may have other parts."""
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
    """A `.tflite` file that says what it is.

    Args:
        flatbuffer: bytes, of the TensorFlow Lite converter.
        metadata: as in `dumps`.

    Returns:
        Bytes, which TensorFlow Lite reads as before.

    Raises:
        ValueError: as `dumps`.

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
    with zipfile.ZipFile(file, "w") as archive:  # from where the file stands: at the end
        member = zipfile.ZipInfo(MEMBER, _EPOCH)
        archive.writestr(member, text.encode(), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def unpack(content: bytes, path: StrPath) -> tuple[bytes, dict[str, Any]]:
    """Takes apart what `pack` put together.

    Args:
        content: bytes of the file.
        path: of it, for the messages.

    Returns:
        The flatbuffer, as bytes, and the metadata, as a dictionary.

    Raises:
        ValueError: if a byte is missing or changed, there are no metadata, or these are of a later
            format.

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
    except Exception:  # whatever the ZIP reader raises on bytes that are no archive
        text = None
    metadata = loads(text, path)
    size = metadata.get("bytes")
    flatbuffer = content[:size] if type(size) is int else b""
    if hashlib.sha256(flatbuffer).hexdigest() != metadata.get("sha256"):
        raise ValueError(f"{path}: its model is damaged. {REMEDY}")
    return flatbuffer, metadata
