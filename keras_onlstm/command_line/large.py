"""Options and processing of large files, shared by `parse` and `score`."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from keras_onlstm.utils.console import at_least
from keras_onlstm.utils.progress import advance, progress_bar

__all__ = ["add_large", "check_large", "process"]

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
