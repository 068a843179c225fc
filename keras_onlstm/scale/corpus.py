"""Large files parsed by several processes, shard by shard; what is finished is never done again."""

import concurrent.futures
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.scale.shards import FORMATS, cut, read, write
from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.files import cannot_write, write_json
from keras_onlstm.utils.locks import locked
from keras_onlstm.utils.types import StrPath
from keras_onlstm.version import __version__

__all__ = ["Counts", "Parsing", "cores", "parse_corpus"]

PLAN = "corpus.json"
_BLOCK = 512  # texts at once: memory does not grow with the shard


class Counts(NamedTuple):
    """What came of rows.

    Attributes:
        rows: integer.
        words: integer, in trees.
        errors: integer, rows that could not be read.
    """

    rows: int
    words: int
    errors: int


class Parsing(NamedTuple):
    """How rows are parsed, and written.

    Attributes:
        form: of `shards.FORMATS`.
        column: string, of Parquet files.
        max_words: integer, of a sentence, or `None`.
        punctuation: whether it is in the trees.
        load: dictionary, the arguments of `Parser.load`.
    """

    form: str = "brackets"
    column: str = "text"
    max_words: int | None = None
    punctuation: bool = False
    load: Mapping[str, Any] = {}


_held: dict[str, Any] = {}  # of a process: what it parses with


def _end_with(process):
    process.join()
    os._exit(1)


def _begin(parsing):
    """What a process does once. Ctrl-C is for the one that began it, whose death it shares."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(
        target=_end_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()
    _held["parsing"], _held["parser"] = parsing, Parser.load(**parsing.load)


def _records(parser, parsing, shard, counts):
    texts = read(shard, parsing.column)
    rows = parser.read_rows(texts, _BLOCK, parsing.max_words, parsing.punctuation)
    for number, row in enumerate(rows, shard.row):
        counts[:] = [
            counts[0] + 1, counts[1] + sum(map(len, row.words)), counts[2] + bool(row.error)
        ]  # fmt: skip
        trees = list(map(brackets, row.trees))
        yield {"row": number, "words": row.words, "trees": trees, "error": row.error}


def _finish(shard, path):
    counts = [0, 0, 0]
    records = _records(_held["parser"], _held["parsing"], shard, counts)
    write(path, records, _held["parsing"].form)
    return Counts(*counts)


def _plan(paths, shards, parsing, rows):
    """What a directory is for: files as they are now, and how they are parsed."""
    stats = [os.stat(path) for path in paths]
    files = [
        {"path": str(Path(path).resolve()), "bytes": stat.st_size, "changed": stat.st_mtime_ns}
        for path, stat in zip(paths, stats, strict=True)
    ]
    load = {name: str(value) for name, value in parsing.load.items()}
    plan = {"files": files, "rows": rows, "version": __version__, "shards": len(shards)}
    return {**plan, **parsing._replace(load=load)._asdict()}


def _check_plan(output, plan):
    path = output / PLAN
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            stored = None
        if not isinstance(stored, dict):
            raise ValueError(f"{path}: is damaged. Name another --output.")
        for name, value in plan.items():
            if stored.get(name) != value:
                raise ValueError(
                    f"{output}: was begun with other {name}. Go on with the same command and the "
                    "same files, or name another --output."
                )
    elif any(name.name != ".lock" for name in output.iterdir()):
        raise FileExistsError(f"{output}: has other files in it. Name another --output.")
    else:
        write_json(path, plan)


@contextmanager
def _one_thread():
    """Processes that begin here have one thread each for their products."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(tasks, parsing, workers):
    if workers == 1:
        _held["parsing"], _held["parser"] = parsing, Parser.load(**parsing.load)
        yield from (_finish(*task) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    with _one_thread():
        pool = concurrent.futures.ProcessPoolExecutor(workers, context, _begin, (parsing,))
        try:
            waiting = [pool.submit(_finish, *task) for task in tasks]
            for future in concurrent.futures.as_completed(waiting):
                yield future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a process that parsed has ended, killed or for want of memory. What is finished "
                "is kept: the same command goes on; fewer --workers need less memory."
            ) from error
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parse_corpus(
    paths: Sequence[StrPath],
    output: StrPath,
    parsing: Parsing = Parsing(),  # noqa: B008
    rows: int = 10_000,
    workers: int = 1,
    progress: Callable[[Counts, float], object] | None = None,
) -> Counts:
    """Parses files, and writes a file for every shard of them.

    The directory gets `00000.txt`, `00001.txt` and so on, of as many rows as the files have, in
    their order; each is there as soon as it is whole. The same call again goes on where the last
    one ended, however it did.

    Args:
        paths: list of paths, as of `shards.cut`.
        output: the directory.
        parsing: `Parsing`.
        rows: positive integer, lines in a shard.
        workers: positive integer, processes that parse; each loads the model. With 1 it is this
            one.
        progress: function of the `Counts` of a finished shard, and of the share of all rows that
            are done, or `None`.

    Returns:
        `Counts` of what this call did.

    Raises:
        FileNotFoundError: if a file is missing.
        FileExistsError: if the directory has something else in it.
        BlockingIOError: if another process is at work in it.
        OSError: if a file cannot be written.
        ValueError: if a file is damaged, an argument is invalid, or the directory is of other files
            or arguments.
        ChildProcessError: if a process was killed.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.scale.corpus import parse_corpus
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (directory / "corpus.txt").write_text("Prices fell.\\n...\\nIt rained.\\n")
    >>> parse_corpus([directory / "corpus.txt"], directory / "trees", rows=2)
    Counts(rows=3, words=4, errors=1)
    >>> print((directory / "trees" / "00000.txt").read_text().strip())
    (X Prices fell)
    # has no words.
    """
    if parsing.form not in FORMATS:
        raise ValueError(f"the format is one of {', '.join(FORMATS)}, not {parsing.form!r}.")
    rows, workers = integer("rows", rows), integer("workers", workers)
    shards = cut(paths, rows, parsing.column)
    output = Path(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(output, error) from error
    suffix, total = FORMATS[parsing.form], sum(shard.rows for shard in shards)
    with locked(output):
        _check_plan(output, _plan(paths, shards, parsing, rows))
        named = [(shard, output / f"{n:05}.{suffix}") for n, shard in enumerate(shards)]
        tasks = [(shard, path) for shard, path in named if not path.exists()]
        done = total - sum(shard.rows for shard, _ in tasks)
        counts = Counts(0, 0, 0)
        for found in _run(tasks, parsing, workers) if tasks else ():
            counts = Counts(*map(sum, zip(counts, found, strict=True)))
            done += found.rows
            if progress is not None:
                progress(found, done / total)
    return counts
