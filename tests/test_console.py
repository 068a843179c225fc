"""Ctrl-C and mistakes on the command line: one line each, whatever the libraries make of them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import EXAMPLES, ROOT, environment, ours
from keras_onlstm.utils import console
from keras_onlstm.utils.console import ArgumentParser, report

pytestmark = pytest.mark.keras_free

COMMAND = "import sys\nfrom keras_onlstm.command_line import main\nsys.exit(main())\n"
SCRIPTS = sorted([*EXAMPLES.glob("[a-z]*.py"), *(ROOT / "export").glob("[a-z]*.py")])


@pytest.fixture(autouse=True)
def heeded():
    """Ctrl-C, which processes in the background are started to ignore."""
    before = signal.signal(signal.SIGINT, console._interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(script, module, *arguments):
    """Ctrl-C as soon as a module was imported: the exit status, and what else was said."""
    said = []
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        for line in process.stderr:
            if not line.startswith("import time:"):
                said.append(line)
            elif line.rpartition("|")[2].strip() == module:
                process.send_signal(signal.SIGINT)
        output = process.stdout.read()
    return process.returncode, output, ours("".join(said))


HEAVY = ("keras", "tensorflow", "jax", "torch", "matplotlib", "nltk")
PARSING = """
import contextlib, io, json, os, runpy, sys
heavy, *paths = sys.argv[1:]
answers = []
for path in paths:
    sys.path.insert(0, os.path.dirname(path))
    for argument in ("--help", "--no-such"):
        sys.argv, said, status = [path, argument], io.StringIO(), None
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try: runpy.run_path(path, run_name="__main__")
            except SystemExit as error: status = error.code
        answers.append([status, said.getvalue(), sorted({*heavy.split()} & {*sys.modules})])
    sys.modules.pop("_common", None)
    del sys.path[0]
print(json.dumps(answers))
"""


def test_help_and_wrong_arguments_wait_for_no_framework():
    done = subprocess.run(
        [sys.executable, "-c", PARSING, " ".join(HEAVY), *map(str, SCRIPTS)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    answers = iter(json.loads(done.stdout))
    for script in SCRIPTS:
        status, said, imported = next(answers)
        assert (status, imported) == (0, []), script
        assert said.startswith(f"usage: {script.name} [-h]") and "--output DIR" in said
        wrong = "error: unrecognized arguments: --no-such (--help lists the arguments)"
        assert next(answers) == [2, f"{script.name}: {wrong}\n", []]


def test_all_scripts_are_there():
    assert len(SCRIPTS) == 10


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_ctrl_c_while_a_script_is_imported(script):
    found = interrupted(script, "numpy", "--preset", "smoke")
    assert found == (130, "", [f"{script.name}: stopped."])


def test_ctrl_c_while_a_script_imports_keras(tmp_path):
    script, output = EXAMPLES / "logic_inference.py", tmp_path / "run"
    found = interrupted(
        script, "tensorflow.python.tf2", "--preset", "smoke", "--output", str(output)
    )
    assert found == (130, "", ["logic_inference.py: stopped."])
    assert not output.exists()


@pytest.mark.parametrize("module", ["keras_onlstm.utils.console", "numpy", "tensorflow.python.tf2"])
def test_ctrl_c_while_the_command_is_imported(tmp_path, module):
    script = tmp_path / "keras-onlstm"
    script.write_text(COMMAND)
    found = interrupted(script, module, "score", "a dog")
    assert found == (130, "", ["keras-onlstm: stopped."])


def run(main):
    with pytest.raises(SystemExit) as caught:
        report(ArgumentParser(prog="test"), main)
    return caught.value.code


def test_ctrl_c_that_a_library_turns_into_another_error(capfd):
    def library():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    assert run(library) == 130 and capfd.readouterr().err == "\ntest: stopped.\n"

    def without():
        raise ImportError("initialization failed")

    assert run(without) == 2
    assert capfd.readouterr().err == "test: error: initialization failed\n"


def test_what_ctrl_c_leaves_is_said(capfd):
    def main():
        raise KeyboardInterrupt("The same command goes on.")

    assert run(main) == 130
    assert capfd.readouterr().err == "\ntest: stopped. The same command goes on.\n"


@pytest.mark.parametrize("writes", [True, False])
def test_other_programs_keep_ctrl_c(writes):
    """Such as this one, which would not get as far as it does here."""

    def main():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    report(ArgumentParser(prog="test"), main, writes)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("flush", [True, False])
def test_standard_output_that_is_full(flush):
    code = (
        "from keras_onlstm.utils.console import ArgumentParser, report\n"
        f"report(ArgumentParser(prog='test'), lambda: print('a tree', flush={flush}))"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=-1, env=environment(), text=True
        )
    said = "standard output: cannot be written (No space left on device). Make room on the disk."
    assert (done.returncode, done.stderr) == (2, f"test: error: {said}\n")


def test_defects_are_not_hidden():
    def main():
        raise TypeError("a defect")

    with pytest.raises(TypeError, match="a defect"):
        report(ArgumentParser(prog="test"), main)


# --- The noise of TensorFlow ---------------------------------------------------------------------

NOISY = """
import os
os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called are written\\n")
os.write(2, b"I0000 00:00:1795432765.971726    6876 cudart_stub.cc:31] no drivers\\n")
os.write(2, b"E0000 00:00:1795432765.971726    6876 loader.cc:1] a library is damaged\\n")
if os.environ["DAMAGED"]:
    raise ImportError("cannot load")
level = os.environ["TF_CPP_MIN_LOG_LEVEL"]
"""
IMPORTING = """
import keras_onlstm.utils.console
import importlib.util, os
assert importlib.util.find_spec("tensorflow")  # a search is not yet an import
import tensorflow
os.write(2, b"I0000 of its own\\n")
print(tensorflow.level, tensorflow.__spec__.loader.exec_module.__qualname__)
"""


@pytest.mark.parametrize("damaged", ["", "1"])
@pytest.mark.parametrize("level", [None, "0"])
def test_what_tensorflow_says_at_its_start(tmp_path, damaged, level):
    """Noise is left out, unless a level was set; errors, and whatever comes later, are not."""
    (tmp_path / "tensorflow.py").write_text(NOISY)
    variables = environment() | {"DAMAGED": damaged, "TF_CPP_MIN_LOG_LEVEL": level}
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path), variables["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in variables.items() if value is not None},
    )
    said = done.stderr
    assert "a library is damaged" in said
    assert ("cudart_stub" in said) == ("before absl" in said) == (level == "0")
    if damaged:
        assert said.endswith("ImportError: cannot load\n") and done.returncode == 1
    else:
        assert said.endswith("I0000 of its own\n")
        assert done.stdout == f"{level or 3} _LoaderBasics.exec_module\n"
