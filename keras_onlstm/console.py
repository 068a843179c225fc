"""What all command lines share: the user's mistakes and Ctrl-C come out in one line.

A command imports this module before all that takes time. Ctrl-C while the rest is imported, where
it may surface as any error or as none, then ends the process at once.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from keras_onlstm.files import words_of

__all__ = ["ArgumentParser", "report"]


class _Interrupt:
    """What Ctrl-C does: it ends a command at once, unless there may be something to tidy up."""

    orderly = False
    pressed = False

    def __call__(self, number, frame):
        if not self.orderly and _is_of_a_command(frame):
            os.write(2, f"\n{os.path.basename(sys.argv[0])}: stopped.\n".encode())
            os._exit(130)
        self.pressed = True
        signal.default_int_handler(number, frame)


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


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (--help lists the arguments)\n")


def report(
    parser: argparse.ArgumentParser, main: Callable[[], object], writes: bool = True
) -> None:
    """Runs a command; what the user can mend ends in one line and exit status 2.

    Ctrl-C ends it in one line and exit status 130. That line has what the `KeyboardInterrupt` says.

    Args:
        parser: `ArgumentParser`, which has the name of the command.
        main: function without arguments.
        writes: whether it writes files. One that does not need not be left in good order, and ends
            at once.

    Example:

    >>> from keras_onlstm.console import ArgumentParser, report
    >>> report(ArgumentParser(prog="greet"), lambda: print("hello"))
    hello
    """
    _interrupt.orderly, _interrupt.pressed = writes, False
    try:
        main()
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        # Libraries turn what Ctrl-C raises in them into errors of their own.
        if _interrupt.pressed or isinstance(error, KeyboardInterrupt):
            hint = f" {error}" if isinstance(error, KeyboardInterrupt) and error.args else ""
            parser.exit(130, f"\n{parser.prog}: stopped.{hint}\n")
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            parser.exit(1)
        if not isinstance(error, (ValueError, OSError, ImportError)):
            raise
        said = words_of(error) if isinstance(error, OSError) else str(error)
        message = " ".join(said.split())
        parser.exit(2, f"{parser.prog}: error: {message}\n")
    finally:
        _interrupt.orderly = False
