"""Errors and Ctrl-C on the command line end in one line each, and TensorFlow starts silently."""

import json
import os
import signal
import subprocess
import sys

import pytest

from helpers.commands import EXAMPLES, ROOT, environment
from keras_onlstm.utils.console import ArgumentParser, at_least, report

pytestmark = pytest.mark.keras_free

COMMAND = [sys.executable, "-c", "from keras_onlstm.command_line import main; main()"]
SCRIPTS = sorted([*EXAMPLES.glob("[a-z]*.py"), *(ROOT / "export").glob("[a-z]*.py")])

HEAVY = ("keras", "tensorflow", "jax", "torch", "nltk")
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


def test_help_and_argument_errors_import_no_framework():
    completed = subprocess.run(
        [sys.executable, "-c", PARSING, " ".join(HEAVY), *map(str, SCRIPTS)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    answers = iter(json.loads(completed.stdout))
    assert len(SCRIPTS) == 10
    for script in SCRIPTS:
        status, said, imported = next(answers)
        assert (status, imported) == (0, []), script
        assert said.startswith(f"usage: {script.name} [") and "--output DIR" in said
        status, said, imported = next(answers)
        assert (status, imported) == (2, []), script
        assert said.startswith(f"{script.name}: error: unexpected argument --no-such: ")
        assert said.endswith("(--help lists the arguments)\n") and said.count("\n") == 1


def test_ctrl_c_ends_a_command_in_one_line():
    with subprocess.Popen(
        [*COMMAND, "parse"],
        stdin=-1,
        stdout=-1,
        stderr=-1,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        process.stdin.write(b"prices fell\n" * 1024)
        process.stdin.flush()
        assert process.stdout.readline() == b"(X prices fell)\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"\nkeras-onlstm: stopped.\n"
    assert process.returncode == 130


def test_closed_pipe_ends_a_command_silently():
    with subprocess.Popen(
        [*COMMAND, "parse"], stdin=-1, stdout=-1, stderr=-1, env=environment()
    ) as process:
        process.stdout.close()
        process.stdin.write(b"prices fell\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--unit", "did you mean --units?"),
        ("--helpp=1", "did you mean --help?"),
        ("--slots", "belongs to --model prpn"),
        ("word", "unknown"),
        ("--set", "every value has a flag of its own, such as --units 300"),
        ("--hosts", "it is --num-processes now"),
    ],
)
def test_unknown_argument_suggests_the_nearest(flag, hint, capsys):
    parser = ArgumentParser(prog="test")
    parser.add_argument("--units")
    parser.elsewhere["--slots"] = "belongs to --model prpn"
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(["--units", "3", flag])
    said = f"unexpected argument {flag.partition('=')[0]}: {hint} (--help lists the arguments)"
    assert (caught.value.code, capsys.readouterr().err) == (2, f"test: error: {said}\n")


@pytest.mark.parametrize("text", ["0", "-3", "2.5", "many", ""])
def test_integers_below_the_minimum_raise(text, capsys):
    parser = ArgumentParser(prog="test")
    parser.add_argument("--steps", type=at_least(1))
    assert parser.parse_args(["--steps", "1"]).steps == 1
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(["--steps", text])
    (line,) = capsys.readouterr().err.splitlines()
    assert caught.value.code == 2 and line.startswith("test: error: argument --steps: ")
    assert f"{text!r}" in line or f"{text} is not an integer, 1 or above" in line


def run(main):
    with pytest.raises(SystemExit) as caught:
        report(ArgumentParser(prog="test"), main)
    return caught.value.code


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize("error", [ValueError, OSError, ImportError])
def test_user_errors_are_one_line(error, capfd):
    assert run(raising(error("a.txt:\nno such file."))) == 2
    assert capfd.readouterr().err == "test: error: a.txt: no such file.\n"


def test_ctrl_c_shows_how_to_resume(capfd):
    assert run(raising(KeyboardInterrupt("Add --resume."))) == 130
    assert capfd.readouterr().err == "\ntest: stopped. Add --resume.\n"


def test_defects_are_not_hidden():
    with pytest.raises(TypeError, match="a defect"):
        report(ArgumentParser(prog="test"), raising(TypeError("a defect")))


NOISY = """
import os
os.write(2, b"I0000 00:00:1795432765.971726    6876 cudart_stub.cc:31] no drivers\\n")
if os.environ["DAMAGED"]:
    raise ImportError("cannot load")
"""
IMPORTING = """
import importlib.util, os
from keras_onlstm.utils.console import ArgumentParser, report

def main():
    assert importlib.util.find_spec("tensorflow")  # a search is not yet an import
    import tensorflow
    os.write(2, b"a later line\\n")
    print(os.environ["TF_CPP_MIN_LOG_LEVEL"])

report(ArgumentParser(prog="test"), main)
"""


def silent_environment(**variables):
    changed = environment() | variables
    del changed["TF_CPP_MIN_LOG_LEVEL"]
    return changed


@pytest.mark.parametrize("damaged", ["", "1"])
@pytest.mark.parametrize("level", [None, "0"])
def test_tensorflow_starts_silently_unless_it_fails_or_a_level_is_set(tmp_path, damaged, level):
    (tmp_path / "tensorflow.py").write_text(NOISY)
    variables = silent_environment(DAMAGED=damaged) | (
        {"TF_CPP_MIN_LOG_LEVEL": level} if level else {}
    )
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path), variables["PYTHONPATH"]])
    completed = subprocess.run(
        [sys.executable, "-c", IMPORTING], capture_output=True, text=True, env=variables
    )
    assert ("cudart_stub" in completed.stderr) == bool(damaged or level)
    if damaged:
        assert completed.returncode == 2 and completed.stderr.endswith("test: error: cannot load\n")
    else:
        assert completed.returncode == 0 and completed.stderr.endswith("a later line\n")
        assert completed.stdout == f"{level or 3}\n"
