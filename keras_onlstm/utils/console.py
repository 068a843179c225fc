"""What all command lines share: mistakes and Ctrl-C come out in one line, results in a table.

A command imports this module before all that takes time. Ctrl-C while the rest is imported, Keras
inside the command too, where it may surface as any error or as none, then ends the process at once.

What TensorFlow logs of the machine is left out, unless TF_CPP_MIN_LOG_LEVEL is set.
"""

import argparse
import importlib.util
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from keras_onlstm.utils.files import words_of
from keras_onlstm.utils.libraries import choose_backend, keras_not_installed
from keras_onlstm.utils.reading import SEEDS

__all__ = ["ArgumentParser", "report", "seed", "status_of", "table"]


class _Interrupt:
    """What Ctrl-C does: it ends a command at once, unless there may be something to tidy up."""

    orderly = False
    pressed = False
    errors = 2  # the file descriptor of standard error

    def __call__(self, number, frame):
        if (not self.orderly or _imports_keras(frame)) and _is_of_a_command(frame):
            os.write(self.errors, f"\n{os.path.basename(sys.argv[0])}: stopped.\n".encode())
            os._exit(130)
        self.pressed = True
        signal.default_int_handler(number, frame)


def _imports_keras(frame):
    """Whether Keras is being imported. A command has nothing to tidy up then."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "keras":
            return True
        frame = frame.f_back
    return False


def _is_of_a_command(frame):
    """Whether a script is being executed whose code is its own, an import's, or this package's.

    Test runners call functions of others, notebooks and prompts have no file.
    """
    inner = None
    while frame.f_back is not None:
        inner, frame = frame, frame.f_back
    calls = "__main__" if inner is None else inner.f_globals.get("__name__", "")
    script = frame.f_code.co_name == "<module>" and "__file__" in frame.f_globals
    return script and calls.partition(".")[0] in ("__main__", "importlib", "keras_onlstm")


_interrupt = _Interrupt()
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _interrupt)


# The level is that of most of its logs. While it is imported there are some that heed no level.
_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_NOISE = re.compile(rb"(WARNING: All log messages before absl|[IW]\d{4} )")


class _QuietStart:
    """Finds TensorFlow, with a loader that leaves its noise out. Other lines come out after it."""

    searching = False

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "tensorflow" or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader

            def execute(module):
                sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
                del loader.exec_module  # which uncovers its own
                _quietly(lambda: loader.exec_module(module))

            loader.exec_module = execute
        return spec


def _quietly(function):
    sys.stderr.flush()
    try:
        errors = os.dup(2)
    except OSError:  # there is none
        return function()
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        _interrupt.errors = errors
        try:
            return function()
        finally:
            sys.stderr.flush()
            os.dup2(errors, 2)
            _interrupt.errors = 2
            os.close(errors)
            said.seek(0)
            for line in said:
                if not _NOISE.match(line):
                    os.write(2, line)


if _LOG_LEVEL not in os.environ:
    os.environ[_LOG_LEVEL] = "3"
    sys.meta_path = [_QuietStart(), *sys.meta_path]


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (--help lists the arguments)\n")

    def check_least(self, options: argparse.Namespace, **least: int) -> None:
        """Refuses options that are given and too small.

        Args:
            options: that were parsed.
            **least: names of options, and the least value of each.
        """
        for name, smallest in least.items():
            value = vars(options)[name]
            if value is not None and value < smallest:
                self.error(f"--{name.replace('_', '-')} {value}: {smallest} or above")


def seed(text: str) -> int:
    """The type of an option `--seed`.

    Args:
        text: that was given.

    Returns:
        Integer.

    Raises:
        argparse.ArgumentTypeError: if no random generator takes it.

    Example:

    >>> from keras_onlstm.utils.console import seed
    >>> seed("7")
    7
    """
    number = int(text)
    if not SEEDS.least <= number <= SEEDS.most:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {SEEDS.most}")
    return number


def table(header: Sequence, rows: Iterable[Sequence]) -> str:
    """Columns of text, the first to the left, the others to the right.

    Args:
        header: titles of the columns.
        rows: of as many values each.

    Returns:
        Text of many lines.

    Example:

    >>> from keras_onlstm.utils.console import table
    >>> print(table(["word", "count"], [["the", 12], ["company", 3]]))
    word     count
    --------------
    the         12
    company      3
    """
    cells = [list(map(str, row)) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def status_of(error: BaseException) -> int:
    """The exit status of a command that an error ends.

    Args:
        error: what was raised.

    Returns:
        130 after Ctrl-C, 2 for what the user can mend, else 1.

    Example:

    >>> from keras_onlstm.utils.console import status_of
    >>> [status_of(error) for error in (KeyboardInterrupt(), OSError(), ZeroDivisionError())]
    [130, 2, 1]
    """
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, (ValueError, OSError, ImportError)) else 1


def report(
    parser: argparse.ArgumentParser, main: Callable[[], object], writes: bool = True
) -> None:
    """Runs a command; what the user can mend ends in one line and exit status 2.

    Ctrl-C ends it in one line and exit status 130. That line has what the `KeyboardInterrupt` says.

    Where Keras's backend is not installed and another one is, Keras runs on that.

    Args:
        parser: `ArgumentParser`, which has the name of the command.
        main: function without arguments.
        writes: whether it writes files. One that does not need not be left in good order, and ends
            at once.

    Example:

    >>> from keras_onlstm.utils.console import ArgumentParser, report
    >>> report(ArgumentParser(prog="greet"), lambda: print("hello"))
    hello
    """
    _interrupt.orderly, _interrupt.pressed = writes, False
    choose_backend(parser.prog)
    try:
        main()
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        # After Ctrl-C in a library, its own error may come here instead of a KeyboardInterrupt.
        if _interrupt.pressed or isinstance(error, KeyboardInterrupt):
            hint = f" {error}" if isinstance(error, KeyboardInterrupt) and error.args else ""
            parser.exit(130, f"\n{parser.prog}: stopped.{hint}\n")
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            parser.exit(1)
        if status_of(error) == 1:
            raise
        if isinstance(error, ModuleNotFoundError) and error.name == "keras":
            error = keras_not_installed("this command", error)
        said = words_of(error) if isinstance(error, OSError) else str(error)
        message = " ".join(said.split())
        parser.exit(status_of(error), f"{parser.prog}: error: {message}\n")
    finally:
        _interrupt.orderly = False
