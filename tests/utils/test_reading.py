"""Reading JSON of an expected kind, text and arrays."""

import json

import numpy as np
import pytest

from keras_onlstm.utils import files
from keras_onlstm.utils.files import parse_json, read_json, read_npz, read_text
from keras_onlstm.utils.validation import Choice, Integer, check_kind

pytestmark = pytest.mark.keras_free


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "message"),
    [
        (str, ["", "é", "日"], [1, None, [], "\ud800"], "it must be a string, not"),
        (bool, [True, False], [0, 1, None, "true"], "it must be true or false, not"),
        (float, [0, -1, 2.5, float("nan")], [True, "1", None, 10**400], "it must be a number, not"),
        (Integer(), [0, 5, 2**63 - 1], [-1, True, 1.0, 2**63, "1"], "an integer, 0 or above, not"),
        (Integer(2, 3), [2, 3], [1, 4], "it must be an integer from 2 to 3, not"),
        (Choice(("a", "b")), ["a", "b"], ["c", ["a"], None], "it must be 'a' or 'b', not"),
        ((str, None), ["a", None], [0, {}], "it must be a string or null, not"),
        (object, [None, 1, {"a": []}], [], ""),
        (list, [[], [1, "a"]], [{}, "ab", None], "it must be a list, not"),
        (dict, [{}, {"a": 1}], [[], None], "it must be an object, not"),
        (
            [Integer()],
            [[], [1, 2]],
            [[1, -1], [1, None]],
            r"\[1\] must be an integer, 0 or above, not",
        ),
        ({"a": bool}, [{"a": True, "b": 1}], [{"a": 1}], "a must be true or false, not 1"),
        ({"a": bool}, [], [{}, {"b": True}], "a is missing"),
        ({"a": (bool, ...)}, [{}, {"a": True}], [{"a": None}], "a must be true or false, not None"),
        ({str: float}, [{}, {"x": 1.5}], [{"x": None}], "'x' must be a number, not None"),
        ({"a": [{"b": str}]}, [{"a": []}], [{"a": [{"b": "c"}, {}]}], r"a\[1\]\.b is missing"),
        (([str], {"a": str}), [["b"], {"a": "b"}], [{"a": 1}], "a must be a string, not 1"),
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
    with pytest.raises(ValueError, match="it must be a string") as caught:
        check_kind(deep, str)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


def test_what_is_no_json():
    for text in (b"", b"{", b"\xff", b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}"):
        with pytest.raises(ValueError, match="not valid JSON"):
            parse_json(text, object)
    assert parse_json("\ufeff[1]".encode(), [Integer()]) == [1]


def test_json_too_large_is_not_parsed(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("parsed"))
    with pytest.raises(ValueError, match="33,554,433 bytes, above the limit of 33,554,432"):
        parse_json(b" " * (files.MAX_BYTES + 1), object)
    with pytest.raises(ValueError, match="2,100,000 values, above the limit of 2,097,152"):
        parse_json(b"[" * 100_000 + b"{}," * 1_000_000, object)


def test_files_of_json_and_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": "é"}', encoding="utf-8")
    assert read_json(path, {"a": str}, "Do that.") == {"a": "é"}
    with pytest.raises(ValueError, match=r"a\.json: a must be a number, not 'é'\. Do that\.$"):
        read_json(path, {"a": float}, "Do that.")
    path.write_bytes("\ufeffa\r\nb\u2028".encode())
    assert read_text(path) == "a\r\nb\u2028"
    path.write_bytes(b"a\xff")
    with pytest.raises(ValueError, match=r"a\.json: is not UTF-8 text .*Convert it first\.$"):
        read_text(path)
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=r": no such file\.$"):
            read_text(path)
        with pytest.raises(FileNotFoundError, match=r": no such file\. Do that\.$"):
            read_json(path, dict, "Do that.")


def test_arrays_of_npz_files_come_back(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b/c": np.array(True), "d": np.zeros((0, 4), "u1")}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = read_npz(tmp_path / "a.npz")
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


def test_archives_that_unpack_to_far_too_much(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(10**6))
    assert read_npz(tmp_path / "a.npz")["a"].shape == (10**6,)
    monkeypatch.setattr(files, "SMALL_ARCHIVE", 1000)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(ValueError, match="it would unpack to 8,000,"):
        read_npz(tmp_path / "a.npz")
