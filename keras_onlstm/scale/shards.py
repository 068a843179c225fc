"""Cutting files into shards of rows, reading shards, writing results."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.libraries import not_installed

FORMATS = {"brackets": "txt", "json": "jsonl", "parquet": "parquet"}
_PARQUET = ".parquet"
_BOM = b"\xef\xbb\xbf"  # byte order mark of UTF-8


class Shard(NamedTuple):
    """Rows of a file that are read together."""

    path: str
    start: int  # first byte in a text, or index of a row group in Parquet
    end: int
    row: int  # index of its first row among the rows of all files
    rows: int


def _parquet():
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise not_installed("A Parquet file", "pyarrow", error=error) from error
    return parquet


def _open_parquet(path, column):
    parquet = _parquet()
    try:
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
    except Exception as error:  # PyArrow raises many classes
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path}: not a complete Parquet file ({reason}).") from error
    if column not in names:
        raise ValueError(f"{path}: has no column {column!r}, only {', '.join(names)}.")
    return file


def _ends(path, rows):
    """Yields the end of each block of `rows` lines, in bytes, and its number of lines."""
    count = end = 0
    with open(path, "rb") as file:
        for line in file:
            count, end = count + 1, end + len(line)
            if count == rows:
                yield end, count
                count = 0
    if count:
        yield end, count


def cut(paths: Sequence[StrPath], rows: int, column: str = "text") -> list[Shard]:
    """Cuts text files into shards of `rows` lines, and Parquet files into their row groups.

    The text is in a `column` of Parquet files. Shards have at least one row.

    >>> import pathlib, tempfile
    >>> from keras_onlstm.scale.shards import cut
    >>> path = pathlib.Path(tempfile.mkdtemp(), "corpus.txt")
    >>> _ = path.write_text("prices fell\\nthe cat sat\\nit slept\\n")
    >>> [(shard.row, shard.rows) for shard in cut([path], rows=2)]
    [(0, 2), (2, 1)]
    """
    shards: list[Shard] = []
    row = 0
    for path in paths:
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such file.")
        if Path(path).suffix == _PARQUET:
            metadata = _open_parquet(path, column).metadata
            sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
            parts = [(number, number + 1, size) for number, size in enumerate(sizes)]
        else:
            ends = list(_ends(path, rows))
            starts = [0, *(end for end, _ in ends)]
            parts = [(start, end, n) for start, (end, n) in zip(starts, ends, strict=False)]
        for start, end, count in parts:
            if count:  # Parquet files may have row groups without rows
                shards.append(Shard(str(path), start, end, row, count))
                row += count
    return shards


def read(shard: Shard, column: str = "text") -> Iterator[Any]:
    """Yields the texts of a shard: strings, bytes for lines that are not UTF-8, other values."""
    if Path(shard.path).suffix == _PARQUET:
        file = _open_parquet(shard.path, column)
        for batch in file.iter_batches(2048, row_groups=[shard.start], columns=[column]):
            yield from batch.column(0).to_pylist()
        return
    with open(shard.path, "rb") as file:
        file.seek(shard.start)
        remaining = shard.end - shard.start
        while remaining > 0 and (line := file.readline()):
            remaining -= len(line)
            yield _decode(line.removeprefix(_BOM) if file.tell() == len(line) else line)


def _decode(line):
    line = line.rstrip(b"\r\n")
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line


def write(path: StrPath, rows: Iterable[dict[str, Any]], task: Any) -> None:
    """Writes rows with the task's `columns` atomically, in its format."""
    with replacing(path) as temporary:
        if task.form == "parquet":
            _write_parquet(temporary, rows, task.columns)
            return
        as_json = task.form == "json"
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                print(json.dumps(row, ensure_ascii=False) if as_json else task.line(row), file=file)


def _write_parquet(path, rows, columns):
    parquet = _parquet()
    import pyarrow

    types = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}

    def arrow_type(column):
        return pyarrow.list_(arrow_type(column[0])) if isinstance(column, list) else types[column]

    schema = pyarrow.schema([(name, arrow_type(column)) for name, column in columns.items()])
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), path)
