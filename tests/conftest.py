"""What every test runs under: one Keras backend, fixed seeds, and where the shared files are.

Environment variables:
    KERAS_BACKEND: the backend, `tensorflow` unless set.
    KERAS_ONLSTM_DATA: the shared directory, which holds `data/` and `reference/`; unless set, the
        directory `shared` beside the checkout.
    KERAS_ONLSTM_REQUIRE_DATA: set to 1, a missing shared directory fails a test, not skips it.
    XLA_FLAGS: what XLA is told; unless set, to optimize nothing.
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

# Compiling is most of what XLA does in tests, whose arrays are small: a third of the time without
# its optimizations.
XLA_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
COMPILE = {
    "tensorflow": "import tensorflow as tf; tf.function(abs, jit_compile=True)(tf.ones(1))",
    "jax": "import jax; jax.devices()",
}


def _calm_xla():
    """Sets the flags if this XLA knows them all, for one that it does not know ends the process.

    Workers inherit what was found.
    """
    if BACKEND in COMPILE and "XLA_FLAGS" not in os.environ:
        asked = [sys.executable, "-c", COMPILE[BACKEND]]
        environment = {**os.environ, "XLA_FLAGS": XLA_FLAGS}
        refused = subprocess.run(asked, env=environment, capture_output=True).returncode
        os.environ["XLA_FLAGS"] = "" if refused else XLA_FLAGS


_calm_xla()

# Compilation takes as long as it takes, and a failure has to come back in the next run.
hypothesis.settings.register_profile("keras_onlstm", deadline=None, derandomize=True)
hypothesis.settings.load_profile("keras_onlstm")


# What the backends import is millions of objects, and tracing makes more: looking through them as
# often as Python does takes 4% of the time.
gc.set_threshold(20_000, 50, 50)


@pytest.fixture(autouse=True, scope="session")
def _generators_are_registered():
    """Hypothesis asks the garbage collector for NumPy's random generator, which later is frozen."""
    hypothesis.given(hypothesis.strategies.none())(lambda none: None)()


@pytest.fixture(autouse=True, scope="module")
def _frozen_objects():
    """Takes what a module leaves behind out of garbage collection, which Keras and tests call."""
    yield
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    """JAX keeps what it compiled, most of its tests' time, each worker for itself."""
    if BACKEND == "jax" and hasattr(config, "cache"):
        import jax

        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir(f"jax-{worker}")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def pytest_report_header():
    told = os.environ.get("XLA_FLAGS") or "its defaults"
    found = f"keras {metadata.version('keras')} on {BACKEND}; shared files: {_shared()}"
    return found if BACKEND == "torch" else f"{found}\nXLA: {told}"


def pytest_collection_modifyitems(items):
    for item in items:
        for marker in item.iter_markers("backend"):
            if not marker.args or not set(marker.args) <= set(BACKENDS):
                raise pytest.UsageError(f"{item.nodeid}: backend{marker.args}, not of {BACKENDS}")
            if BACKEND not in marker.args:
                reason = f"needs the backend {' or '.join(marker.args)}, runs on {BACKEND}"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _fresh_keras(request):
    """Seeds every test, and leaves no name counter, dtype or dtype policy to the next one."""
    if request.node.get_closest_marker("keras_free"):
        yield
        return
    import keras

    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.utils.set_random_seed(0)
    yield
    # Without the garbage collection, which takes longer than most tests do.
    keras.backend.clear_session(free_memory=False)
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)


@pytest.fixture
def float64():
    """The name of the dtype, while it exists: JAX has 64 bits only where they are asked for."""
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
    """The directory with the public data sets, as their publishers lay them out."""
    return _shared_directory("data")


@pytest.fixture(scope="session")
def shared_reference():
    """The directory with the numbers of the authors' implementation."""
    return _shared_directory("reference")


@pytest.fixture(scope="session")
def tree_reference(shared_reference):
    """The arrays of `tree_lstm.npz`."""
    with np.load(shared_reference / "tree_lstm.npz") as opened:
        return dict(opened)


@pytest.fixture(scope="module")
def script(request):
    """The script that a test file names as its SCRIPT, as a module."""
    path = request.module.SCRIPT
    with commands.imported(path.parent, path.stem) as (module,):
        yield module


@pytest.fixture
def run(script, request):
    """Runs the command line of that script in this process: (exit status, stdout, stderr)."""
    return functools.partial(commands.run_script, request.module.SCRIPT, script)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A function of an example's name: the directory of its debug run, and what it printed.

    Every run is made once, by one of the workers. Tests copy what they change.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    @functools.cache
    def finished(name):
        directory, printed = shared / name / "run", shared / name / "printed.txt"
        with filelock.FileLock(shared / f"{name}.lock"):
            if not printed.exists():
                with commands.example(name) as module:
                    arguments = [*commands.DEBUG, "--output", directory]
                    status, output, errors = commands.run_script(f"{name}.py", module, *arguments)
                assert (status, commands.ours(errors)) == (0, []), errors
                printed.write_text(output)
        return directory, printed.read_text()

    return finished


def _shared():
    named = os.environ.get("KERAS_ONLSTM_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared"


def _shared_directory(name):
    directory = _shared() / name
    if directory.is_dir():
        return directory
    reason = f"no {name}/ in {_shared()}: KERAS_ONLSTM_DATA names the directory that holds it"
    if os.environ.get("KERAS_ONLSTM_REQUIRE_DATA") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
