"""What the tests of the command lines share: starting them, and reading what they leave."""

import contextlib
import hashlib
import importlib
import io
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


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
    """The environment of processes, and of their children, in which modules are not installed.

    Keras has no settings there but `variables`; what it writes goes into the directory.
    """
    (Path(directory) / "sitecustomize.py").write_text(HIDING)
    changed = environment()
    changed["PYTHONPATH"] = os.pathsep.join([str(directory), changed["PYTHONPATH"]])
    changed |= {"HIDDEN": " ".join(modules), "KERAS_HOME": str(directory)}
    changed.pop("KERAS_BACKEND", None)
    return changed | variables


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def imported(folder, *names):
    """Scripts of a folder as modules, a list, for a time: other folders may use their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield [importlib.import_module(name) for name in names]
        for name in names:
            del sys.modules[name]


def start(script, *arguments, **variables):
    """A script as a process of its own, with further environment variables."""
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment() | variables,
        text=True,
    )


def runner(script, module, monkeypatch, capsys):
    """A function that runs a script's command line in this process.

    It returns (exit status, stdout, stderr).
    """

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        status = 0
        try:
            parser, options = module.parse_arguments()
            module.report(parser, lambda: module.main(options))
        except SystemExit as error:
            status = error.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


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
    """Lines on stderr but those that TensorFlow writes when it starts."""
    foreign = re.compile(r"(WARNING: All log messages before absl|[IWE]\d{4} )")
    return [line for line in errors.splitlines() if line.strip() and not foreign.match(line)]


def contents(directory):
    """Every file below a directory and what is in it."""
    paths = sorted(Path(directory).rglob("*"))
    return {
        str(path.relative_to(directory)): path.is_file()
        and hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def refused(script, result, *parts):
    """One line on stderr that says all of `parts` in this order, and status 2."""
    status, _, errors = result
    lines = ours(errors)
    assert status == 2, f"exit status {status}"
    assert len(lines) == 1, f"{len(lines)} lines on stderr: {errors}"
    assert re.match(rf"{re.escape(Path(script).name)}( [a-z]+)?: error: ", lines[0]), lines[0]
    assert len(lines[0]) < 1500
    place = 0
    for part in map(str, parts):
        assert part in lines[0][place:], f"{part!r} is missing, or too early, in: {lines[0]}"
        place = lines[0].index(part, place) + len(part)
