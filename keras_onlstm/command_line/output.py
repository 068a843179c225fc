"""`--output`: a name with a suffix is a file, a name without one is a directory."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from keras_onlstm.command_line.inputs import nothing_to, report_unknown, sentences
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import replacing

__all__ = ["Output", "opened", "read_output", "write_rows"]

# Suffixes that belong to one format. All others may be used with formats that write lines.
_FORMATS = {
    **{".svg": "svg", ".png": "png", ".html": "html", ".conll": "conll"},
    **{".json": "json", ".jsonl": "json", ".parquet": "parquet"},
}
_NO_LINES = ("svg", "png", "parquet")  # formats whose files need their own suffix
_TEXTS = ("brackets", "pretty", "table")  # formats whose files usually are `.txt`


class Output(NamedTuple):
    """Where results are written.

    Attributes:
        path: the file or directory.
        is_directory: whether it is a directory.
    """

    path: Path
    is_directory: bool


def read_output(options: argparse.Namespace, form: str | None = None) -> Output | None:
    """Reads `--output`; ends the command with an error if the path does not fit the format.

    Args:
        options: parsed arguments, with `output`.
        form: value of `--format`, if the command has it.

    Returns:
        `Output`, or `None` without the option. A name with a suffix is a file. A name without one,
        or with a slash at its end, is a directory.
    """
    name, error = options.output, options.parser.error
    if name is None:
        return None
    path = Path(name)
    if not path.suffix or name.endswith(("/", os.sep)):
        if path.exists() and not path.is_dir():
            suffix = "txt" if form in _TEXTS else form or "npz"
            error(
                f"--output {name}: is a file, but a name without a suffix is a directory. Name "
                f"another one, or a file with a suffix, such as {path}.{suffix}"
            )
        return Output(path, True)
    if path.is_dir():
        error(
            f"--output {name}: is a directory, but a name with a suffix is a file. Name another "
            f"file, or end the name of the directory in a slash: {name}/"
        )
    owner = _FORMATS.get(path.suffix)
    if form in _NO_LINES and owner != form:
        error(
            f"--output {name}: does not end in .{form}, as a file of --format {form} does. A name "
            "without a suffix is a directory"
        )
    if form is not None and owner not in (None, form):
        error(f"--output {name}: --format {owner} writes {path.suffix} files, not --format {form}")
    return Output(path, False)


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """Opens a text stream: a file, which is written atomically, or standard output.

    Args:
        path: the file; `None`: standard output.

    Raises:
        OSError: if the file cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    with (
        replacing(path) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


def write_rows(verb: str, options: argparse.Namespace, output: Output | None, task: Any) -> None:
    """Writes the rows of all sentences into one file, or prints them as JSON.

    Args:
        verb: verb for the command, for the error message.
        options: parsed arguments.
        output: the file; `None`: standard output.
        task: task of `scale.tasks`.

    Raises:
        OSError: if the file cannot be written.
        ValueError: if the input contains no words.
    """
    from keras_onlstm.scale.shards import write

    unknown: dict[str, None] = {}  # an ordered set

    def rows():
        count = 0
        for number, record in enumerate(task.begin()(sentences(options))):
            yield {"row": number, **record.fields}
            bar.update(record.words)
            count += record.words
            unknown.update(dict.fromkeys(record.unknown))
        if not count:
            raise nothing_to(verb, options)

    with progress_bar("words") as bar:
        if output is not None:
            write(output.path, rows(), task)
        else:
            for row in rows():
                bar.clear()
                print(json.dumps(row, ensure_ascii=False), flush=True)
    if output is not None:
        print(output.path)
    report_unknown(unknown)
