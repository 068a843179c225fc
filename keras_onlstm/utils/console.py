"""Command lines: one-line messages for errors and Ctrl-C, tables of results, progress bars."""

import argparse
import difflib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from keras_onlstm.utils.libraries import around_import, choose_backend, keras_not_installed
from keras_onlstm.utils.validation import SEEDS

_FORMER = {  # flags of earlier versions
    "--set": "every value has a flag of its own, such as --units 300",
    "--precision": "it is --compute-dtype now",
    "--start": "it is --initialization now",
    "--start-from": "it is --init-from now",
    "--hosts": "it is --num-processes now",
    "--host-id": "it is --process-id now",
    "--member": "it is --model-index now",
}


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and suggest the nearest flag.

    `elsewhere` maps flags that it does not have to hints for the error message.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **kwargs})
        self.elsewhere = dict(_FORMER)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = self.parse_known_args(args, namespace)
        parser = getattr(options, "parser", self)  # of a subcommand
        for flag in (text.partition("=")[0] for text in unknown):
            near = difflib.get_close_matches(flag, parser._option_string_actions, 1, 0.7)
            hint = parser.elsewhere.get(flag) or (f"did you mean {near[0]}?" if near else "unknown")
            parser.error(f"unexpected argument {flag}: {hint}")
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (--help lists the arguments)\n")


def at_least(minimum: int) -> Callable[[str], int]:
    """The `type` of an option that takes integers from `minimum`."""

    def integer(text: str) -> int:
        number = int(text)
        if number < minimum:
            raise argparse.ArgumentTypeError(f"{number} is not an integer, {minimum} or above")
        return number

    return integer


def seed(text: str) -> int:
    """The `type` of an option `--seed`."""
    number = int(text)
    if not SEEDS.minimum <= number <= SEEDS.maximum:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {SEEDS.maximum}")
    return number


def table(header: Sequence, rows: Iterable[Sequence]) -> str:
    """A text table. The first column is aligned left, the others right.

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
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def status_of(error: BaseException) -> int:
    """Exit status for an exception: 130 for Ctrl-C, 2 for errors that users can fix, else 1."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, (ValueError, OSError, ImportError)) else 1


@contextmanager
def silenced(replay: bool = True) -> Iterator[None]:
    """A context that suppresses standard error, including that of C++ libraries.

    If it ends with an exception, it writes the suppressed text if `replay` is true.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as suppressed:
        os.dup2(suppressed.fileno(), 2)
        try:
            yield
        except Exception:
            suppressed.seek(0)
            if replay:
                os.write(stderr, suppressed.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


def report(parser: argparse.ArgumentParser, main: Callable[[], object]) -> None:
    """Runs a command, on another backend of Keras if the configured one is not installed.

    Errors that users can fix end in one line with the exception's message and exit status 2, Ctrl-C
    in one line and exit status 130.
    """
    choose_backend(parser.prog)
    if "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        # TensorFlow logs a few lines before it reads the variable.
        around_import("tensorflow", silenced)
    try:
        main()
        print(end="", flush=True)  # raises here, not at exit, if standard output is closed
    except KeyboardInterrupt as error:
        parser.exit(130, f"\n{parser.prog}: stopped. {error}".rstrip() + "\n")
    except BrokenPipeError:  # the reader, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        parser.exit(1)
    except MemoryError as error:
        parser.exit(1, f"{parser.prog}: error: not enough memory ({error})\n")
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "keras":
            error = keras_not_installed("this command", error)
        parser.exit(2, f"{parser.prog}: error: {' '.join(str(error).split())}\n")


def progress_bar(unit: str, **options: Any) -> Any:
    """A `tqdm.tqdm` with rate and time left, shown on terminals only, after 3 seconds."""
    from tqdm import tqdm

    defaults = {"disable": None, "dynamic_ncols": True, "unit_scale": True, "delay": 3}
    return tqdm(unit=f" {unit}", **(defaults | options))


def advance(bar: Any, done: int, total: int | None = None) -> None:
    """Sets the position of a progress bar, and its total if known."""
    bar.total = total
    bar.update(done - bar.n)
