"""Runs the tests that matter on an accelerator, on every backend that finds one.

    make check-gpu
    python tests/check_gpu.py --backends jax

Prints the device and the test results of every backend. Fails if no backend finds an accelerator.
TensorFloat-32 is turned off, because its matrix products differ from the expected float32 values.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from keras_onlstm.utils.console import table

TESTS = Path(__file__).parent
FILES = (
    *("onlstm/test_cumax.py", "onlstm/test_cell.py", "onlstm/test_layer.py"),
    *("onlstm/test_layer_masks.py", "onlstm/test_fused.py", "onlstm/test_layer_dropout.py"),
    *("onlstm/test_fused_jax.py", "onlstm/test_reference.py", "onlstm/test_derivatives.py"),
    *("onlstm/test_empty.py", "onlstm/test_lowering.py", "recurrence/test_scan.py"),
    *("recurrence/test_products.py", "recurrence/test_lstm.py"),
    *("models/test_prpn.py", "models/test_tree_lstm.py"),
)
# Prints the name of the first accelerator that a backend finds.
FIND = {
    "tensorflow": "import tensorflow as tf\n"
    "for gpu in tf.config.list_physical_devices('GPU')[:1]:\n"
    "    print(tf.config.experimental.get_device_details(gpu).get('device_name', gpu.name))",
    "jax": "import jax\nprint(*[d.device_kind for d in jax.devices() if d.platform != 'cpu'][:1])",
    "torch": "import torch\n"
    "print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')",
}
PRECISE = {"NVIDIA_TF32_OVERRIDE": "0", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}
OPTIMIZED = {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}  # conftest.py turns optimizations off


def device(backend):
    """The name of the accelerator that a backend finds, or an empty string."""
    if importlib.util.find_spec(backend) is None:
        return ""
    command = [sys.executable, "-c", FIND[backend]]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def outcomes(text):
    """Parses the counts in the last line of pytest: {outcome: count}."""
    last = text.strip().splitlines()[-1:]
    return {outcome: count for count, outcome in re.findall(r"(\d+) ([a-z]+)", *last or [""])}


def run_tests(backend):
    """Runs the tests on a backend; returns counts by outcome and the exit status."""
    files = [TESTS / name for name in FILES]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not keras_free", *files],
        env={**os.environ, **PRECISE, **OPTIMIZED, "KERAS_BACKEND": backend},
        stdout=subprocess.PIPE,
        text=True,
    )
    print(run.stdout)
    return outcomes(run.stdout), run.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", choices=FIND, default=list(FIND))
    options = parser.parse_args()
    devices = {backend: device(backend) for backend in options.backends}
    if not any(devices.values()):
        raise SystemExit(f"No accelerator was found by {', '.join(devices)}. Nothing was tested.")
    rows, failed = [], False
    for backend, name in devices.items():
        counts, status = run_tests(backend) if name else ({}, 0)
        failed |= status != 0
        cells = (counts.get(outcome, "0") for outcome in ("passed", "failed", "skipped"))
        rows.append([backend, name or "none found", *(cells if name else ("", "", ""))])
    print(table(["backend", "device", "passed", "failed", "skipped"], rows))
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
