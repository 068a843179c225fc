"""Two processes cannot have the lock of a directory, and a dead one has none."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from commands import environment
from keras_onlstm.utils import locks
from keras_onlstm.utils.locks import check_unlocked, locked

pytestmark = [
    pytest.mark.keras_free,
    pytest.mark.skipif(locks.fcntl is None, reason="the system has no flock"),
]
HOLDER = """
import sys, time
from keras_onlstm.utils.locks import locked

with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def hold(directory, seconds=600):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory), str(seconds)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True,
    )  # fmt: skip
    if process.stdout.readline() != "locked\n":
        pytest.fail(process.communicate()[1])
    return process


def refused(directory, process):
    """Both ways in are closed, with a line that says by whom."""
    for use in (lambda: locked(directory).__enter__(), lambda: check_unlocked(directory)):
        with pytest.raises(BlockingIOError) as caught:
            use()
        said = str(caught.value)
        assert said.startswith(f"{directory}: is in use by process {process} on {os.uname()[1]}, ")
        assert said.endswith(". Wait for it, stop it, or name another directory.")


def test_another_process(tmp_path):
    process = hold(tmp_path)
    refused(tmp_path, process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / ".lock").exists()
    check_unlocked(tmp_path)
    with locked(tmp_path):
        refused(tmp_path, os.getpid())
    check_unlocked(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_that_ends_by_itself(tmp_path):
    process = hold(tmp_path, 0.1)
    assert process.communicate()[1] == ""
    assert list(tmp_path.iterdir()) == []


def test_threads_take_turns(tmp_path):
    inside, most, turns, errors = 0, 0, 0, []

    def work():
        nonlocal inside, most, turns
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            try:
                with locked(tmp_path):
                    inside += 1
                    most = max(most, inside)
                    turns += 1
                    time.sleep(0.001)
                    inside -= 1
            except BlockingIOError:
                pass
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and most == 1 and turns > 5


def test_a_directory_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    check_unlocked(gone)
    with pytest.raises(OSError, match=r"gone/\.lock: cannot be written \(No such file"):
        locked(gone).__enter__()
    gone.mkdir()
    with locked(gone):
        (gone / ".lock").unlink()
        gone.rmdir()


def test_a_link_in_its_place_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match=r"\.lock: cannot be written"):
        locked(directory).__enter__()
    assert victim.read_text() == "years of work"


def test_what_a_lock_file_says_is_checked(tmp_path):
    with locked(tmp_path):
        (tmp_path / ".lock").write_bytes(b"\x1b[31m\xff")
        with pytest.raises(BlockingIOError, match="is in use by another process"):
            check_unlocked(tmp_path)


def test_file_systems_without_locks(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    with locked(tmp_path), locked(tmp_path):
        pass
    monkeypatch.setattr(locks, "fcntl", None)
    with locked(tmp_path), locked(tmp_path):
        pass
