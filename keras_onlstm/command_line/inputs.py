"""Inputs that commands share: sentences, large files, and the language model."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from keras_onlstm.utils.console import advance, at_least, progress_bar
from keras_onlstm.utils.files import lines

__all__ = [
    "add_exported",
    "add_language_model",
    "add_large",
    "add_sentences",
    "check_files",
    "check_large",
    "nothing_to",
    "process",
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


# The options and their defaults; `workers=None` means one per core.
_DEFAULTS = {"workers": None, "ray": None, "rows": 10_000, "max_words": None, "column": "text"}


def add_large(parser: argparse.ArgumentParser) -> None:
    """Adds the options of large files."""
    add = parser.add_argument
    add(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="of shards: processes (default: one a core)",
    )
    add("--ray", metavar="ADDRESS", help="of shards: read them on this Ray cluster, auto finds one")
    add("--rows", type=at_least(1), metavar="N", help="of shards: lines in each (default: 10000)")
    add(
        "--max-words",
        type=at_least(1),
        metavar="N",
        help="of shards: what has more words is not read",
    )
    add("--column", help="of shards: column of Parquet files that has the text (default: text)")


def check_large(options: argparse.Namespace, sharded: bool, forms: str) -> None:
    """Ends the command if options are incompatible.

    Args:
        options: parsed arguments, with `output`, `sentences` and `file`.
        sharded: whether the output is a directory of shards.
        forms: formats of shards, for error messages.
    """
    error = options.parser.error
    if not sharded:
        for name in _DEFAULTS:
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                error(f"{option}: goes with --output DIR, and {forms} as --format")
        for path in options.file:
            if Path(path).suffix == ".parquet":
                error(f"{path}: a Parquet file needs --output DIR, and {forms} as --format")
    elif options.sentences or not options.file:
        error(
            "--output DIR: takes --file FILE, and no sentences. A name with a suffix, such as "
            f"{options.output}.txt, is a file"
        )


def process(options: argparse.Namespace, task: Any) -> None:
    """Applies a task to all rows of `--file`, and prints a summary.

    Args:
        options: parsed arguments.
        task: task of `scale.tasks`; `--column` and `--max-words` replace its values.

    Raises:
        OSError: see `scale.corpus.process`.
        ValueError: see `scale.corpus.process`.
        ImportError: if a library that the task needs, or Ray, is not installed.
    """
    from keras_onlstm.scale import corpus

    given: dict[str, Any] = {
        name: default if getattr(options, name) is None else getattr(options, name)
        for name, default in _DEFAULTS.items()
    }
    task = task._replace(column=given["column"], max_words=given["max_words"])
    with progress_bar("rows") as bar:
        found = corpus.process(
            options.file,
            options.output,
            task,
            given["rows"],
            given["workers"],
            partial(advance, bar),
            given["ray"],
        )
    left = f", {found.errors:,} of which could not be read" if found.errors else ""
    print(f"{options.output}: {found.rows:,} rows{left}; {found.words:,} words")
