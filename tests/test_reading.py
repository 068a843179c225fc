"""Files are what they say before they are read: kinds of JSON, texts, and sizes of archives."""

import io
import json
import zipfile

import numpy as np
import pytest

from keras_onlstm.utils import reading
from keras_onlstm.utils.npz import open_npz
from keras_onlstm.utils.reading import Choice, Integer, check_kind, parse_json, read_json, read_text

pytestmark = pytest.mark.keras_free


# --- Kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "message"),
    [
        (str, ["", "é", "日"], [1, None, [], "\ud800"], "it is a text, not"),
        (bool, [True, False], [0, 1, None, "true"], "it is true or false, not"),
        (float, [0, -1, 2.5, float("nan")], [True, "1", None, 10**400], "it is a number, not"),
        (Integer(), [0, 5, 2**63 - 1], [-1, True, 1.0, 2**63, "1"], "an integer, 0 or above, not"),
        (Integer(2, 3), [2, 3], [1, 4], "it is an integer from 2 to 3, not"),
        (Choice(("a", "b")), ["a", "b"], ["c", ["a"], None], "it is 'a' or 'b', not"),
        ((str, None), ["a", None], [0, {}], "it is a text or null, not"),
        (object, [None, 1, {"a": []}], [], ""),
        (list, [[], [1, "a"]], [{}, "ab", None], "it is a list, not"),
        (dict, [{}, {"a": 1}], [[], None], "it is an object, not"),
        ([Integer()], [[], [1, 2]], [[1, -1], [1, None]], r"\[1\] is an integer, 0 or above, not"),
        ({"a": bool}, [{"a": True, "b": 1}], [{"a": 1}], "a is true or false, not 1"),
        ({"a": bool}, [], [{}, {"b": True}], "a is missing"),
        ({"a": (bool, ...)}, [{}, {"a": True}], [{"a": None}], "a is true or false, not None"),
        ({str: float}, [{}, {"x": 1.5}], [{"x": None}], "'x' is a number, not None"),
        ({"a": [{"b": str}]}, [{"a": []}], [{"a": [{"b": "c"}, {}]}], r"a\[1\]\.b is missing"),
        (([str], {"a": str}), [["b"], {"a": "b"}], [{"a": 1}], "a is a text, not 1"),
    ],
)
def test_kinds(kind, right, wrong, message):
    for value in right:
        check_kind(value, kind)
    for value in wrong:
        with pytest.raises(ValueError, match=f"^{message}|{message}"):
            check_kind(value, kind)


def test_a_fault_is_told_in_a_part_of_a_line():
    deep = ["x" * 10_000] * 1000
    for _ in range(500):
        deep = [deep]
    with pytest.raises(ValueError, match="it is a text") as caught:
        check_kind(deep, str)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


# --- JSON and text -------------------------------------------------------------------------------


def test_what_is_no_json():
    for text in (b"", b"{", b"\xff", b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}"):
        with pytest.raises(ValueError, match="not valid JSON"):
            parse_json(text, object)
    assert parse_json("\ufeff[1]".encode(), [Integer()]) == [1]


def test_json_too_large_is_not_parsed(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("parsed"))
    with pytest.raises(ValueError, match="33,554,433 bytes, above the limit of 33,554,432"):
        parse_json(b" " * (reading.LARGEST + 1), object)
    with pytest.raises(ValueError, match="2,100,000 values, above the limit of 2,097,152"):
        parse_json(b"[" * 100_000 + b"{}," * 1_000_000, object)


def test_files_of_json_and_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": "é"}', encoding="utf-8")
    assert read_json(path, {"a": str}, "Do that.") == {"a": "é"}
    with pytest.raises(ValueError, match=r"a\.json: a is a number, not 'é'\. Do that\.$"):
        read_json(path, {"a": float}, "Do that.")
    path.write_bytes("\ufeffa\r\nb\u2028".encode())
    assert read_text(path) == "a\r\nb\u2028"
    path.write_bytes(b"a\xff")
    with pytest.raises(ValueError, match=r"a\.json: is not UTF-8 text .*Convert it first\.$"):
        read_text(path)
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=r": no such file\.$"):
            read_text(path)


# --- Archives ------------------------------------------------------------------------------------


def zipped(path, members, packed=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def npy(array=None, shape=None, descr=None, numbers=None):
    """The bytes of an array, whose header may say something else."""
    file = io.BytesIO()
    array = np.arange(6.0).reshape(2, 3) if array is None else array
    header = {"descr": descr or array.dtype.str, "fortran_order": False}
    header["shape"] = array.shape if shape is None else shape
    np.lib.format.write_array_header_1_0(file, header)
    file.write(array.tobytes() if numbers is None else numbers)
    return file.getvalue()


def test_arrays_come_back(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b/c": np.array(True), "d": np.zeros((0, 4), "u1")}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        with open_npz(tmp_path / "a.npz") as file:
            found = file.read_all()
            assert {name: tuple(header) for name, header in file.headers.items()} == {
                name: (array.shape, array.dtype) for name, array in arrays.items()
            }
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


def test_zeros_that_take_no_room(tmp_path, monkeypatch):
    """261 kB that unpack to 258 MB: nothing is unpacked."""
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, a=np.zeros(258_000_000, "uint8"))
    assert path.stat().st_size < 300_000
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("read"))
    with (
        pytest.raises(ValueError, match=r"25\d,\d{3} bytes claim to be 258,000,128"),
        open_npz(path),
    ):
        pass
    several = zipped(
        tmp_path / "several.npz", [(f"{n}.npy", npy(np.zeros(10**6))) for n in range(4)]
    )
    with pytest.raises(ValueError, match="bytes claim to be 32,000,512"), open_npz(several):
        pass


@pytest.mark.parametrize(
    ("members", "match"),
    [
        (
            [("a.npy", npy(shape=(10**12,)))],
            r"a claims float64 of shape \(1000000000000,\), and has",
        ),
        ([("a.npy", npy(shape=(-2, -3)))], r"a claims float64 of shape \(-2, -3\)"),
        ([("a.npy", npy(descr="<f4"))], "a claims float32"),
        ([("a.npy", npy(descr="|O"))], "a holds pickled objects"),
        ([("a.npy", npy(numbers=b""))], "a claims float64"),
        ([("a.npy", npy()), ("b.txt", b"text")], r"b\.txt is no array"),
        ([("a.npy", npy()[:6] + b"\x03" + npy()[7:])], r"a is of version \(3, 0\)"),
        ([("a.npy", b"no array at all")], "magic"),
    ],
)
def test_headers_that_are_not_true(tmp_path, members, match):
    with pytest.raises(ValueError, match=match), open_npz(zipped(tmp_path / "a.npz", members)):
        pass


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_arrays_that_are_there_twice(tmp_path):
    path = zipped(tmp_path / "a.npz", [("a.npy", npy()), ("a.npy", npy())])
    with pytest.raises(ValueError, match=r"a\.npy is no array, or there twice"), open_npz(path):
        pass


def test_checksums_are_compared(tmp_path):
    path = zipped(tmp_path / "a.npz", [("a.npy", npy())], zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(np.float64(5.0).tobytes()) + 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(zipfile.BadZipFile, match="CRC"), open_npz(path) as file:
        file.read("a")
