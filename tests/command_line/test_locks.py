"""Two processes cannot have the lock of a directory, and a dead one has none."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.commands import environment
from keras_onlstm.utils.files import check_unlocked, locked

pytestmark = pytest.mark.keras_free

HOLDER = """
import sys, time
from keras_onlstm.utils.files import locked

with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(600)
"""


def refused(directory):
    """Both functions raise one line that names the directory and the remedy."""
    for use in (lambda: locked(directory).__enter__(), lambda: check_unlocked(directory)):
        with pytest.raises(BlockingIOError, match=r"in use .*name another directory") as caught:
            use()
        assert str(caught.value).startswith(f"{directory}: ")
        assert "\n" not in str(caught.value)


def test_process_holds_the_lock_until_it_dies(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, env=environment(), text=True) as process:
        assert process.stdout.readline() == "locked\n"
        refused(tmp_path)
        process.send_signal(signal.SIGKILL)
    check_unlocked(tmp_path)
    with locked(tmp_path):
        refused(tmp_path)
    check_unlocked(tmp_path)


def test_lock_excludes_other_threads(tmp_path):
    with locked(tmp_path), ThreadPoolExecutor() as threads:
        threads.submit(refused, tmp_path).result()


def test_symbolic_link_at_the_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    (tmp_path / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match=r"\.lock: cannot be written"):
        locked(tmp_path).__enter__()
    assert victim.read_text() == "years of work"
