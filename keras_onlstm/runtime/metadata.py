"""The metadata of exported files: one JSON object.

In ONNX it is the metadata property `KEY`. In TensorFlow Lite it is the file `MEMBER` of a ZIP
archive after the flatbuffer, where TensorFlow Lite expects associated files. There it also contains
the length and checksum of the flatbuffer, because an interpreter may crash on a damaged one.
"""

import hashlib
import io
import json
import zipfile
from typing import Any

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import check_unpacked, parse_json
from keras_onlstm.utils.validation import Integer, check_kind

FORMAT = 1
KEY = "keras_onlstm"
MEMBER = "keras_onlstm.json"
READERS = ("parser", "language_model")  # graphs that read sentences
TREE_READER = "tree_language_model"  # the one that reads dependency trees
REMEDY = "Export the model again, or restore the file from a copy."
_LAYERS = Integer(1, 10_000)  # over all models; each layer has a row of distances
_READER_FIELDS = {"num_layers": _LAYERS, "members": ([_LAYERS], None, ...)}
_EPOCH = (1980, 1, 1, 0, 0, 0)  # constant, so that exports are reproducible


def dumps(metadata: dict[str, Any]) -> str:
    """Converts metadata to JSON for a file. Raises `ValueError` if a required field is missing."""
    complete = {"format": FORMAT} | metadata | {"format": FORMAT}  # in front
    _check(complete)
    return json.dumps(complete, ensure_ascii=False)


def loads(text: str | bytes | None, path: StrPath) -> dict[str, Any]:
    """Reads the text that `dumps` made, `None` if the file at `path` has none."""
    if text is None:
        raise ValueError(
            f"{path}: contains no metadata of keras_onlstm. The file was written by another "
            f"program, or is incomplete. {REMEDY}"
        )
    content = text.encode() if isinstance(text, str) else text
    try:
        metadata = parse_json(content, {"format": Integer(1)})
        _check(metadata)
    except ValueError as error:
        raise ValueError(f"{path}: its metadata are damaged ({error}). {REMEDY}") from error
    if metadata["format"] > FORMAT:
        raise ValueError(
            f"{path}: has format {metadata['format']}, but this version of keras_onlstm reads only "
            f"format {FORMAT}: pip install --upgrade keras-onlstm"
        )
    return metadata


def _check(metadata):
    """Checks the types of the fields. A later format may have other fields."""
    if metadata["format"] > FORMAT:
        return
    check_kind(metadata, {"graph": str, "vocabulary": ([str], None, ...)})
    if metadata["graph"] in READERS:
        check_kind(metadata, _READER_FIELDS)
        members = metadata.get("members")
        if members is not None and sum(members) != metadata["num_layers"]:
            raise ValueError(
                f"members has a sum of {sum(members)}, but num_layers is {metadata['num_layers']}"
            )
    if metadata["graph"] == TREE_READER:
        check_kind(metadata, {"vocabulary": [str], "left_dependents": bool})


def pack(flatbuffer: bytes, metadata: dict[str, Any]) -> bytes:
    """Adds metadata to a flatbuffer. TensorFlow Lite can still read the result."""
    digest = hashlib.sha256(flatbuffer).hexdigest()
    text = dumps({**metadata, "bytes": len(flatbuffer), "sha256": digest})
    file = io.BytesIO(flatbuffer)
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "w") as archive:  # "w" begins at the file's position, its end
        archive.writestr(zipfile.ZipInfo(MEMBER, _EPOCH), text.encode(), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def unpack(content: bytes, path: StrPath) -> tuple[bytes, dict[str, Any]]:
    """Splits the content of a file of `pack` into flatbuffer and metadata, and checks both."""
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
        raise ValueError(f"{path}: the model in this file is damaged. {REMEDY}")
    return flatbuffer, metadata
