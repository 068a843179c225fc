"""Inputs that commands share: sentences and the language model."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from keras_onlstm.utils.reading import lines

__all__ = [
    "add_exported",
    "add_language_model",
    "add_sentences",
    "check_files",
    "nothing_to",
    "report_unknown",
    "sentences",
]

STANDARD_INPUT = "standard input"
STDIN = "-"  # its name on a command line
NAMED = 20  # most unknown words in a warning, which is one line


def add_sentences(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `sentences` reads."""
    add = parser.add_argument
    add(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="or -, standard input, which is the default too: one a line",
    )
    add("--file", action="append", default=[], metavar="FILE", help="one sentence a line")


def add_exported(parser: argparse.ArgumentParser, formats: str) -> None:
    """Adds the options of exported files, in the given formats."""
    add = parser.add_argument
    add("--provider", choices=("cpu", "cuda"), default="cpu", help="of .onnx files; default: cpu")
    add("--threads", type=int, metavar="N", help=f"of {formats} files")


def add_language_model(parser: argparse.ArgumentParser, files: str) -> None:
    """Adds the options of a language model; the help text names its `files`."""
    add = parser.add_argument
    add("--model", metavar="PATH", help=f"{files}, or a run; default: the package's")
    add(
        "--model-index",
        type=int,
        default=1,
        metavar="N",
        help="of several models (default: the first)",
    )
    add(
        "--characters",
        action="store_true",
        help="the model reads characters; of a run it is known whether it does",
    )


def check_files(options: argparse.Namespace) -> None:
    """Checks that the files of `--file` exist, before any slow work.

    Args:
        options: parsed arguments with `file`.

    Raises:
        FileNotFoundError: if one is missing.
        IsADirectoryError: if one is a directory.
    """
    for path in options.file:
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path}: is a directory. Name its files: --file FILE.")
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such file.")


def sentences(options: argparse.Namespace) -> Iterator[str]:
    """Yields the sentences of the command line, of files, and of standard input (`-`).

    Args:
        options: parsed arguments with `sentences` and `file`; standard input if both are empty.

    Yields:
        Strings.

    Raises:
        ValueError: if a line is not UTF-8 text; the message has its number.
    """
    for sentence in options.sentences:
        if sentence == STDIN:
            yield from lines(STANDARD_INPUT, sys.stdin.buffer)
        else:
            yield sentence
    for path in options.file:
        with open(path, "rb") as file:
            yield from lines(path, file)
    if not options.sentences and not options.file:
        yield from lines(STANDARD_INPUT, sys.stdin.buffer)


def nothing_to(verb: str, options: argparse.Namespace) -> ValueError:
    """Returns the error for an input without words.

    Args:
        verb: verb for the command, such as `parse`.
        options: parsed arguments with `sentences` and `file`.

    Returns:
        `ValueError`.
    """
    places = [*(["the text"] if options.sentences else []), *options.file] or [STANDARD_INPUT]
    contain = "contains" if len(places) == 1 else "contain"
    return ValueError(f"Nothing to {verb}: {', '.join(places)} {contain} no words.")


def report_unknown(words: Iterable[str]) -> None:
    """Prints the words that a model reads as `<unk>` to standard error, in one line.

    Args:
        words: iterable of unknown words, which may repeat.
    """
    from keras_onlstm.text.vocabulary import UNKNOWN

    names = [f'"{word}"' for word in dict.fromkeys(words) if word != UNKNOWN]
    if names:
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        line = f"Unknown words: {', '.join(names[:NAMED])}{more}. The model reads them as <unk>."
        print(line, file=sys.stderr)
