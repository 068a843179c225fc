"""`--output`: a name with a suffix is a file, a name without one is a directory."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from keras_onlstm.command_line.inputs import no_words, report_unknown, sentences
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import replacing

# Suffixes that belong to one format. All others may be used with formats that write lines.
_FORMATS = {
    **{".svg": "svg", ".png": "png", ".html": "html", ".conll": "conll"},
    **{".json": "json", ".jsonl": "json", ".parquet": "parquet"},
}
_MODELS = (".keras", ".npz", ".onnx", ".tflite")
_OWN_SUFFIX = ("svg", "png", "parquet")  # formats whose files need their own suffix
_TEXTS = ("brackets", "pretty", "table")  # formats whose files usually are `.txt`


class Output(NamedTuple):
    """The file or directory that results are written to."""

    path: Path
    is_directory: bool


def read_output(options: argparse.Namespace, form: str | None = None) -> Output | None:
    """Reads `--output`; ends the command with an error if the path does not fit the format."""
    name, error = options.output, options.parser.error
    if name is None:
        return None
    path = Path(name)
    if not path.suffix or name.endswith(("/", os.sep)):
        if path.exists() and not path.is_dir():
            suffix = "txt" if form in _TEXTS else form or "npz"
            error(
                f"--output {name}: is a file, but a name without a suffix means a directory. "
                f"Choose another name, or add a suffix to write a file: {path}.{suffix}"
            )
        return Output(path, True)
    if path.is_dir():
        error(
            f"--output {name}: is a directory, but a name with a suffix means a file. Choose "
            f"another name, or add a slash to write to the directory: {name}/"
        )
    inputs = [*getattr(options, "file", ()), *_as_list(getattr(options, "model", None))]
    if path.exists() and any(Path(i).exists() and path.samefile(i) for i in inputs):
        error(f"--output {name}: is also an input, which would be lost. Choose another name.")
    if form is not None and path.suffix in _MODELS:
        error(f"--output {name}: {path.suffix} is a suffix of models. Choose another name.")
    suffix_format = _FORMATS.get(path.suffix)
    if form in _OWN_SUFFIX and suffix_format != form:
        error(f"--output {name}: with --format {form}, the name of a file must end in .{form}")
    if form is not None and suffix_format not in (None, form):
        error(f"--output {name}: a {path.suffix} file needs --format {suffix_format}, not {form}")
    return Output(path, False)


def _as_list(value):
    """The values of an option that may be missing, single or repeated."""
    return value if isinstance(value, list) else [] if value is None else [value]


@contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Opens a text stream: a file, which is written atomically, or standard output for `None`."""
    if path is None:
        yield sys.stdout
        return
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        yield file


def write_rows(verb: str, options: argparse.Namespace, output: Output | None, task: Any) -> None:
    """Applies a task of `scale.tasks` to all sentences: writes a file, or prints JSON lines.

    Raises `ValueError` if the input contains no words; the verb is that of the command.
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
            raise no_words(verb, options)

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
