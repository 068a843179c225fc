"""Files are written atomically, also by concurrent writers, and only to the requested path."""

import errno
import os
import resource
import stat
import threading

import numpy as np
import pytest

from keras_onlstm.utils import files
from keras_onlstm.utils.files import is_left_over, remove_left_overs, replacing, write_json

pytestmark = pytest.mark.keras_free


def left(directory):
    return sorted(path.name for path in directory.iterdir())


def test_temporary_names_are_unpredictable(tmp_path):
    """A link under the name of the last temporary file is not followed."""
    path, victim = tmp_path / "notes.txt", tmp_path / "victim"
    victim.write_text("years of work")
    with replacing(path) as first:
        first.write_text("one")
    first.parent.symlink_to(tmp_path)
    (tmp_path / ".notes.part.txt").symlink_to(victim)
    with replacing(path) as second:
        assert second.parent not in (first.parent, tmp_path)
        assert stat.S_IMODE(second.parent.stat().st_mode) == 0o700
        second.write_text("two")
    assert (victim.read_text(), path.read_text()) == ("years of work", "two")


def test_a_link_is_replaced_and_not_followed(tmp_path):
    path, victim = tmp_path / "notes.txt", tmp_path / "victim"
    victim.write_text("years of work")
    path.symlink_to(victim)
    write_json(path, [1])
    assert victim.read_text() == "years of work"
    assert not path.is_symlink() and path.read_text() == "[\n  1\n]\n"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_match_those_of_open(tmp_path, mask):
    before = os.umask(mask)
    try:
        (tmp_path / "plain").write_text("")
        write_json(tmp_path / "written", {})
    finally:
        os.umask(before)
    plain, written = ((tmp_path / name).stat().st_mode for name in ("plain", "written"))
    assert written == plain and stat.S_IMODE(plain) == 0o666 & ~mask


def test_concurrent_writes_of_one_file(tmp_path):
    """Each writes one letter many times: the letters of two writers are never mixed."""
    path, errors = tmp_path / "letters", []

    def write(letter):
        try:
            for _ in range(10):
                with replacing(path) as temporary, open(temporary, "w") as file:
                    for _ in range(8):
                        file.write(letter * 2**12)
                        file.flush()
                assert len(set(path.read_text())) == 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcdefgh"]
    for call in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            call(thread)
    assert errors == []
    assert left(tmp_path) == ["letters"] and len(path.read_text()) == 2**15


def test_directories(tmp_path):
    path = tmp_path / "model"
    for text in ("old", "new"):
        with replacing(path) as temporary:
            (temporary / "deep").mkdir(parents=True)
            (temporary / "deep" / "file").write_text(text)
        assert (path / "deep" / "file").read_text() == text and left(tmp_path) == ["model"]
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.mkdir()
        raise RuntimeError
    assert (path / "deep" / "file").read_text() == "new" and left(tmp_path) == ["model"]


def test_failed_replacement_restores_the_directory(tmp_path, monkeypatch):
    """The old directory is moved away, and back."""
    path, replace = tmp_path / "model", os.replace
    path.mkdir()
    (path / "old").write_text("old")

    def fails(source, target):
        if target == path and source.name == "model":
            raise OSError(errno.EIO, "Input/output error", str(source))
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", fails)
        with pytest.raises(OSError, match="cannot be written"), replacing(path) as temporary:
            temporary.mkdir()
    assert (path / "old").read_text() == "old" and left(tmp_path) == ["model"]


def test_temporary_files_of_killed_processes_are_removed(tmp_path):
    """The next write removes them, unless they may belong to a running process."""
    names = [".notes.txt.aaaa.part", ".notes.txt.bbbb.part", ".other.txt.cccc.part"]
    for age, name in zip((3700, 3500, 3700), names, strict=True):
        place = tmp_path / name
        place.mkdir()
        (place / "notes.txt").write_text("half")
        now = files.time.time()
        os.utime(place, (now - age, now - age))
        assert is_left_over(place)
    assert not is_left_over(tmp_path / "notes.part")
    write_json(tmp_path / "notes.txt", {})
    assert left(tmp_path) == [*names[1:], "notes.txt"]
    (tmp_path / "ids").mkdir()
    (tmp_path / "ids" / ".train.dddd.part").mkdir()
    remove_left_overs(tmp_path)
    assert left(tmp_path) == ["ids", "notes.txt"] and left(tmp_path / "ids") == []


def test_directory_is_restored_after_a_killed_replacement(tmp_path):
    path, place = tmp_path / "model", tmp_path / ".model.dead.part"
    (place / "model.old").mkdir(parents=True)
    (place / "model.old" / "old").write_text("old")
    os.utime(place, (0, 0))
    with pytest.raises(KeyboardInterrupt), replacing(path):
        assert (path / "old").read_text() == "old"  # the only one there is
        raise KeyboardInterrupt
    assert left(tmp_path) == ["model"] and left(path) == ["old"]


def test_a_limit_on_the_size_of_files(tmp_path):
    path = tmp_path / "arrays.npz"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError) as caught, replacing(path) as temporary:
            np.savez(temporary, a=np.zeros(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value).startswith(f"{path}: cannot be written (File too large). Raise the")
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "(No space left on device). Make room on the disk."),
        (errno.EROFS, "(Read-only file system). Make its directory writable."),
        (errno.EIO, "(Input/output error)."),
    ],
)
def test_reasons_and_remedies(tmp_path, code, remedy):
    path = tmp_path / "notes.txt"
    with pytest.raises(OSError) as caught, replacing(path):
        raise OSError(code, os.strerror(code))
    assert str(caught.value) == f"{path}: cannot be written {remedy}"
    with pytest.raises(OSError, match=r"gone/notes\.txt: cannot be written .*Create its directory"):
        write_json(tmp_path / "gone" / "notes.txt", {})


def test_errors_of_other_files_are_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "notes"):
        (tmp_path / "notes.txt").read_text()
    assert caught.value.filename == str(tmp_path / "notes.txt")
    with pytest.raises(FileNotFoundError, match=r"^no such corpus\.$"), replacing(tmp_path / "a"):
        raise FileNotFoundError("no such corpus.")
