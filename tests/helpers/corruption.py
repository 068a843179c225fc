"""Corrupts files: random bytes, and valid files with random values.

Every function takes a `random.Random` and the content of a file, and returns the corrupted content.
"""

import io
import json
import warnings
import zipfile

SPECIAL = (b"\0", b"\xff", b"\n", b"\t", b"(", b")", b"[" * 5000, b"\xff\xff\x7f", b"\xed\xa0")
VALUES = (
    *(None, True, False, 0, -1, 1, 2, 3.5, 10**9, 10**40, float("nan"), float("inf"), ""),
    *("x", "\ud800", "<eos>", "a\nb", [], {}, [[]], [None], {"a": 1}, [1, 2], ["a", "b"]),
)
NAMES = ("", "x", "a/b", "../a", "epoch", "config", "class_name", "units", "vocabulary")
HEADERS = (b"'|O'", b"'>f4'", b"'<i4'", b"'<U5'", b"'|V4'", b"(1, 2)", b"(-1,)", b"(9" * 9, b"!")


def spans(draw, data):
    """Corrupts spans of bytes, for any format."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        start = draw.randrange(len(data) + 1)
        end = min(start + draw.choice((1, 2, 4, 16, 200)), len(data))
        kind = draw.randrange(6)
        if kind == 0 and start < len(data):
            data[start] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[start:]
        elif kind == 2:
            data[start:start] = draw.randbytes(draw.choice((1, 3, 50)))
        elif kind == 3:
            data[start:end] = data[start:end] * draw.choice((0, 2, 1000))
        elif kind == 4:
            data[start:end] = draw.choice(SPECIAL)
        else:
            other = draw.randrange(len(data) + 1)
            data[start:end] = data[other : other + end - start]
    return bytes(data)


def json_value(draw, value):
    """Replaces a value somewhere in a JSON value."""
    if not isinstance(value, list | dict) or not value or draw.random() < 0.15:
        return draw.choice((*VALUES, [value], {"a": value}, [value] * 300))
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = draw.choice(keys)
    value = value.copy()
    kind = draw.randrange(8)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, dict):
        value[draw.choice(NAMES)] = value.pop(key)
    elif kind == 2 and isinstance(value, list):
        value *= draw.choice((2, 50))
    elif kind == 3:
        value[key] = value[draw.choice(keys)]
    else:
        value[key] = json_value(draw, value[key])
    return value


def json_text(draw, data):
    """Corrupts the text or the values of a JSON file."""
    if draw.random() < 0.25:
        return spans(draw, data)
    value = json.loads(data)
    for _ in range(draw.choice((1, 1, 1, 3))):
        value = json_value(draw, value)
    return json.dumps(value).encode()


def words(draw, data):
    """Corrupts the bytes of a text, or its words, brackets and columns."""
    if draw.random() < 0.5:
        return spans(draw, data)
    tokens = [*data.decode().replace("(", " ( ").replace(")", " ) ").split(" ")]
    for _ in range(draw.choice((1, 2, 4))):
        index = draw.randrange(len(tokens))
        kind = draw.randrange(3)
        if kind == 0:
            del tokens[index]
        elif kind == 1:
            tokens[index:index] = tokens[index : index + 5] * draw.choice((1, 400))
        else:
            added = ("(", ")", "\n", "\t", "x", "()", "( ", "\r", "=", "x" * 200_000, "(S " * 3000)
            tokens.insert(index, draw.choice(added))
        tokens = tokens or [""]
    return " ".join(tokens).encode()


def archive(draw, data):
    """Corrupts the bytes of a ZIP archive, or corrupts, renames or removes its members."""
    if draw.random() < 0.3:
        return spans(draw, data)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    index = draw.randrange(len(members))
    name, content = members[index]
    kind = draw.randrange(7)
    if kind == 0:
        del members[index]
    elif kind == 1:
        members[index] = draw.choice(NAMES), content
    elif kind == 2:
        members[index] = name, draw.choice(members)[1]
    else:
        members[index] = name, member(draw, name, content)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names
        for name, content in members:
            written.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def member(draw, name, content):
    """Corrupts a member of an archive. `.npy` arrays have a text header and may contain JSON."""
    if not name.endswith(".npy") or draw.random() < 0.3:
        return (json_text if name.endswith(".json") else spans)(draw, content)
    start = content.index(b"\n") + 1
    header, numbers = content[: start - 1].rstrip(), content[start:]
    shape = b"(" + header.split(b"(")[1].split(b")")[0] + b")"
    if numbers[:1] == b"{":
        numbers = json_text(draw, numbers)
        header = header.replace(shape, b"(%d,)" % len(numbers))
    else:
        dtype = header.split(b"'descr': ")[1].split(b",")[0]
        header = header.replace(draw.choice((shape, dtype)), draw.choice(HEADERS))
    return header.ljust(start - 1) + b"\n" + numbers
