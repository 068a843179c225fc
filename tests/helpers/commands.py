"""Runs scripts and commands in tests."""

import contextlib
import functools
import hashlib
import importlib
import io
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# Arguments with which an example takes seconds.
DEBUG = ["--preset", "debug"]


def environment():
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TF_CPP_MIN_LOG_LEVEL": "3"}


HIDING = """
import os, sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = path is None and name in os.environ["HIDDEN"].split()
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""


def without(directory, *modules, **variables):
    """Environment of processes in which some modules are not installed.

    Keras is configured by `variables` only and writes to the directory.
    """
    (Path(directory) / "sitecustomize.py").write_text(HIDING)
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([str(directory), env["PYTHONPATH"]])
    env |= {"HIDDEN": " ".join(modules), "KERAS_HOME": str(directory)}
    env.pop("KERAS_BACKEND", None)
    return env | variables


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def imported(folder, *names):
    """Imports scripts of a folder as a list of modules, and forgets them at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield [importlib.import_module(name) for name in names]
        for name in names:
            sys.modules.pop(name, None)


@contextlib.contextmanager
def example(name):
    """Imports an example. Meanwhile the package's grammar generates few minimal pairs."""
    from keras_onlstm.datasets import syntactic_grammar

    few = functools.cache(functools.partial(syntactic_grammar.generate, count=12))
    with (
        imported(EXAMPLES, name) as (module,),
        mock.patch.object(syntactic_grammar, "generate", few),
    ):
        yield module


def start(script, *arguments, **variables):
    """Starts a script as a process with additional environment variables."""
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment() | {"PYTHONFAULTHANDLER": "1"} | variables,
        text=True,
    )


def captured(command):
    """Calls a function and captures its exit status, stdout and stderr."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command()
        except SystemExit as error:
            status = error.code
    return status, out.getvalue(), err.getvalue()


def run_script(script, module, *arguments):
    """Runs a script's command line in this process: (exit status, stdout, stderr)."""

    def command():
        parser, options = module.parse_arguments()
        module.report(parser, lambda: module.main(options))

    with mock.patch.object(sys, "argv", [str(script), *map(str, arguments)]):
        return captured(command)


def run_command(*arguments):
    """Runs `keras-onlstm` in this process: (exit status, stdout, stderr)."""
    from keras_onlstm import command_line

    return captured(lambda: command_line.main(list(map(str, arguments))))


def runner(script, module, *_):
    """`run_script` for a script and its module."""
    return functools.partial(run_script, script, module)


def command_runner(monkeypatch, capsys):
    """A function that runs `keras-onlstm` in this process: (exit status, stdout, stderr)."""
    from keras_onlstm import command_line

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = 0
        try:
            command_line.main(list(map(str, arguments)))
        except SystemExit as error:
            status = error.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def ours(errors):
    """Lines on stderr, except for start-up messages of TensorFlow."""
    foreign = re.compile(r"(WARNING: All log messages before absl|[IWE]\d{4} )")
    return [line for line in errors.splitlines() if line.strip() and not foreign.match(line)]


def contents(directory):
    """Hashes of all files below a directory."""
    paths = sorted(Path(directory).rglob("*"))
    return {
        str(path.relative_to(directory)): path.is_file()
        and hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def refused(script, result, *parts):
    """Checks for exit status 2 and one line on stderr that contains all `parts`."""
    status, _, errors = result
    assert status == 2, f"exit status {status}: {errors}"
    (line,) = ours(errors)
    assert re.match(rf"{re.escape(Path(script).name)}( [a-z]+)?: error: ", line), line
    assert len(line) < 1500
    for part in map(str, parts):
        assert part in line, f"{part!r} is missing in: {line}"
