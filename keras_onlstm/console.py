"""What all command lines share: the user's mistakes come out in one line."""

import argparse
import os
import sys

__all__ = ["ArgumentParser", "report"]


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} (--help lists the arguments)\n")


def report(parser, main, stopped="stopped."):
    """Runs a command; what the user can mend ends in one line and exit status 2.

    Args:
        parser: `ArgumentParser`, which has the name of the command.
        main: function without arguments.
        stopped: what to say when the user interrupts it, which is exit status 130.

    Example:

    >>> from keras_onlstm.console import ArgumentParser, report
    >>> report(ArgumentParser(prog="greet"), lambda: print("hello"))
    hello
    """
    try:
        main()
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            parser.exit(1)
        message = " ".join(str(error).split())
        parser.exit(2, f"{parser.prog}: error: {message}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"\n{parser.prog}: {stopped}\n")
