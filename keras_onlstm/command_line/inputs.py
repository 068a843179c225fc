"""Options and inputs that commands share: sentences, large files, the model's options."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from keras_onlstm.utils.console import advance, at_least, progress_bar
from keras_onlstm.utils.files import lines

STANDARD_INPUT = "standard input"
STDIN = "-"  # its name on a command line
MAX_LISTED = 20  # unknown words in a warning, which is one line


# fmt: off
def add_sentences(parser: argparse.ArgumentParser, verb: str, lines_of_file: str) -> None:
    """Adds the options that `sentences` reads."""
    add = parser.add_argument
    add("sentences", nargs="*", metavar="SENTENCE",
        help=f"Sentences to {verb}. Without any, reads one per line from standard input. - stands "
        "for standard input too.")
    add("--file", action="append", default=[], metavar="FILE",
        help=f"Text file. {lines_of_file} May be repeated.")


def add_exported(parser: argparse.ArgumentParser, formats: str) -> None:
    """Adds the options of exported files, in the given formats."""
    add = parser.add_argument
    add("--provider", choices=("cpu", "cuda"), default="cpu",
        help="Processor that runs an .onnx model (default: cpu).")
    add("--threads", type=int, metavar="N",
        help=f"Threads that run a model in {formats} format (default: the runtime decides).")


def add_language_model(parser: argparse.ArgumentParser, files: str) -> None:
    """Adds the options of a language model; the help text names its `files`."""
    add = parser.add_argument
    add("--model", metavar="PATH",
        help=f"Trained model: {files}, or the folder of a run (default: the package's model).")
    add("--model-index", type=int, default=1, metavar="N",
        help="Use model N of a file that holds several (default: 1).")
    add("--characters", action="store_true",
        help="The model reads characters. Not needed for a run.")


# fmt: on
def check_files(options: argparse.Namespace) -> None:
    """Checks that the files of `--file` exist, before any slow work."""
    for path in options.file:
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path}: is a directory. Pass its files: --file FILE.")
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such file.")


def sentences(options: argparse.Namespace) -> Iterator[str]:
    """Yields the sentences of the command line, of files, and of standard input (`-`).

    Raises `ValueError` if a line is not UTF-8 text.
    """
    from_stdin = [] if options.sentences or options.file else [STDIN]
    for sentence in options.sentences or from_stdin:
        if sentence == STDIN:
            yield from lines(STANDARD_INPUT, sys.stdin.buffer)
        else:
            yield sentence
    for path in options.file:
        with open(path, "rb") as file:
            yield from lines(path, file)


def no_words(verb: str, options: argparse.Namespace) -> ValueError:
    """The error for an input without words; the verb is that of the command."""
    inputs = [*(["the text"] if options.sentences else []), *options.file] or [STANDARD_INPUT]
    contain = "contains" if len(inputs) == 1 else "contain"
    return ValueError(f"Nothing to {verb}: {', '.join(inputs)} {contain} no words.")


def report_unknown(words: Iterable[str]) -> None:
    """Lists the words that a model reads as `<unk>` on standard error, in one line."""
    from keras_onlstm.text.vocabulary import UNKNOWN

    names = [f'"{word}"' for word in dict.fromkeys(words) if word != UNKNOWN]
    if names:
        more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
        shown = ", ".join(names[:MAX_LISTED])
        print(f"Unknown words: {shown}{more}. The model reads them as <unk>.", file=sys.stderr)


# The options and their defaults; `workers=None` means one per core.
_DEFAULTS = {"workers": None, "ray": None, "rows": 10_000, "max_words": None, "column": "text"}


# fmt: off
def add_large(parser: argparse.ArgumentParser) -> None:
    """Adds the options of large files."""
    add = parser.add_argument_group("large files (--file FILE --output DIR)").add_argument
    add("--workers", type=at_least(1), metavar="N",
        help="Number of processes (default: one per core).")
    add("--ray", metavar="ADDRESS",
        help="Address of a Ray cluster to run on. auto finds the cluster of this machine.")
    add("--rows", type=at_least(1), metavar="N",
        help="Number of lines per output file (default: 10000).")
    add("--max-words", type=at_least(1), metavar="N", help="Skip texts longer than N words.")
    add("--column", help="Column of Parquet files that contains the text (default: text).")


# fmt: on
def check_large(options: argparse.Namespace, sharded: bool, formats: str) -> None:
    """Ends the command if options do not fit an output that is `sharded` into a directory."""
    error = options.parser.error
    if not sharded:
        requires = f"requires --output DIR, and --format {formats}"
        for name in _DEFAULTS:
            if getattr(options, name) is not None:
                error(f"--{name.replace('_', '-')}: {requires}")
        for path in options.file:
            if Path(path).suffix == ".parquet":
                error(f"{path}: a Parquet file {requires}")
    elif options.sentences or not options.file:
        error(
            "--output DIR: requires --file FILE, and no sentences. To write a file instead of a "
            f"directory, add a suffix: --output {options.output}.txt"
        )


def process(options: argparse.Namespace, task: Any) -> None:
    """Applies a task of `scale.tasks` to all rows of `--file`, and prints a summary."""
    from keras_onlstm.scale import corpus

    values: dict[str, Any] = {
        name: default if getattr(options, name) is None else getattr(options, name)
        for name, default in _DEFAULTS.items()
    }
    task = task._replace(column=values["column"], max_words=values["max_words"])
    with progress_bar("rows") as bar:
        run = {name: values[name] for name in ("rows", "workers", "ray")}
        progress = partial(advance, bar)
        counts = corpus.process(options.file, options.output, task, progress=progress, **run)
    errors = f", {counts.errors:,} of which could not be read" if counts.errors else ""
    print(f"{options.output}: {counts.rows:,} rows{errors}; {counts.words:,} words")
