"""Output of `make check-gpu` with and without a GPU."""

import subprocess
import sys
from pathlib import Path

import check_gpu
import pytest

pytestmark = pytest.mark.keras_free


def test_fails_without_accelerator():
    hidden = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "PATH": ""}
    command = [sys.executable, Path(check_gpu.__file__), "--backends", "jax"]
    result = subprocess.run(command, env=hidden, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == "No accelerator was found by jax. Nothing was tested.\n"


def test_prints_devices_and_results(monkeypatch, capsys):
    devices = {"tensorflow": "", "jax": "A GPU", "torch": "A GPU"}
    results = {"jax": ({"passed": "7", "skipped": "2"}, 0), "torch": ({"failed": "1"}, 1)}
    monkeypatch.setattr(check_gpu, "device", devices.get)
    monkeypatch.setattr(check_gpu, "run_tests", results.get)
    monkeypatch.setattr(sys, "argv", ["check_gpu.py"])
    with pytest.raises(SystemExit) as exit_info:
        check_gpu.main()
    assert exit_info.value.code
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [
        ["tensorflow", "none", "found"],
        ["jax", "A", "GPU", "7", "0", "2"],
        ["torch", "A", "GPU", "0", "1", "0"],
    ]
