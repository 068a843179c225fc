"""Large files on a command line: what `parse` and `score` share."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from keras_onlstm.utils.console import at_least
from keras_onlstm.utils.progress import advance, progress_bar

__all__ = ["add_large", "check_large", "process"]

# The options, and what they are by default; `None` of workers: as many as cores.
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
    """Refuses what does not go together.

    Args:
        options: of the command line, with `output`, `sentences` and `file`.
        sharded: whether a directory of shards is asked for.
        forms: the formats in which they can be written, for messages.
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
    """Does a task with all rows of `--file`, and says what came of it.

    Args:
        options: of the command line.
        task: of `scale.tasks`, with the defaults of `--column` and `--max-words`.

    Raises:
        OSError: as `scale.corpus.process`.
        ValueError: likewise.
        ImportError: likewise.
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
