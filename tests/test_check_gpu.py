"""What `make check-gpu` says where there is no GPU, and of what it found."""

import subprocess
import sys
from pathlib import Path

import check_gpu
import pytest

pytestmark = pytest.mark.keras_free


def test_no_accelerator_is_a_failure():
    """One that is hidden is none."""
    hidden = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "PATH": ""}
    command = [sys.executable, Path(check_gpu.__file__), "--backends", "jax"]
    result = subprocess.run(command, env=hidden, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == "No accelerator is found by jax: nothing was tested.\n"


def test_what_ran_where(monkeypatch, capsys):
    devices = {"tensorflow": "", "jax": "A GPU", "torch": "A GPU"}
    found = {"jax": ({"passed": "7", "skipped": "2"}, 0), "torch": ({"failed": "1"}, 1)}
    monkeypatch.setattr(check_gpu, "device", devices.get)
    monkeypatch.setattr(check_gpu, "tested", found.get)
    monkeypatch.setattr(sys, "argv", ["check_gpu.py"])
    with pytest.raises(SystemExit) as ended:
        check_gpu.main()
    assert ended.value.code
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [
        ["tensorflow", "none", "found"],
        ["jax", "A", "GPU", "7", "0", "2"],
        ["torch", "A", "GPU", "0", "1", "0"],
    ]
