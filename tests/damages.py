"""Ways to damage a file: of its bytes, and of what its format lets it say.

Every function takes a `random.Random` and what is to be damaged, and returns that damaged.
"""

import io
import json
import pickletools
import struct
import warnings
import zipfile

import numpy as np

SPECIAL = (
    b"\x00",
    b"\xff",
    b"\n",
    b"\t",
    b"(",
    b")",
    b"[" * 5000,
    b"\xff\xff\xff\x7f",
    b"\xed\xa0",
)
OTHERS = (
    *(None, True, False, 0, -1, 1, 2, 3.5, 10**9, 10**18, 10**40, float("nan"), float("inf"), ""),
    *("x", "\ud800", "<eos>", "a\nb", [], {}, [[]], [None], {"a": 1}, [1, 2], ["a", "b"]),
)
NAMES = ("", "x", "a/b", "../a", "epoch", "config", "class_name", "units", "vocabulary")
DESCRIPTIONS = (
    "<f8",
    ">f4",
    "<i4",
    "|u1",
    "|b1",
    "|O",
    "<U5",
    "|V4",
    "<c8",
    "|S1000000",
    "nonsense",
)


def spans(draw, data):
    """Bytes damaged without knowing what they are."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        start = draw.randrange(len(data) + 1)
        end = min(start + draw.choice((1, 2, 4, 16, 200)), len(data))
        kind = draw.randrange(7)
        if kind == 0 and start < len(data):
            data[start] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[start:]
        elif kind == 2:
            data[start:start] = draw.randbytes(draw.choice((1, 3, 50)))
        elif kind == 3:
            data[start:end] = data[start:end] * draw.choice((2, 3, 1000))
        elif kind == 4:
            del data[start:end]
        elif kind == 5:
            data[start:end] = draw.choice(SPECIAL)
        else:  # splice: what stands elsewhere
            other = draw.randrange(len(data) + 1)
            data[start:end] = data[other : other + end - start]
    return bytes(data)


def value(draw, found):
    """A value of JSON in which something stands where something else should."""
    if not isinstance(found, list | dict) or not found or draw.random() < 0.15:
        return draw.choice((*OTHERS, [found], {"a": found}, [found] * 300))
    places = list(found) if isinstance(found, dict) else range(len(found))
    place = draw.choice(places)
    found = found.copy()
    kind = draw.randrange(8)
    if kind == 0:
        del found[place]
    elif kind == 1 and isinstance(found, dict):
        found[draw.choice(NAMES)] = found.pop(place)
    elif kind == 2 and isinstance(found, list):
        found *= draw.choice((2, 50))
    elif kind == 3:
        found[place] = found[draw.choice(places)]
    else:
        found[place] = value(draw, found[place])
    return found


def json_text(draw, data):
    """A JSON text, damaged as text or as what it says."""
    if draw.random() < 0.25:
        return spans(draw, data)
    found = json.loads(data)
    for _ in range(draw.choice((1, 1, 1, 3))):
        found = value(draw, found)
    return json.dumps(found).encode()


def words(draw, data):
    """A text whose words, brackets and columns are at other places."""
    tokens = [*data.decode().replace("(", " ( ").replace(")", " ) ").split(" ")]
    for _ in range(draw.choice((1, 2, 4))):
        place = draw.randrange(len(tokens))
        kind = draw.randrange(5)
        if kind == 0:
            del tokens[place]
        elif kind == 1:
            other = draw.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif kind == 2:
            tokens[place:place] = tokens[place : place + 5] * draw.choice((1, 400))
        else:
            added = ("(", ")", "\n", "\t", "x", "()", "( ", "\r", "=", "x" * 200_000, "(S " * 3000)
            tokens.insert(place, draw.choice(added))
        tokens = tokens or [""]
    return " ".join(tokens).encode()


def pickled(draw, data):
    """A pickle with instructions at other places, or others."""
    places = [place for *_, place in pickletools.genops(data)]
    parts = [data[a:b] for a, b in zip(places, [*places[1:], len(data)], strict=True)]
    for _ in range(draw.choice((1, 2, 3))):
        place = draw.randrange(len(parts))
        kind = draw.randrange(4)
        if kind == 0:
            del parts[place]
        elif kind == 1:
            parts.insert(place, draw.choice(parts))
        elif kind == 2:
            parts[place:place] = parts[place : place + 4] * draw.choice((1, 3, 10_000))
        else:
            code = draw.choice(pickletools.opcodes).code.encode("latin-1")
            parts.insert(place, code + draw.choice((b"", b"\x00", b"1\n", draw.randbytes(4))))
        parts = parts or [b"."]
    return b"".join(parts)


def array(draw, data):
    """An `.npy` member whose header and numbers say something else."""
    with io.BytesIO(data) as file:
        np.lib.format.read_magic(file)
        shape, order, dtype = np.lib.format.read_array_header_1_0(file)
        numbers = file.read()
    if dtype == np.uint8 and numbers[:1] == b"{" and draw.random() < 0.6:
        numbers = json_text(draw, numbers)
        return _array((len(numbers),), False, "|u1", numbers)
    descr = dtype.str
    kind = draw.randrange(5)
    if kind == 0:
        descr = draw.choice(DESCRIPTIONS)
    elif kind == 1:
        shape = draw.choice(((), (10**12,), (2**31, 2**31), shape[::-1], (*shape, 1), (-1,), (0,)))
    elif kind == 2:
        numbers = np.frombuffer(numbers, "u1")[::-1].tobytes()
    elif kind == 3:
        numbers = b"\xff" * len(numbers)  # not a number, where they are floats
    else:
        return spans(draw, data)
    return _array(shape, order, descr, numbers)


def _array(shape, order, descr, numbers):
    header = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers


def archive(draw, data):
    """A ZIP archive that is whole, and whose members are damaged, renamed, lost or enormous."""
    if draw.random() < 0.3:
        return spans(draw, data)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    place = draw.randrange(len(members))
    name, content = members[place]
    kind = draw.randrange(9)
    if kind == 0:
        del members[place]
    elif kind == 1:
        members[place] = draw.choice(NAMES), content
    elif kind == 2:
        members[place] = name, draw.choice(members)[1]
    elif kind == 3:
        members.append((name + draw.choice(("", "x", ".npy")), content))
    elif kind == 4:
        draw.shuffle(members)
    else:
        members[place] = name, member(draw, name, content)
    file = io.BytesIO()
    packed = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", packed, compresslevel=1) as written, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same name twice
        for name, content in members:
            written.writestr(zipfile.ZipInfo(name), content, packed)
        if draw.random() < 0.005:
            zeros = zipfile.ZipInfo("zeros.npy")
            zeros.compress_type = zipfile.ZIP_DEFLATED
            with written.open(zeros, "w") as bomb:
                bomb.write(_array((600 * 2**20,), False, "|u1", b""))
                for _ in range(600):
                    bomb.write(bytes(2**20))
    return file.getvalue()


def member(draw, name, content):
    """What is in a member, by its name."""
    if name.endswith(".npy"):
        return array(draw, content)
    return (json_text if name.endswith(".json") else spans)(draw, content)
