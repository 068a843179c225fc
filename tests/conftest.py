"""Fixtures and settings of all tests: Keras backend, seeds, paths of shared files.

Environment variables:
    KERAS_BACKEND: the backend. Default: `tensorflow`.
    KERAS_ONLSTM_DATA: the directory with `data/` and `reference/`. Default: `shared` in the parent
        directory of the repository.
    KERAS_ONLSTM_REQUIRE_DATA: 1: a missing shared directory fails tests instead of skipping them.
    XLA_FLAGS: flags of XLA. Default: no optimization.
"""

import functools
import gc
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import filelock
import hypothesis
import numpy as np
import pytest

from helpers import commands

BACKENDS = ("tensorflow", "jax", "torch")
BACKEND = os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "agg")

# Arrays in tests are small, so XLA mostly compiles. Without optimization it takes a third of the
# time.
XLA_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
COMPILE = {
    "tensorflow": "import tensorflow as tf; tf.function(abs, jit_compile=True)(tf.ones(1))",
    "jax": "import jax; jax.devices()",
}


def _set_xla_flags():
    """Sets the flags if XLA knows them all, because an unknown flag ends the process.

    Workers inherit the variable.
    """
    if BACKEND in COMPILE and "XLA_FLAGS" not in os.environ:
        command = [sys.executable, "-c", COMPILE[BACKEND]]
        environment = {**os.environ, "XLA_FLAGS": XLA_FLAGS}
        failed = subprocess.run(command, env=environment, capture_output=True).returncode
        os.environ["XLA_FLAGS"] = "" if failed else XLA_FLAGS


_set_xla_flags()

# No deadline, because compilation is slow. Derandomized, so that failures can be reproduced.
hypothesis.settings.register_profile("keras_onlstm", deadline=None, derandomize=True)
hypothesis.settings.load_profile("keras_onlstm")


# Backends create millions of objects. Collecting garbage at the default rate takes 4% of the time.
gc.set_threshold(20_000, 50, 50)


@pytest.fixture(autouse=True, scope="session")
def _generators_are_registered():
    """Lets Hypothesis find NumPy's random generator with `gc` before objects are frozen."""
    hypothesis.given(hypothesis.strategies.none())(lambda none: None)()


@pytest.fixture(autouse=True, scope="module")
def _frozen_objects():
    """Excludes the remaining objects of a test module from later garbage collections."""
    yield
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    """Caches compiled functions of JAX, separately for each worker."""
    if BACKEND == "jax" and hasattr(config, "cache"):
        import jax

        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir(f"jax-{worker}")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def pytest_report_header():
    flags = os.environ.get("XLA_FLAGS") or "defaults"
    header = f"keras {metadata.version('keras')} on {BACKEND}; shared files: {_shared()}"
    return header if BACKEND == "torch" else f"{header}\nXLA: {flags}"


def pytest_collection_modifyitems(items):
    for item in items:
        for marker in item.iter_markers("backend"):
            if not marker.args or not set(marker.args) <= set(BACKENDS):
                raise pytest.UsageError(
                    f"{item.nodeid}: backend{marker.args} must be in {BACKENDS}"
                )
            if BACKEND not in marker.args:
                reason = f"needs the backend {' or '.join(marker.args)}, runs on {BACKEND}"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _fresh_keras(request):
    """Seeds every test and resets Keras's name counters, dtype and dtype policy after it."""
    if request.node.get_closest_marker("keras_free"):
        yield
        return
    import keras

    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.utils.set_random_seed(0)
    yield
    # Garbage collection would take longer than most tests.
    keras.backend.clear_session(free_memory=False)
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)


@pytest.fixture
def float64():
    """The name of the dtype. On JAX, enables 64-bit types during the test."""
    if BACKEND != "jax":
        yield "float64"
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield "float64"
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="session")
def shared_data():
    """The directory of the public data sets."""
    return _shared_directory("data")


@pytest.fixture(scope="session")
def shared_reference():
    """The directory of reference results of the authors' implementations."""
    return _shared_directory("reference")


@pytest.fixture(scope="session")
def tree_reference(shared_reference):
    """The arrays of `tree_lstm.npz`."""
    with np.load(shared_reference / "tree_lstm.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def script(request):
    """The module of the script whose path is the SCRIPT of the test file."""
    path = request.module.SCRIPT
    with commands.imported(path.parent, path.stem) as (module,):
        yield module


@pytest.fixture
def run(script, request):
    """Runs the command line of that script in this process: (exit status, stdout, stderr)."""
    return functools.partial(commands.run_script, request.module.SCRIPT, script)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """Function that maps the name of an example to the directory and output of its debug run.

    Each run is created once for all workers. Tests must copy files before they change them.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    @functools.cache
    def finished(name):
        directory, output_path = shared / name / "run", shared / name / "printed.txt"
        with filelock.FileLock(shared / f"{name}.lock"):
            if not output_path.exists():
                with commands.example(name) as module:
                    arguments = [*commands.DEBUG, "--output", directory]
                    status, output, errors = commands.run_script(f"{name}.py", module, *arguments)
                assert (status, commands.ours(errors)) == (0, []), errors
                output_path.write_text(output)
        return directory, output_path.read_text()

    return finished


def _shared():
    path = os.environ.get("KERAS_ONLSTM_DATA")
    return Path(path) if path else Path(__file__).resolve().parents[2] / "shared"


def _shared_directory(name):
    directory = _shared() / name
    if directory.is_dir():
        return directory
    reason = f"{_shared() / name} is missing. Set KERAS_ONLSTM_DATA to the directory of {name}/."
    if os.environ.get("KERAS_ONLSTM_REQUIRE_DATA") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
